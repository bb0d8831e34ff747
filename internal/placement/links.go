// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"homenode/internal/profile"
	"homenode/internal/yamlfile"
)

// ErrMalformed marks a table of links that cannot be.
var ErrMalformed = errors.New("malformed table of links")

// MaxLinks bounds a table's file in bytes: some 300 nodes.
const MaxLinks = 1 << 20

// Links are the bandwidths between nodes, in bytes/s, directed.
type Links struct {
	From string // "table FILE", or the profile's words
	at   map[[2]int]float64
}

// linksFile is a table as a person writes it: row i, column j is what node nodes[i] reads
// from nodes[j], in MB/s (10^6 bytes/s). The diagonal is not read and may be null.
//
//	nodes: [0, 1]
//	mb_s:
//	  - [null, 5400]
//	  - [5400, null]
type linksFile struct {
	Nodes []int        `yaml:"nodes"`
	MBs   [][]*float64 `yaml:"mb_s"`
}

// ParseLinks reads a table. Every pair of its nodes needs a bandwidth above 0.
func ParseLinks(text []byte, file string) (*Links, error) {
	doc, err := yamlfile.Parse(text, file, yamlfile.Rules{Malformed: ErrMalformed, What: "a table of links", Most: MaxLinks})
	if err != nil {
		return nil, err
	}
	var f linksFile
	if err := doc.Decode(&f); err != nil {
		return nil, err
	}
	l := &Links{From: "table " + file, at: map[[2]int]float64{}}
	if len(f.Nodes) != len(f.MBs) {
		return nil, doc.Wrong("mb_s", fmt.Sprintf("the table has %d rows for %d nodes: give one row for each node", len(f.MBs), len(f.Nodes)))
	}
	for i, row := range f.MBs {
		if err := l.addRow(f.Nodes, i, row); err != nil {
			return nil, doc.Wrong(fmt.Sprintf("mb_s[%d]", i), err.Error())
		}
	}
	return l, nil
}

func (l *Links) addRow(nodes []int, i int, row []*float64) error {
	if len(row) != len(nodes) {
		return fmt.Errorf("the row of node %d has %d columns for %d nodes", nodes[i], len(row), len(nodes))
	}
	if slices.Index(nodes, nodes[i]) != i {
		return fmt.Errorf("node %d is named twice", nodes[i])
	}
	for j, v := range row {
		switch {
		case i == j:
		case v == nil:
			return fmt.Errorf("the bandwidth from node %d to node %d is missing: a set of nodes that has both would have no score", nodes[i], nodes[j])
		case math.IsNaN(*v) || math.IsInf(*v, 0) || *v <= 0 || *v > 1e9:
			return fmt.Errorf("the bandwidth from node %d to node %d is %v MB/s: it must be a number above 0", nodes[i], nodes[j], *v)
		default:
			l.at[[2]int{nodes[i], nodes[j]}] = *v * 1e6
		}
	}
	return nil
}

// sameLinks is by how much measured bandwidths may differ and still be the same: what a
// bench is allowed to vary by from run to run. Without it noise makes every set of nodes
// a placement of its own.
const sameLinks = 0.05

// MeasuredLinks are those of a profile; bandwidths within 5 % of each other are made
// equal. The error names the first pair that was not measured.
func MeasuredLinks(p profile.Profile) (*Links, error) {
	l := &Links{From: fmt.Sprintf("profile (%s)", p.How), at: map[[2]int]float64{}}
	for _, pair := range p.Bandwidth {
		v, ok := pair.Figure.Median.Get()
		if !ok || v <= 0 {
			return nil, fmt.Errorf("the profile has no bandwidth from node %d to node %d: measure it (homenode bench --only bandwidth), or give --links FILE", pair.From, pair.To)
		}
		if pair.From != pair.To {
			l.at[[2]int{pair.From, pair.To}] = v
		}
	}
	if len(l.at) == 0 {
		return nil, errors.New("the profile has no bandwidths between nodes: measure them (homenode bench --only bandwidth), or give --links FILE")
	}
	l.merge()
	return l, nil
}

// merge gives neighbours in the order of bandwidth, up to sameLinks above the first of
// them, the mean of them all.
func (l *Links) merge() {
	var pairs [][2]int
	for pair := range l.at {
		pairs = append(pairs, pair)
	}
	slices.SortFunc(pairs, func(a, b [2]int) int {
		if l.at[a] != l.at[b] {
			return int(math.Copysign(1, l.at[a]-l.at[b]))
		}
		return slices.Compare(a[:], b[:])
	})
	for from := 0; from < len(pairs); {
		to, sum := from, 0.0
		for least := l.at[pairs[from]]; to < len(pairs) && l.at[pairs[to]] <= least*(1+sameLinks); to++ {
			sum += l.at[pairs[to]]
		}
		for _, pair := range pairs[from:to] {
			l.at[pair] = sum / float64(to-from)
		}
		from = to
	}
}

// Covers says which pair of nodes has no bandwidth.
func (l *Links) Covers(nodes []int) error {
	for _, from := range nodes {
		for _, to := range nodes {
			if _, ok := l.at[[2]int{from, to}]; !ok && from != to {
				return fmt.Errorf("the %s has no bandwidth from node %d to node %d", l.From, from, to)
			}
		}
	}
	return nil
}

// weights are bytes/s, to the next thousand: sums of them are exact.
func (l *Links) weights(nodes []int) Weights {
	w := newWeights(len(nodes))
	for i, from := range nodes {
		for j, to := range nodes {
			if i != j {
				w.Pair[i][j] = int64(math.Round((l.at[[2]int{from, to}]+l.at[[2]int{to, from}])/1e3)) * 1e3
			}
		}
	}
	return w
}
