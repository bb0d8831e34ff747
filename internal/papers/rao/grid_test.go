// SPDX-License-Identifier: Apache-2.0

package rao

import (
	"math"
	"strings"
	"testing"

	"homenode/internal/profile"
	"homenode/internal/sim/arena"
	"homenode/internal/sim/catalog"
	"homenode/internal/sim/memsys"
	"homenode/internal/unit"
)

func e5620(t *testing.T) *memsys.System {
	t.Helper()
	b, ok := catalog.MachineNamed(catalog.DualE5620)
	if !ok {
		t.Fatal("there is no dual-e5620")
	}
	_, sys := b.Make()
	return &sys
}

func find(t *testing.T, cells []Cell, threads int, spread, memory string, ws, sharing unit.Bytes) Cell {
	t.Helper()
	for _, c := range cells {
		if c.Threads == threads && c.Spread == spread && c.Memory == memory && c.WS == ws && c.Sharing == sharing {
			return c
		}
	}
	t.Fatalf("no cell of %d threads %s, %s, %v, %v", threads, spread, memory, ws, sharing)
	return Cell{}
}

// The grid has the paper's sizes, every steady state is exact, and the figures follow from
// the machine: a chase that fits the LLC waits for the LLC, a larger one waits for memory.
func TestGridOnRaosMachine(t *testing.T) {
	sys := e5620(t)
	cells := Grid(sys)
	if want := len(workingSets) * len(sharings) * 2 * 5; len(cells) != want { // eight threads: inter only
		t.Fatalf("%d cells, want %d", len(cells), want)
	}
	for _, c := range cells {
		if c.Residue > 1e-4 || !(c.IPC > 0 && c.IPC < 1) || !(c.Penalty.Median.Or(0) > 0) {
			t.Fatalf("%+v", c)
		}
	}
	small := find(t, cells, 2, profile.Intra, profile.Remote, unit.MiB, 0)
	if p := small.Penalty.Median.Or(0); math.Abs(p-sys.LLCCycles) > 0.02*sys.LLCCycles {
		t.Errorf("a set that fits waits %.1f cycles a request, a hit is %.0f", p, sys.LLCCycles)
	}
	large := find(t, cells, 2, profile.Intra, profile.Local, 128*unit.MiB, 0)
	if m := large.MissRate.Median.Or(0); m < 0.95 {
		t.Errorf("ten times the LLC misses in %.2f", m)
	}
	again := Grid(sys)
	for i := range cells {
		if cells[i].Cycles != again[i].Cycles {
			t.Fatal("another run, another result")
		}
	}
}

// Where all memory is equally near, remote memory costs nothing more. Only differences that
// the machine has show up.
func TestGridOfUniformMemory(t *testing.T) {
	sys := *e5620(t)
	sys.Latency = [][]float64{{200, 200}, {200, 200}}
	sys.Path = [][][]int{{nil, nil}, {nil, nil}}
	if f := profile.RaoFindings(Profiles(Grid(&sys)), LLC(&sys))[1]; f.Verdict != profile.NotConfirmed {
		t.Errorf("%+v", f)
	}
}

// Without remote threads all do the same. The more threads wait, the higher is the IPC of
// those that spin, however slow the program is.
func TestSpinning(t *testing.T) {
	list := Spins(e5620(t))
	for _, s := range list {
		if s.Away == 0 || s.Away == s.Threads {
			if math.Abs(s.Spins-s.Sleeps) > 1e-3*s.Sleeps {
				t.Errorf("no thread waits, but IPC is %.4f and %.4f: %+v", s.Spins, s.Sleeps, s)
			}
		} else if s.Spins < s.Sleeps-1e-6 {
			t.Errorf("%+v", s)
		}
	}
	at := func(away int) Spinning {
		for _, s := range list {
			if s.WS == 128*unit.MiB && s.Away == away {
				return s
			}
		}
		t.Fatal("no such placement")
		return Spinning{}
	}
	if near, one := at(0), at(1); one.Time < 1.3*near.Time || one.Spins < 2*near.Spins {
		t.Errorf("one thread away: %+v, none: %+v", one, near)
	}
}

func TestJudgeGrid(t *testing.T) {
	rows := judgeGrid(e5620(t))
	if len(rows) != len(profile.RaoStatements)+3 {
		t.Fatalf("%d rows", len(rows))
	}
	for i, r := range rows {
		if r.Verdict == "" || r.Sentence == "" || r.Ours == "" || r.Paper != Paper {
			t.Errorf("%+v", r)
		}
		if i < len(profile.RaoStatements) && !strings.Contains(r.Sentence, "The lab's: yes") {
			t.Errorf("no word of the lab's: %s", r.Sentence)
		}
		t.Logf("%s | %s | %s | %s", r.Statement, r.Ours, r.Verdict, r.Sentence)
	}
	for _, i := range []int{4, 5, 6, 8} { // the winner flips, the penalty predicts, no single factor, spinning
		if rows[i].Verdict != arena.Confirmed {
			t.Errorf("%+v", rows[i])
		}
	}
}

// A machine of one node has no grid, and causes no panic.
func TestGridOfOneNode(t *testing.T) {
	sys := *e5620(t)
	sys.Nodes, sys.Domains = sys.Nodes[:1], sys.Domains[:1]
	if len(Grid(&sys)) != 0 || len(Spins(&sys)) != 0 {
		t.Error("a grid of one node")
	}
	if row := judgeFactors(nil); row.Verdict != "" {
		t.Errorf("%+v", row)
	}
	if row := judgeSpinning(nil); row.Verdict != "" {
		t.Errorf("%+v", row)
	}
}
