// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"encoding/json"
	"testing"
	"time"

	"homenode/internal/sim"
	"homenode/internal/sim/runner"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// pairToys are the toys of pairs, the side without MAO first, as job.pair makes them. Every
// second replica may not be bound; the windows of the first side have known figures.
func pairToys() newWorld {
	n := 0
	return func(c sim.Config) (world, error) {
		for i := range c.Specs {
			c.Specs[i].Approved = i%2 == 0
		}
		w, err := newToy(c)
		n++
		if n%2 == 1 {
			return &marked{w.(*toy)}, err
		}
		return w, err
	}
}

// marked is a toy whose windows report 1.5 CPUs.
type marked struct{ *toy }

func (m *marked) Window() window.Window {
	w := m.toy.Window()
	for i := range w.Workloads {
		w.Workloads[i].CPU = unit.Measured(1.5, "a test")
	}
	return w
}

// Features come from the side on which no replica is bound, and replicas that were never
// bound are controls: they gain what their neighbours bring them, which is nothing in a
// toy.
func TestRowsOfBothKinds(t *testing.T) {
	c := toyFleet(4)
	c.DataSet, c.newWorld = true, pairToys()
	c.Noise = Noise{Schema: 1, Source: "a test's", Repeats: 3}
	r, rows := runFleet(t, c)
	controls, some := 0, 0.0
	for _, row := range rows {
		if *row.CPU != 1.5 {
			t.Fatalf("a feature of the side with MAO: %v CPUs, want 1.5", *row.CPU)
		}
		if row.NeighboursBound == nil || !(*row.NeighboursBound > 0 && *row.NeighboursBound < 1) {
			t.Errorf("neighbours bound: %v, want a part of them", row.NeighboursBound)
		}
		if row.Bound {
			some += *row.GainLatencyTrue
			continue
		}
		controls++
		if *row.GainLatencyTrue != 0 || row.WindowsBefore != 60 || row.WindowsCompared < 30 {
			t.Errorf("a control: %+v, gain %v", row, *row.GainLatencyTrue)
		}
	}
	if controls == 0 || controls == len(rows) || controls != r.DataSet.Controls || some <= 0 {
		t.Errorf("%d of %d rows are controls, %d by the result; the others gain %v in all", controls, len(rows), r.DataSet.Controls, some)
	}
}

// Replicas are observed and compared for a time, not for a number of windows.
func TestRowsOfOtherPeriods(t *testing.T) {
	for period, want := range map[time.Duration][2]int32{30 * time.Second: {120, 60}, 5 * time.Minute: {12, 6}} {
		c := toyFleet(2)
		c.DataSet, c.Period = true, period
		r, rows := runFleet(t, c)
		for _, row := range rows {
			if row.WindowsBefore < want[0] || row.WindowsCompared < want[1] {
				t.Errorf("windows of %v: %d before and %d compared, want %v", period, row.WindowsBefore, row.WindowsCompared, want)
			}
		}
		if len(rows) == 0 || r.ObservedS != 3600 {
			t.Errorf("windows of %v: %d rows, observed for %v s", period, len(rows), r.ObservedS)
		}
	}
}

// Replicas that are there too briefly are counted apart from those without requests.
func TestSkipped(t *testing.T) {
	c := toyFleet(1)
	c.Size.Minutes = 100
	j := job{config: &c}
	bound := comparison{windows: 29}
	full := comparison{windows: 30, with: runner.Tally{Ops: 1}, without: runner.Tally{Ops: 1}}
	for _, s := range []subject{{seen: 99}, {seen: 100}, {seen: 100, ever: true, bound: bound}, {seen: 100, free: comparison{windows: 30}}} {
		if !j.skip(&s) {
			t.Errorf("%+v makes a row", s)
		}
	}
	if want := (Skipped{1, 1, 1, 1}); j.done.skipped != want {
		t.Errorf("%+v, want %+v", j.done.skipped, want)
	}
	for _, s := range []subject{{seen: 100, free: full}, {seen: 100, ever: true, bound: full}} {
		if j.skip(&s) {
			t.Errorf("%+v makes no row", s)
		}
	}
}

// Without MAO a server has the same figures, to the bit, beside its pair and alone, where
// no window is read; also P99.
func TestSideWithoutIsTheSame(t *testing.T) {
	c := realFleet(2, 4*60)
	c.DataSet, c.Warmup = true, time.Hour
	pair, _ := runFleet(t, c)
	c.DataSet, c.Share = false, 0
	alone, _ := runFleet(t, c)
	for i := range alone.List {
		a, _ := json.Marshal(pair.List[i].Without)
		b, _ := json.Marshal(alone.List[i].Without)
		if string(a) != string(b) {
			t.Errorf("%s: in a pair %s, alone %s", alone.List[i].Name, a, b)
		}
	}
	if *pair.Without != *alone.Without && pair.Without.CPUSeconds != alone.Without.CPUSeconds {
		t.Errorf("in a pair %+v, alone %+v", pair.Without, alone.Without)
	}
}
