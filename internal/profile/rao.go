// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"homenode/internal/experiment"
	"homenode/internal/render"
	"homenode/internal/unit"
)

// The statements of Rao et al. about their micro-benchmark (HPCA 2013, the slides),
// tested on a grid, number by number. The cost of a cell is its time per operation,
// which is taken without interruptions; for number 6 it is its cycles, because that is
// about counters. If not all cells have one of them, the other is used. A cell is
// compared with the cell that differs in one thing only. "Few adds" is the smallest
// sharing size of the grid.
//
//  1. Below LLC size locality does not matter. Over the pairs remote / local with
//     few adds whose threads' working sets together fill at most RaoFits of one
//     LLC: the median is within RaoSame of 1, and none beyond RaoOutlier.
//  2. Beyond it the remote penalty grows with the working set. Each series is remote /
//     local (same threads, same spread, few adds) over those working sets that are
//     together larger than the LLC that they share: the last ratio exceeds the first by
//     at least RaoGrows, and none is below the one before it by more than RaoNoise.
//  3. LLC contention fades as the working set grows. In each series of intra / inter
//     (same threads, local, few adds) whose highest ratio is at least 1 + RaoMatters:
//     at the largest working set, beyond the LLC, at most RaoFades of that excess is
//     left. Without such a series it is unknown.
//  4. Sharing across sockets dominates for large sharing sizes. RaoEffects of a place
//     (threads, working set, sharing size): sharing S, locality L, LLC contention C.
//     Sharing dominates a place if S is larger than L, C and 1 + RaoMatters. At the
//     largest sharing size it dominates in at least RaoHalf of the places whose
//     threads' sets fit one LLC: elsewhere the cost of memory is in it too. And there
//     the median of S is no more than RaoNoise below that of the smallest sharing size
//     of at least RaoLeast. The evidence has the other places as well.
//  5. The winner of intra- versus inter-socket flips: of all pairs, each side is
//     faster by at least RaoWins in one or more.
//  6. The uncore penalty correlates with the cost of a memory operation (a load of
//     the chase, or an add: a step with an add has two, and two requests):
//     |r| ≥ RaoStrong over the cells that have both and the LLC miss rate, at least
//     RaoCells, and more than the LLC miss rate does. Where all miss rates are the
//     same, they correlate with nothing.
const (
	// RaoFits leaves room for other data in the cache, and for sets that fill unevenly:
	// with small pages at 0.7, one in ten loads misses. Higher judges cells that
	// already miss.
	RaoFits = 0.5
	// RaoSame is "a few per cent": the difference between two runs of the same work.
	RaoSame = 0.05
	// RaoOutlier is the largest difference of a single pair. Lower fails on one bad
	// run.
	RaoOutlier = 0.10
	// RaoGrows is the least growth of the penalty, as a share of the local cost.
	RaoGrows = 0.02
	// RaoNoise is the largest step back of a growing series.
	RaoNoise = 0.02
	// RaoMatters is the least excess that counts as an effect.
	RaoMatters = 0.05
	// RaoHalf is the share of the places in which the dominant factor dominates.
	RaoHalf = 0.5
	// RaoFades is the part that is left of an effect that has faded: half.
	RaoFades = 0.5
	// RaoWins is the least advantage that counts as a win.
	RaoWins = 0.05
	// RaoStrong is the |r| from which a correlation counts (issue: the lab's parity).
	RaoStrong = 0.9
	// RaoLeast is the smallest sharing size of the slides. With less, there are so few
	// lines that threads queue for them, which is another effect.
	RaoLeast = 4 * unit.KiB
	// RaoCells is the number of cells that a correlation needs: with fewer, chance
	// makes one.
	RaoCells = 8
)

// Where threads run and where their memory is (RaoCell).
const (
	Intra  = "intra"
	Inter  = "inter"
	Local  = "local"
	Remote = "remote"
)

// Verdict says whether figures confirm a statement.
type Verdict string

// The verdicts. Unknown: cells that it needs are missing.
const (
	Confirmed    Verdict = "confirmed"
	NotConfirmed Verdict = "not confirmed"
	CannotTell   Verdict = "cannot be told"
)

