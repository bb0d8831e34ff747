// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"homenode/internal/machine"
	"homenode/internal/render"
	"homenode/internal/render/field"
	"homenode/internal/unit"
)

func bytesOf(v unit.Value[unit.Bytes]) string { return v.V.String() }

func show[T any](v unit.Value[T], print func(T) string) string { return render.Show(v.V, print) }

// perSecond prints a count as a rate: 0, 0.4, 12, 1,234.
func perSecond(v unit.Value[uint64], length time.Duration) string {
	n, ok := v.Get()
	if !ok || length <= 0 {
		return unknown
	}
	return countRate(float64(n) / length.Seconds())
}

func countRate(v float64) string {
	if v > 0 && v < 9.95 {
		return render.Fixed(v, 1)
	}
	return render.Commas(v)
}

func percent(part, whole float64) string {
	return unit.RatioOf(part, whole).String()
}

// few is the number of nodes that are all printed; with more, only those with most.
const few = 4

// byNode prints figures by node: "1.20/0.30"; with many nodes those that have most, "N3
// 1.20 N5 0.40 +2".
func byNode[T any](p *usagePage, nodes []machine.Node, by []T, weight func(T) float64, print func(T) string) string {
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

func bytesByNode(p *usagePage, nodes []machine.Node, by []unit.Bytes) string {
	return byNode(p, nodes, by, func(b unit.Bytes) float64 { return float64(b) }, unit.Bytes.String)
}

// cpusByNode prints CPU time; if all of it is unknown, that is printed once.
func cpusByNode(p *usagePage, nodes []machine.Node, by []unit.Value[float64]) string {
	if !slices.ContainsFunc(by, unit.Value[float64].Known) {
		return unknown
	}
	const unknownFirst = 1e9
	return byNode(p, nodes, by, func(v unit.Value[float64]) float64 { return v.Or(unknownFirst) },
		func(v unit.Value[float64]) string { return show(v, field.CPU.Unit.Print) })
}
