// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"strings"
	"testing"
)

func TestContradictions(t *testing.T) {
	pair := func(from, to int, v float64) PairFigure { return PairFigure{from, to, FigureOf([]float64{v})} }
	fine := Profile{Latency: []PairFigure{pair(0, 0, 80), pair(0, 1, 138)}, Bandwidth: []PairFigure{pair(0, 1, 34e9), pair(1, 1, 100e9)}}
	fine.Loaded = []Curve{{Name: "node 0, local", Points: []CurvePoint{{Latency: FigureOf([]float64{78})}}}}
	if all := fine.Contradictions(); len(all) != 0 {
		t.Errorf("within the noise: %v", all)
	}
	for want, change := range map[string]func(*Profile){
		"a read from node 0 to node 1 takes 60 ns, and 80 ns to its own memory": func(p *Profile) { p.Latency = []PairFigure{pair(0, 0, 80), pair(0, 1, 60)} },
		"node 0, local: a read takes 50 ns under load, and 80 ns without": func(p *Profile) {
			p.Loaded = []Curve{{Name: "node 0, local", Points: []CurvePoint{{Latency: FigureOf([]float64{50})}}}}
		},
		"node 0 reads 200 GB/s from node 1, whose own CPUs read 100 GB/s": func(p *Profile) { p.Bandwidth = []PairFigure{pair(0, 1, 200e9), pair(1, 1, 100e9)} },
	} {
		p := fine
		change(&p)
		all := p.Contradictions()
		if len(all) != 1 || all[0].What != want || !strings.HasPrefix(all[0].String(), want+": ") || (p.LatencyDoubt() != "") == strings.Contains(want, "GB/s") {
			t.Errorf("want %q: %v", want, all)
		}
	}
}