// RaoFinding is one statement, and the result of the grid for it.
type RaoFinding struct {
	Statement string     `json:"statement"`
	Verdict   Verdict    `json:"verdict"`
	Evidence  string     `json:"evidence"` // a sentence, with the figures
	Values    []RaoValue `json:"values"`   // the figures behind the verdict
}

// RaoValue is one figure of the evidence: a ratio, or a coefficient.
type RaoValue struct {
	Name  string            `json:"name"`
	Value unit.Opt[float64] `json:"value"`
}

// RaoStatements are the statements in our words, in order.
var RaoStatements = [...]string{
	"While the working sets fit the last-level cache, local or remote memory makes no difference.",
	"Beyond the cache, remote memory costs more the larger the working set is.",
	"Threads that share a last-level cache slow each other down, and this fades as the working set grows.",
	"With many shared lines, sharing across sockets costs more than anything else.",
	"Neither placement always wins: one socket is faster in some cells, several are in others.",
	"The uncore penalty predicts the cost of an operation, and better than the LLC miss rate does.",
}

// RaoFindings judges the statements. An llc of 0 is unknown: then every statement that
// needs it is unknown.
func RaoFindings(cells []RaoCell, llc unit.Bytes) []RaoFinding {
	g := newRaoGrid(cells, llc)
	tests := []func() RaoFinding{g.fitting, g.penalty, g.contention, g.sharing, g.winner, g.correlation}
	out := make([]RaoFinding, len(tests))
	for i, test := range tests {
		out[i] = test()
		out[i].Statement = RaoStatements[i]
	}
	return out
}

// Correlation is Pearson's r of pairs; not ok with fewer than three, or if one side is
// constant.
func Correlation(x, y []float64) (r float64, ok bool) {
	n := len(x)
	if n < 3 || len(y) != n {
		return 0, false
	}
	mx, my := experiment.Mean(x), experiment.Mean(y)
	var xx, yy, xy float64
	for i := range x {
		dx, dy := x[i]-mx, y[i]-my
		xx, yy, xy = xx+dx*dx, yy+dy*dy, xy+dx*dy
	}
	r = xy / math.Sqrt(xx*yy)
	if math.IsNaN(r) || math.IsInf(r, 0) {
		return 0, false
	}
	return min(max(r, -1), 1), true
}

// raoGrid is the cells that have a cost.
type raoGrid struct {
	cells     []RaoCell
	cost      map[RaoKey]float64
	keys      []RaoKey // in order
	llc       unit.Bytes
	few, most unit.Bytes // sharing sizes
	least     unit.Bytes // the smallest of those larger than few
	inCycles  bool
}

func newRaoGrid(cells []RaoCell, llc unit.Bytes) raoGrid {
	g := raoGrid{cells: cells, cost: map[RaoKey]float64{}, llc: llc}
	for i, c := range cells {
		g.inCycles = g.inCycles || !c.PerOp.Median.Known()
		if i == 0 || c.Sharing < g.few {
			g.few = c.Sharing
		}
		g.most = max(g.most, c.Sharing)
	}
	g.least = g.most
	for _, c := range cells {
		if c.Sharing > g.few && c.Sharing >= RaoLeast {
			g.least = min(g.least, c.Sharing)
		}
		if v, ok := g.costOf(c); ok {
			k := c.Key()
			if _, twice := g.cost[k]; !twice {
				g.keys = append(g.keys, k)
			}
			g.cost[k] = v // the later one, of a cell measured again
		}
	}
	slices.SortFunc(g.keys, func(a, b RaoKey) int {
		return cmp.Or(cmp.Compare(a.Threads, b.Threads), cmp.Compare(a.Sharing, b.Sharing), cmp.Compare(a.Spread, b.Spread),
			cmp.Compare(a.Memory, b.Memory), cmp.Compare(a.WS, b.WS))
	})
	return g
}

func (g raoGrid) costOf(c RaoCell) (float64, bool) {
	f := c.PerOp
	if g.inCycles {
		f = c.Cycles
	}
	v, ok := f.Median.Get()
	return v, ok && v > 0
}

// raoRatio is the cost of a cell relative to that of the cell it is compared with.
type raoRatio struct {
	RaoKey
	v float64
}

