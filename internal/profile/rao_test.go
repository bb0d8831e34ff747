// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"homenode/internal/unit"
)

// raoMachine has the costs of a cell on a simple machine: an LLC of 1 MiB on each of
// two nodes. A zero field means that the effect is missing.
type raoMachine struct {
	hit, local, remote float64 // cycles
	add, addFar        float64 // of the adds to shared lines, on one node and over two
	split              bool    // threads on one node share its LLC
	noise              float64
}

var raoUsual = raoMachine{hit: 40, local: 216, remote: 373, add: 60, addFar: 500, split: true}

func (m raoMachine) grid(sharings ...unit.Bytes) []RaoCell {
	random := rand.New(rand.NewPCG(1, 2))
	var out []RaoCell
	for _, sharing := range sharings {
		for _, spread := range []string{Intra, Inter} {
			for _, memory := range []string{Local, Remote} {
				for ws := unit.MiB / 8; ws <= 8*unit.MiB; ws *= 2 {
					out = append(out, m.cell(spread, memory, ws, sharing, 1+m.noise*(random.Float64()-0.5)))
				}
			}
		}
	}
	return out
}

func (m raoMachine) cell(spread, memory string, ws, sharing unit.Bytes, noise float64) RaoCell {
	share, dram, add := float64(unit.MiB), m.local, m.addFar
	if spread == Intra {
		add = m.add
		if m.split {
			share /= 2
		}
	}
	if memory == Remote {
		dram = m.remote
	}
	miss := 1 - min(1, share/float64(ws))
	adds := 0.0
	if sharing > 0 {
		adds = 0.1 * math.Log2(float64(sharing)/128)
	}
	wait := (miss*dram + (1-miss)*m.hit + adds*add) * noise
	f := func(v float64) Figure { return FigureOf([]float64{v}) }
	return RaoCell{Threads: 2, Spread: spread, Memory: memory, WS: ws, Sharing: sharing, PerOp: f((20 + wait) / 2.7), Cycles: f(20 + wait),
		MissRate: f(miss / (1 + adds)), Penalty: f(wait / (1 + adds)), LLCMiss: f(miss), Requests: f(1 + adds), PenaltyPerOp: f(wait)}
}

func verdicts(cells []RaoCell, llc unit.Bytes) string {
	text := ""
	for _, f := range RaoFindings(cells, llc) {
		text += map[Verdict]string{Confirmed: "y", NotConfirmed: "n", CannotTell: "?"}[f.Verdict]
	}
	return text
}

// Each statement fails with the effect that it is about, and is unknown without its
// cells.
func TestDecisionRaoFindings(t *testing.T) {
	with := func(change func(*raoMachine)) raoMachine { m := raoUsual; change(&m); return m }
	both := []unit.Bytes{0, 32 * unit.KiB}
	only := func(keep func(RaoCell) bool) []RaoCell {
		return slices.DeleteFunc(raoUsual.grid(both...), func(c RaoCell) bool { return !keep(c) })
	}
	for _, c := range []struct {
		what  string
		cells []RaoCell
		llc   unit.Bytes
		want  string // by statement; "." is any
	}{
		{"as the slides say", raoUsual.grid(both...), unit.MiB, "yyyyyy"},
		{"with noise", with(func(m *raoMachine) { m.noise = 0.02 }).grid(both...), unit.MiB, "yyyyyy"},
		{"an LLC that is assumed larger", raoUsual.grid(both...), 8 * unit.MiB, "n....."},
		{"remote costs nothing", with(func(m *raoMachine) { m.remote = m.local }).grid(both...), unit.MiB, "yn...."},
		{"no contention", with(func(m *raoMachine) { m.split = false }).grid(both...), unit.MiB, "yy?.n."},
		{"sharing is as cheap across", with(func(m *raoMachine) { m.addFar = m.add }).grid(both...), unit.MiB, "yyyn.."},
		{"no adds", raoUsual.grid(0), unit.MiB, "yyy?.."},
		{"LLC unknown", raoUsual.grid(both...), 0, "????yy"},
		{"nothing", nil, unit.MiB, "??????"},
		{"intra only", only(func(c RaoCell) bool { return c.Spread == Intra }), unit.MiB, "yy???."},
		{"local only", only(func(c RaoCell) bool { return c.Memory == Local }), unit.MiB, "??y?.."},
		{"small sets only", only(func(c RaoCell) bool { return c.WS < unit.MiB/2 }), unit.MiB, "y??..."},
		{"large sets only", only(func(c RaoCell) bool { return c.WS > unit.MiB }), unit.MiB, "?y...."},
		{"few cells", only(func(c RaoCell) bool { return c.WS == unit.MiB && c.Sharing == 0 }), unit.MiB, ".....?"},
	} {
		got := verdicts(c.cells, c.llc)
		for i, r := range c.want {
			if r != '.' && rune(got[i]) != r {
				t.Errorf("%s: verdicts %s, want %s: %+v", c.what, got, c.want, RaoFindings(c.cells, c.llc)[i])
			}
		}
	}
}

