// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// Texts of a plot's limits do not overlap.
func TestDecisionLimits(t *testing.T) {
	pl := &Plot{Wide: 380, X: Axis{Binary: true}, Lines: []Line{{Points: []Point{{Exactly(1), Exactly(1)}, {Exactly(1 << 20), Exactly(2)}}}}}
	for i := range 6 {
		pl.Limits = append(pl.Limits, Limit{float64(int(1000) << (i / 2)), fmt.Sprintf("L%d 32 KiB", i)})
	}
	f := pl.frame()
	for i := range pl.Limits {
		for j := range i {
			a0, a1 := f.limitText(pl.Limits[i])
			b0, b1 := f.limitText(pl.Limits[j])
			if f.rows[i] == f.rows[j] && a0 < b1 && b0 < a1 {
				t.Errorf("limits %d and %d overlap in row %d", i, j, f.rows[i])
			}
		}
	}
}

// Whatever the figures are, everything that is drawn is a number and inside of the panel.
func TestPlotStaysInItsPanel(t *testing.T) {
	nan := math.NaN()
	all := [][]Point{
		{},
		{{Exactly(0), Exactly(0)}},
		{{Exactly(5), Exactly(5)}, {Exactly(5), Exactly(5)}},
		{{Exactly(1), Extent{2, -1, 3}}, {Exactly(2), Exactly(nan)}, {Extent{3, 1, 9}, Exactly(1e15)}},
		{{Exactly(4096), Exactly(-3)}, {Exactly(1 << 30), Exactly(1e-12)}},
	}
	drawn := 0
	for i, points := range all {
		for _, binary := range []bool{false, true} {
			pl := &Plot{Wide: 380, X: Axis{Binary: binary}, Limits: []Limit{{64, "L1"}}}
			for _, l := range []Line{{Joined: true, Marked: true}, {Joined: true, Steps: true}, {Joined: true, Banded: true}, {Marked: true}} {
				l.Name, l.Class, l.Points = "line", "s1", points
				pl.Lines = append(pl.Lines, l)
			}
			panel := pl.Panel("p", "title", "sub")
			picture := string(panel.Picture())
			if strings.Contains(picture, "NaN") || strings.Contains(picture, "Inf") {
				t.Errorf("points %d, binary %v: no numbers in\n%s", i, binary, picture)
			}
			f := pl.frame()
			for _, l := range pl.Lines {
				for _, part := range l.parts() {
					for _, pt := range part {
						x, y := f.x.at(pt.X.Mid), f.y.at(pt.Y.Mid)
						if !(x >= plotLeft && x <= pl.Wide && y >= plotTop && y <= panel.High) {
							t.Errorf("points %d, binary %v: %v is drawn at %v, %v", i, binary, pt, x, y)
						}
						drawn++
					}
				}
			}
			if pl.Empty() != (len(points) == 0) {
				t.Errorf("points %d: empty is %v", i, pl.Empty())
			}
		}
	}
	if drawn == 0 {
		t.Error("no point was drawn")
	}
}