// ratios compares the cells that keep accepts with their counterparts by other.
func (g raoGrid) ratios(keep func(RaoKey) bool, other func(RaoKey) RaoKey) []raoRatio {
	var out []raoRatio
	for _, k := range g.keys {
		if base, ok := g.cost[other(k)]; ok && keep(k) && other(k) != k {
			out = append(out, raoRatio{k, g.cost[k] / base})
		}
	}
	return out
}

func withMemory(m string) func(RaoKey) RaoKey {
	return func(k RaoKey) RaoKey { k.Memory = m; return k }
}

func withSpread(s string) func(RaoKey) RaoKey {
	return func(k RaoKey) RaoKey { k.Spread = s; return k }
}

// demand is what the threads would fill of one LLC if all of them ran on it.
func (k RaoKey) demand() unit.Bytes { return unit.Bytes(k.Threads) * k.WS }

// onOne is what they fill of the LLC with most of them. Inter cells that are compared
// run on two.
func (k RaoKey) onOne() unit.Bytes {
	if k.Spread == Inter {
		return unit.Bytes((k.Threads+1)/2) * k.WS
	}
	return k.demand()
}

// fits says that all working sets fit the LLC, whatever CPUs the threads run on.
func (g raoGrid) fits(k RaoKey) bool { return float64(k.demand()) <= RaoFits*float64(g.llc) }

func values(list []raoRatio) []float64 {
	out := make([]float64, len(list))
	for i, r := range list {
		out[i] = r.v
	}
	return out
}

// medianOf is unknown without values.
func medianOf(list []raoRatio) unit.Opt[float64] { return unit.OptOf(experiment.Median(values(list))) }

func cannot(why string) RaoFinding { return RaoFinding{Verdict: CannotTell, Evidence: why} }

func verdictOf(yes bool) Verdict {
	if yes {
		return Confirmed
	}
	return NotConfirmed
}

const llcUnknown = "The size of the last-level cache is unknown."

// fitting is number 1.
func (g raoGrid) fitting() RaoFinding {
	if g.llc <= 0 {
		return cannot(llcUnknown)
	}
	pairs := g.ratios(func(k RaoKey) bool { return k.Memory == Remote && k.Sharing == g.few && g.fits(k) }, withMemory(Local))
	m, ok := medianOf(pairs).Get()
	if !ok {
		return cannot("No pair of cells, local and remote, has working sets that fit.")
	}
	low, high := slices.Min(values(pairs)), slices.Max(values(pairs))
	same := math.Abs(m-1) <= RaoSame && low >= 1-RaoOutlier && high <= 1+RaoOutlier
	return RaoFinding{
		Verdict:  verdictOf(same),
		Evidence: fmt.Sprintf("Remote / local is %s in the median of %d pairs that fit, %s to %s.", render.Ratio(m), len(pairs), render.Ratio(low), render.Ratio(high)),
		Values:   []RaoValue{{"remote/local, median", unit.Some(m)}, {"lowest", unit.Some(low)}, {"highest", unit.Some(high)}},
	}
}

// series groups ratios that differ by working set only, ascending.
func series(list []raoRatio) [][]raoRatio {
	var out [][]raoRatio
	for i, r := range list {
		last := r.RaoKey
		if i > 0 {
			last = list[i-1].RaoKey
		}
		last.WS = r.WS
		if i == 0 || last != r.RaoKey {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], r)
	}
	return out
}

// placed says how many threads there are, and how they are spread.
func (k RaoKey) placed() string { return fmt.Sprintf("%d threads %s", k.Threads, k.Spread) }

