// SPDX-License-Identifier: Apache-2.0

package rao

import (
	"fmt"
	"math"
	"strings"

	"homenode/internal/profile"
	"homenode/internal/sim/arena"
	"homenode/internal/sim/memsys"
)

// Paper names the source in rows.
const Paper = "Rao 2013"

// lab has the grid's results from where it was measured, in the lab's shape two with
// nothing else on the host: docs/decisions/0015-rao-grid.md, "What came of it in the lab".
var lab = [len(profile.RaoStatements)]string{
	"yes: remote / local 1.019 in the median of the pairs that fit (1.001 to 1.036)",
	"yes: 2 of 2 series, 1.68 → 1.73 (inter), 1.73 → 1.75 (intra)",
	"yes: intra / inter 2.50 at 384 KiB a thread, 1.00 at 4 MiB",
	"yes, where sets fit: in 1 of 1 places, in 2 of all 5",
	"yes: of 29 pairs intra is faster in 13, inter in 9",
	"yes: r 0.992, of the LLC miss rate 0.845 (n = 64)",
}

// below is added to statements about sets that fit. The paper's sizes do not fit, by our
// reading of "fit" (all threads together within half of an LLC).
var below = [len(profile.RaoStatements)]string{0: belowText, 3: belowText}

const belowText = "; sets of 1 and 2 MiB are ours, as the paper's begin at a third of the LLC"

var verdicts = map[profile.Verdict]arena.Verdict{
	profile.Confirmed: arena.Confirmed, profile.NotConfirmed: arena.NotConfirmed, profile.CannotTell: arena.CannotTest,
}

// judgeGrid judges the micro-benchmark on a machine's model.
func judgeGrid(sys *memsys.System) []arena.Row {
	cells := Grid(sys)
	list := Profiles(cells)
	var rows []arena.Row
	for i, f := range profile.RaoFindings(list, LLC(sys)) {
		rows = append(rows, arena.Row{
			Paper: Paper, Statement: f.Statement, Theirs: "–", Ours: shortly(f), Verdict: verdicts[f.Verdict],
			Sentence: fmt.Sprintf("%s Steady states of the memory model on %s, %d cells%s. The lab's: %s.", f.Evidence, sys.Name, len(cells), below[i], lab[i]),
		})
	}
	return append(rows, arena.Judge([]arena.Statement[*memsys.System]{
		{Paper: Paper, Text: "No single factor predicts the best placement: what dominates switches with working set, sharing and threads.", Theirs: "–", Judge: func(*memsys.System) arena.Finding { return judgeFactors(list) }},
		{Paper: Paper, Text: "The uncore penalty correlates linearly with run time; the LLC miss rate only on a subset.", Theirs: "linear", Judge: func(*memsys.System) arena.Finding { return judgeSubset(cells) }},
		{Paper: Paper, Text: "IPC tells nothing of programs whose threads spin while they wait.", Theirs: "–", Judge: func(sys *memsys.System) arena.Finding { return judgeSpinning(Spins(sys)) }},
	}, sys)...)
}

// shortly returns the first figure of the evidence.
func shortly(f profile.RaoFinding) string {
	for _, v := range f.Values {
		if x, ok := v.Value.Get(); ok {
			return fmt.Sprintf("%s %.3g", v.Name, x)
		}
	}
	return "–"
}

// least is the share of places in which a factor must dominate to count as dominating.
const least = 0.05

// judgeFactors: no single factor predicts the best placement, and the dominating factor
// changes. It covers all places with adds.
func judgeFactors(cells []profile.RaoCell) (w arena.Finding) {
	count, places := map[string]int{}, 0
	for _, c := range cells {
		if c.Spread != profile.Inter || c.Memory != profile.Local || c.Sharing == 0 {
			continue
		}
		if f, ok := profile.RaoDominates(cells, c.Threads, c.WS, c.Sharing); ok {
			count[f.Name]++
			places++
		}
	}
	if places == 0 {
		return arena.Untested("No place of the grid has all of its cells.")
	}
	var parts []string
	yes := true
	for _, name := range []string{"locality", "LLC contention", "sharing"} {
		yes = yes && float64(count[name]) >= least*float64(places)
		parts = append(parts, fmt.Sprintf("%s in %d", name, count[name]))
	}
	w.Verdict, w.Ours = arena.VerdictOf(yes), strings.Join(parts, ", ")
	w.Sentence = fmt.Sprintf("Of %d places (threads × working set × sharing), %s; nothing makes 5 %% in %d. Each must dominate a twentieth.", places, w.Ours, count[""])
	return w
}

