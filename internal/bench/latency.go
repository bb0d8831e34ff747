// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"slices"

	"homenode/internal/profile"
)

type pair struct{ from, to int }

func pairKey(f profile.PairFigure) pair { return pair{f.From, f.To} }

// pairs are the nodes with CPUs × the nodes with memory.
func (b *bench) pairs() []pair {
	var all []pair
	for _, from := range b.rows() {
		for _, to := range b.columns() {
			all = append(all, pair{from, to})
		}
	}
	return all
}

// byWorth are pairs in the order in which they are measured, in case the time is too
// short for all: local memory of every node, then the nearest, then the farthest.
func (b *bench) byWorth() []pair {
	var by [4][]pair
	for _, from := range b.rows() {
		near := slices.DeleteFunc(slices.Clone(b.m.Nearest(from)), func(to int) bool { return !b.memory().Has(to) })
		for i, to := range near {
			class := min(i, 3)
			if i >= 2 && i == len(near)-1 {
				class = 2
			} else if i == 2 {
				class = 3
			}
			by[class] = append(by[class], pair{from, to})
		}
	}
	return slices.Concat(by[:]...)
}

func (p pair) String() string { return fmt.Sprintf("node %d to node %d", p.from, p.to) }

// planLatency: beginning with the most telling pair, one CPU of each node chases over
// memory of each node, in a working set that no cache holds.
func planLatency(b *bench) plan {
	o := offers{part: profile.Latency}
	got := figuresOf(&b.profile.Latency, pairKey, b.pairs())
	for _, pr := range b.byWorth() {
		o.offer(pr.String(), got.has(pr), func() (piece, error) {
			ws, err := b.far(pr.to)
			if err != nil {
				return piece{}, err
			}
			cpu, _ := b.cpusOf(pr.from).First()
			return piece{jobs: jobs(b.chase(cpu, pr.to, ws)), read: readChase, keep: func(c [][]float64) {
				got.put(profile.PairFigure{From: pr.from, To: pr.to, Figure: timed(c[0], c[1])})
			}}, nil
		})
	}
	return o.done()
}