// penalty is number 2.
func (g raoGrid) penalty() RaoFinding {
	if g.llc <= 0 {
		return cannot(llcUnknown)
	}
	beyond := func(k RaoKey) bool { return k.Memory == Remote && k.Sharing == g.few && k.onOne() > g.llc }
	grown, judged, text := 0, 0, ""
	var v []RaoValue
	for _, s := range series(g.ratios(beyond, withMemory(Local))) {
		first, last := s[0], s[len(s)-1]
		if len(s) < 2 {
			continue
		}
		judged++
		if grows(s) {
			grown++
		}
		text += fmt.Sprintf("%s: %s at %v, %s at %v. ", first.placed(), render.Number(first.v), first.WS, render.Number(last.v), last.WS)
		v = append(v, RaoValue{first.placed() + ", first", unit.Some(first.v)}, RaoValue{first.placed() + ", last", unit.Some(last.v)})
	}
	if judged == 0 {
		return cannot("No series has two working sets beyond the cache, local and remote.")
	}
	return RaoFinding{Verdict: verdictOf(grown == judged), Values: v,
		Evidence: fmt.Sprintf("Remote / local grows in %d of %d series. %s", grown, judged, trimmed(text))}
}

func trimmed(text string) string { return text[:max(0, len(text)-1)] }

func grows(s []raoRatio) bool {
	for i := 1; i < len(s); i++ {
		if s[i].v < s[i-1].v-RaoNoise {
			return false
		}
	}
	return s[len(s)-1].v-s[0].v >= RaoGrows
}

// contention is number 3.
func (g raoGrid) contention() RaoFinding {
	if g.llc <= 0 {
		return cannot(llcUnknown)
	}
	local := func(k RaoKey) bool {
		return k.Spread == Intra && k.Memory == Local && k.Sharing == g.few && k.Threads > 1
	}
	faded, judged, text := 0, 0, ""
	var v []RaoValue
	for _, s := range series(g.ratios(local, withSpread(Inter))) {
		last := s[len(s)-1]
		top := slices.MaxFunc(s, func(a, b raoRatio) int { return cmp.Compare(a.v, b.v) })
		if last.demand() <= g.llc || top.v < 1+RaoMatters {
			continue
		}
		judged++
		if last.v-1 <= RaoFades*(top.v-1) {
			faded++
		}
		text += fmt.Sprintf("%d threads: %s at %v, %s at %v. ", top.Threads, render.Number(top.v), top.WS, render.Number(last.v), last.WS)
		v = append(v, RaoValue{fmt.Sprintf("%d threads, highest", top.Threads), unit.Some(top.v)}, RaoValue{fmt.Sprintf("%d threads, last", top.Threads), unit.Some(last.v)})
	}
	if judged == 0 {
		return cannot(fmt.Sprintf("Nowhere does intra cost %s more than inter, with a larger working set beyond the cache to compare with.", render.WholePercent(RaoMatters)))
	}
	return RaoFinding{Verdict: verdictOf(faded == judged), Values: v,
		Evidence: fmt.Sprintf("Intra / inter fades to less than half of its excess in %d of %d series. %s", faded, judged, trimmed(text))}
}

// winner is number 5.
func (g raoGrid) winner() RaoFinding {
	pairs := g.ratios(func(k RaoKey) bool { return k.Spread == Inter && k.Threads > 1 }, withSpread(Intra))
	if len(pairs) < 2 {
		return cannot("Fewer than two pairs of cells, intra and inter, to compare.")
	}
	intra, inter := 0, 0
	for _, p := range pairs {
		switch {
		case p.v >= 1+RaoWins:
			intra++
		case p.v <= 1/(1+RaoWins):
			inter++
		}
	}
	low, high := slices.Min(values(pairs)), slices.Max(values(pairs))
	return RaoFinding{
		Verdict: verdictOf(intra > 0 && inter > 0),
		Evidence: fmt.Sprintf("Of %d pairs, intra is faster in %d, inter in %d, by at least %s; inter / intra goes from %s to %s.",
			len(pairs), intra, inter, render.WholePercent(RaoWins), render.Number(low), render.Number(high)),
		Values: []RaoValue{{"intra faster", unit.Some(float64(intra))}, {"inter faster", unit.Some(float64(inter))},
			{"inter/intra, lowest", unit.Some(low)}, {"inter/intra, highest", unit.Some(high)}},
	}
}