// judgeSubset: the penalty correlates with run time, the miss rate only on a part of the
// grid. The parts are the cells with and without adds, and with local or remote memory.
func judgeSubset(cells []Cell) (w arena.Finding) {
	all := correlate(cells)
	w.Ours = fmt.Sprintf("r %.3f (penalty) and %.3f (miss rate)", all.penalty, all.miss)
	best, name := 0.0, ""
	text := ""
	for _, part := range []struct {
		name string
		keep func(Cell) bool
	}{
		{"without adds, local memory", func(c Cell) bool { return c.Sharing == 0 && c.Memory == profile.Local }},
		{"without adds, remote memory", func(c Cell) bool { return c.Sharing == 0 && c.Memory == profile.Remote }},
		{"with adds, local memory", func(c Cell) bool { return c.Sharing > 0 && c.Memory == profile.Local }},
		{"with adds, remote memory", func(c Cell) bool { return c.Sharing > 0 && c.Memory == profile.Remote }},
	} {
		var some []Cell
		for _, c := range cells {
			if part.keep(c) {
				some = append(some, c)
			}
		}
		r := correlate(some)
		if math.Abs(r.miss) > best {
			best, name = math.Abs(r.miss), part.name
		}
		text += fmt.Sprintf(" Cells %s (n = %d): %.3f and %.3f.", part.name, r.n, r.penalty, r.miss)
	}
	yes := all.n >= profile.RaoCells && math.Abs(all.penalty) >= profile.RaoStrong && math.Abs(all.miss) < profile.RaoStrong && best >= profile.RaoStrong
	w.Verdict = arena.VerdictOf(yes)
	w.Sentence = fmt.Sprintf("Over n = %d cells r with the time of a memory operation is %.3f for the penalty, %.3f for the miss rate, %.3f for cycles an instruction.%s The miss rate is best %s.",
		all.n, all.penalty, all.miss, all.cpi, text, name)
	return w
}

// correlation is r with the cycles of a memory operation.
type correlation struct {
	n                  int
	penalty, miss, cpi float64
}

func correlate(cells []Cell) correlation {
	var cost, penalty, miss, cpi []float64
	for _, c := range cells {
		cost = append(cost, c.Cycles.Median.Or(0)/c.Accesses())
		penalty, miss = append(penalty, c.Penalty.Median.Or(0)), append(miss, c.MissRate.Median.Or(0))
		cpi = append(cpi, 1/c.IPC)
	}
	r := correlation{n: len(cells)}
	r.penalty, _ = profile.Correlation(penalty, cost)
	r.miss, _ = profile.Correlation(miss, cost)
	r.cpi, _ = profile.Correlation(cpi, cost)
	return r
}

// judgeSpinning: of two placements of one load that differ, which index predicts the
// faster?
func judgeSpinning(list []Spinning) (w arena.Finding) {
	var pairs, penalty, miss, spins, sleeps int
	for i, a := range list {
		for _, b := range list[:i] {
			fast, slow := a, b
			if fast.Time > slow.Time {
				fast, slow = slow, fast
			}
			if a.WS != b.WS || slow.Time < fast.Time*(1+profile.RaoWins) {
				continue
			}
			pairs++
			penalty += one(fast.Penalty < slow.Penalty)
			miss += one(fast.MissRate < slow.MissRate)
			spins += one(fast.Spins > slow.Spins)
			sleeps += one(fast.Sleeps > slow.Sleeps)
		}
	}
	if pairs == 0 {
		return arena.Untested("No two placements of one load differ.")
	}
	w.Ours = fmt.Sprintf("right in %.0f %% of pairs; without spinning in %.0f %%", percent(spins, pairs), percent(sleeps, pairs))
	// A coin is right in half of the pairs. An index misleads if it is wrong in a quarter
	// or more.
	w.Verdict = arena.VerdictOf(float64(spins) < 0.75*float64(pairs) && penalty > spins && sleeps > spins)
	w.Sentence = fmt.Sprintf("Four threads that meet at barriers, none to all of them away from their memory, working sets of %v to %v: of %d pairs of placements that differ by 5 %%, a higher IPC is the faster in %d where waiting threads spin, in %d where they sleep; a lower uncore penalty in %d, a lower LLC miss rate in %d.",
		list[0].WS, list[len(list)-1].WS, pairs, spins, sleeps, penalty, miss)
	return w
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

func percent(part, whole int) float64 { return 100 * float64(part) / float64(max(1, whole)) }