// The order of the cells does not matter, nor do cells without a cost. The later
// measurement of a cell counts.
func TestDecisionRaoOrder(t *testing.T) {
	cells := raoUsual.grid(0, 32*unit.KiB)
	want := RaoFindings(cells, unit.MiB)
	random := rand.New(rand.NewPCG(3, 4))
	random.Shuffle(len(cells), func(i, j int) { cells[i], cells[j] = cells[j], cells[i] })
	for i, f := range RaoFindings(cells, unit.MiB) {
		if f.Verdict != want[i].Verdict || i < 5 && f.Evidence != want[i].Evidence {
			t.Errorf("%+v, want %+v", f, want[i])
		}
	}
	again := append([]RaoCell{{Threads: 2, Spread: Intra, Memory: Local, WS: cells[0].WS, Cycles: FigureOf([]float64{1e9}), PerOp: FigureOf([]float64{1e9})}}, raoUsual.grid(0, 32*unit.KiB)...)
	if got := verdicts(again, unit.MiB); got != "yyyyyy" {
		t.Error("the earlier of two measurements counts: ", got)
	}
}

// Without cycles the times are compared.
func TestDecisionRaoTimes(t *testing.T) {
	cells := raoUsual.grid(0, 32*unit.KiB)
	cells[3].Cycles = UnknownFigure("no counter")
	if got := verdicts(cells, unit.MiB); got != "yyyyyy" {
		t.Error(got)
	}
	for i := range cells {
		cells[i].Penalty = UnknownFigure("no counter")
	}
	if f := RaoFindings(cells, unit.MiB)[5]; f.Verdict != CannotTell || !strings.Contains(f.Evidence, "0 cells") {
		t.Errorf("%+v", f)
	}
}

func TestCorrelation(t *testing.T) {
	for _, c := range []struct {
		x, y []float64
		r    float64
		ok   bool
	}{
		{[]float64{1, 2, 3}, []float64{2, 4, 6}, 1, true},
		{[]float64{1, 2, 3}, []float64{3, 2, 1}, -1, true},
		{[]float64{1, 2, 3, 4}, []float64{1, 3, 2, 4}, 0.8, true},
		{[]float64{1, 1, 1}, []float64{1, 2, 3}, 0, false},
		{[]float64{1, 2}, []float64{1, 2}, 0, false},
		{[]float64{1, 2, 3}, []float64{1, 2}, 0, false},
		{[]float64{1, math.Inf(1), 3}, []float64{1, 2, 3}, 0, false},
		{nil, nil, 0, false},
	} {
		if r, ok := Correlation(c.x, c.y); ok != c.ok || math.Abs(r-c.r) > 1e-12 {
			t.Errorf("Correlation(%v, %v) = %v, %v, want %v, %v", c.x, c.y, r, ok, c.r, c.ok)
		}
	}
}

func TestDecisionRaoDominates(t *testing.T) {
	cells := raoUsual.grid(0, 32*unit.KiB)
	for _, c := range []struct {
		ws, sharing unit.Bytes
		want        string
	}{
		{unit.MiB / 8, 0, ""}, {unit.MiB, 0, "LLC contention"}, {8 * unit.MiB, 0, "locality"}, {unit.MiB / 8, 32 * unit.KiB, "sharing"},
	} {
		if f, ok := RaoDominates(cells, 2, c.ws, c.sharing); !ok || f.Name != c.want {
			t.Errorf("%v, %v shared: %+v %v, want %q", c.ws, c.sharing, f, ok, c.want)
		}
	}
	local := slices.DeleteFunc(cells, func(c RaoCell) bool { return c.Memory == Remote && c.Sharing > 0 })
	if f, ok := RaoDominates(local, 2, 8*unit.MiB, 32*unit.KiB); !ok || f.Name == "" {
		t.Errorf("remote not tried with adds: %+v %v", f, ok)
	}
	if _, ok := RaoDominates(cells, 4, unit.MiB, 0); ok {
		t.Error("four threads were not measured")
	}
}

// With and without adds a cell runs two different programs: each has its own r. A
// penalty shows which of two placements of one load is cheaper.
func TestDecisionRaoIndex(t *testing.T) {
	cells := raoUsual.grid(0, 32*unit.KiB)
	f := RaoFindings(cells, unit.MiB)[5]
	for _, want := range []string{"Over n = 56 cells", "Without adds (n = 28): 1.000", "With adds (n = 28): 1.000"} {
		if !strings.Contains(f.Evidence, want) {
			t.Errorf("%q lacks %q", f.Evidence, want)
		}
	}
	g := newRaoGrid(cells, unit.MiB)
	if pairs, penalty, miss := g.tells(); pairs == 0 || penalty != pairs || miss >= pairs {
		t.Errorf("of %d pairs the penalty tells %d, the miss rate %d", pairs, penalty, miss)
	}
	for i := range cells {
		cells[i].Penalty.Median = unit.Some(-cells[i].Penalty.Median.Or(0))
	}
	if pairs, penalty, _ := newRaoGrid(cells, unit.MiB).tells(); pairs == 0 || penalty != 0 {
		t.Errorf("turned over: of %d pairs the penalty tells %d", pairs, penalty)
	}
}