// correlation is number 6.
func (g raoGrid) correlation() RaoFinding {
	c := CorrelationsOf(g.cells)
	v := []RaoValue{{"r of the uncore penalty", c.Penalty}, {"r of the LLC miss rate", c.MissRate}, {"cells", unit.Some(float64(c.N))}}
	r, ok := c.Penalty.Get()
	switch {
	case c.N < RaoCells:
		return cannot(fmt.Sprintf("%d cells have cost, uncore penalty and LLC miss rate; it takes %d.", c.N, RaoCells))
	case !ok:
		return cannot("All cells have the same uncore penalty or the same cost.")
	}
	other, said := math.Abs(c.MissRate.Or(0)), "none: it is always the same"
	if m, ok := c.MissRate.Get(); ok {
		said = render.Ratio(m)
	}
	f := RaoFinding{Values: v, Verdict: verdictOf(math.Abs(r) >= RaoStrong && math.Abs(r) > other),
		Evidence: fmt.Sprintf("Over n = %d cells r is %s for the uncore penalty; for the LLC miss rate %s.", c.N, render.Ratio(r), said)}
	for _, some := range []struct {
		name string
		adds bool
	}{{"without", false}, {"with", true}} {
		part := CorrelationsOf(slices.DeleteFunc(slices.Clone(g.cells), func(c RaoCell) bool { return (c.Sharing > g.few) != some.adds }))
		if part.N == c.N || part.N < RaoCells {
			continue
		}
		f.Evidence += fmt.Sprintf(" %s adds (n = %d): %s and %s.", strings.ToUpper(some.name[:1])+some.name[1:], part.N, render.Ratio(part.Penalty.Or(0)), render.Ratio(part.MissRate.Or(0)))
		f.Values = append(f.Values, RaoValue{"r of the uncore penalty, " + some.name + " adds", part.Penalty}, RaoValue{"r of the LLC miss rate, " + some.name + " adds", part.MissRate})
	}
	if pairs, penalty, miss := g.tells(); pairs > 0 {
		f.Evidence += fmt.Sprintf(" Of %d pairs of placements of one load that differ by %s, the penalty shows the cheaper in %d, the miss rate in %d.", pairs, render.WholePercent(RaoWins), penalty, miss)
	}
	return f
}

// tells counts pairs of placements of one load, and the pairs in which a lower penalty,
// or a lower miss rate, is the cheaper one's: a scheduler needs that from an index.
func (g raoGrid) tells() (pairs, penalty, miss int) {
	for i, a := range g.cells {
		for _, b := range g.cells[:i] {
			costA, ok1 := g.costOf(a)
			costB, ok2 := g.costOf(b)
			if !ok1 || !ok2 || a.Threads != b.Threads || a.WS != b.WS || a.Sharing != b.Sharing {
				continue
			}
			cheap, dear := a, b
			if costA > costB {
				cheap, dear = b, a
			}
			if max(costA, costB) < min(costA, costB)*(1+RaoWins) {
				continue
			}
			pairs++
			if less(cheap.Penalty, dear.Penalty) {
				penalty++
			}
			if less(cheap.MissRate, dear.MissRate) {
				miss++
			}
		}
	}
	return pairs, penalty, miss
}

func less(a, b Figure) bool {
	x, ok1 := a.Median.Get()
	y, ok2 := b.Median.Get()
	return ok1 && ok2 && x < y
}

// Accesses are the memory operations of a chase step: its load, and its part of an add.
func (c RaoCell) Accesses() float64 {
	if c.AddEvery <= 0 {
		return 1
	}
	return 1 + 1/float64(c.AddEvery)
}

// Correlations are r with the cost of a memory operation, over the cells that have all.
type Correlations struct {
	N                 int
	Penalty, MissRate unit.Opt[float64]
}

// CorrelationsOf is the basis of number 6.
func CorrelationsOf(cells []RaoCell) Correlations {
	g := raoGrid{inCycles: !slices.ContainsFunc(cells, func(c RaoCell) bool { return !c.Cycles.Median.Known() })}
	var cost, penalty, miss []float64
	for _, c := range cells {
		v, ok := g.costOf(c)
		p, ok1 := c.Penalty.Median.Get()
		m, ok2 := c.MissRate.Median.Get()
		if ok && ok1 && ok2 {
			cost, penalty, miss = append(cost, v/c.Accesses()), append(penalty, p), append(miss, m)
		}
	}
	return Correlations{N: len(cost), Penalty: unit.OptOf(Correlation(penalty, cost)), MissRate: unit.OptOf(Correlation(miss, cost))}
}
