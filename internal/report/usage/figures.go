// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"homenode/internal/machine"
	"homenode/internal/unit"
)

// size prints three digits: 0, 512B, 7.46GiB, 19.0MiB, 262MiB.
func size(b unit.Bytes) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}
	v, i := float64(b), 0
	for v >= 999.5 && i < len(units)-1 {
		v, i = v/1024, i+1
	}
	digits := 2
	switch {
	case i == 0 || v >= 99.95:
		digits = 0
	case v >= 9.995:
		digits = 1
	}
	if b == 0 {
		return "0"
	}
	return strconv.FormatFloat(v, 'f', digits, 64) + units[i]
}

func bytesOf(v unit.Value[unit.Bytes]) string { return show(v, size) }

func show[T any](v unit.Value[T], print func(T) string) string {
	if x, ok := v.Get(); ok {
		return print(x)
	}
	return unknown
}

// perSecond prints a count as a rate: 0, 0.4, 12, 1,234.
func perSecond(v unit.Value[uint64], length time.Duration) string {
	n, ok := v.Get()
	if !ok || length <= 0 {
		return unknown
	}
	return rate(float64(n) / length.Seconds())
}

func rate(v float64) string {
	if v > 0 && v < 9.95 {
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return thousands(strconv.FormatFloat(v, 'f', 0, 64))
}

// whole prints a count of things: 8, 1,234.
func whole(n uint64) string { return thousands(strconv.FormatUint(n, 10)) }

func thousands(digits string) string {
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

func cpus(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) }

func percent(part, whole float64) string {
	r, ok := unit.RatioOf(part, whole).Get()
	if !ok {
		return unknown
	}
	return r.String()
}

// count says "1 node", "2 nodes"; the plural of one word that has its own is given.
func count(n int, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case strings.HasSuffix(what, "s"):
		return strconv.Itoa(n) + " " + what + "es"
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// few is how many nodes are shown each by each; of more, only those with most.
const few = 4

// byNode prints figures by node: "1.20/0.30", and of many nodes those that have
// most, "N3 1.20 N5 0.40 +2".
func byNode[T any](p *page, nodes []machine.Node, by []T, weight func(T) float64, print func(T) string) string {
	if len(by) == 0 || len(by) != len(nodes) {
		return unknown
	}
	if len(nodes) <= few {
		parts := make([]string, len(by))
		for i, v := range by {
			parts[i] = print(v)
		}
		return strings.Join(parts, "/")
	}
	var order []int
	for i, v := range by {
		if weight(v) != 0 {
			order = append(order, i)
		}
	}
	if len(order) == 0 {
		return "0"
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(weight(by[b]), weight(by[a])) })
	room := 2
	if p.Width >= 100 {
		room = few
	}
	var parts []string
	for _, i := range order[:min(room, len(order))] {
		parts = append(parts, fmt.Sprintf("N%d %s", nodes[i].ID, print(by[i])))
	}
	if more := len(order) - len(parts); more > 0 {
		parts = append(parts, "+"+strconv.Itoa(more))
	}
	return strings.Join(parts, " ")
}

func bytesByNode(p *page, nodes []machine.Node, by []unit.Bytes) string {
	return byNode(p, nodes, by, func(b unit.Bytes) float64 { return float64(b) }, size)
}

// cpusByNode prints CPU time; all unknown is said once.
func cpusByNode(p *page, nodes []machine.Node, by []unit.Value[float64]) string {
	if !slices.ContainsFunc(by, unit.Value[float64].Known) {
		return unknown
	}
	const unknownFirst = 1e9
	return byNode(p, nodes, by, func(v unit.Value[float64]) float64 { return v.Or(unknownFirst) },
		func(v unit.Value[float64]) string { return show(v, cpus) })
}
