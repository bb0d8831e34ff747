// SPDX-License-Identifier: Apache-2.0

package lakew

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"homenode/internal/sim/arena"
	"homenode/internal/sim/arm"
	"homenode/internal/sim/machines"
)

// Paper names the source in rows.
const Paper = "Lakew 2025"

// When a statement holds. Fixed before there was a result.
const (
	muchFaster = 2.0  // "far better than": this many times as fast, in every seed
	alike      = 1.25 // "the same": within this factor
	near       = 2.0  // a factor is reproduced within this factor
	steadier   = 10.0 // the spread falls by at least this factor (issue's target)
	unsteady   = 0.4  // Linux's sigma/mean is more (paper)
	steady     = 0.04 // the mappings' is less (paper)
	loosely    = 0.10 // what varies by more is named
)

// judge is what rows are made from.
type judge struct {
	groups  []*group // of the paper's machine
	seeds   []uint64
	against string
	rows    []arena.Row
	measured
}

// measured is what does not come from the arena's cells.
type measured struct {
	curve   []Point
	guesses []Guess
	why     string // why there are none
}

// Judge says what became of the paper's statements. The curve and the classes are measured
// here: they are no matter of comparing policies.
func Judge(r arena.Result) []arena.Row {
	var m measured
	var err error
	if m.curve, err = Curve(torus(), Applications...); err == nil {
		m.guesses, err = Classes(torus(), Applications...)
	}
	if err != nil {
		m = measured{why: err.Error()}
	}
	return judgeWith(r, m)
}

func judgeWith(r arena.Result, m measured) []arena.Row {
	j := &judge{groups: groupsOf(r, machines.Torus), seeds: r.Seeds, against: r.Against, measured: m}
	if j.against == "" {
		j.against = arm.None
	}
	j.target(j.order)
	j.target(j.same)
	j.size()
	j.factors()
	j.streams()
	j.target(j.sizes)
	j.target(j.spreads)
	j.distances()
	j.classes()
	j.inferred()
	j.rows = append(j.rows, untestable()...)
	return j.rows
}

// target marks what a judgement adds: the paper's ordering was to be reached.
func (j *judge) target(judgement func()) {
	first := len(j.rows)
	judgement()
	for i := range j.rows[first:] {
		j.rows[first+i].Target = true
	}
}

func (j *judge) add(statement, theirs, ours string, ok bool, sentence string) {
	j.rows = append(j.rows, arena.Row{Paper: Paper, Statement: statement, Theirs: theirs, Ours: ours, Verdict: arena.VerdictOf(ok), Sentence: sentence})
}

// unknown is of a statement for which the result has no runs.
func (j *judge) unknown(statement, theirs, why string) {
	j.rows = append(j.rows, arena.Row{Paper: Paper, Statement: statement, Theirs: theirs, Ours: "–", Verdict: arena.CannotTest, Sentence: why})
}

// pair is a figure of SM-IPC and of SM-MPI.
func (j *judge) pair(groups []*group) (ipc, mpi float64, ok bool) {
	ipc, n := factorOf(groups, arm.SMIPC, j.against)
	mpi, m := factorOf(groups, arm.SMMPI, j.against)
	return ipc, mpi, n > 0 && m > 0
}

// order: Linux's default is far slower than either mapping.
func (j *judge) order() {
	const statement = "Linux's default is far slower than either mapping."
	ipc, mpi, ok := j.pair(j.groups)
	if !ok {
		j.unknown(statement, "≈ 50×", "The result has no runs of both mappings and of Linux alone.")
		return
	}
	worst := min(leastFactor(j.groups, arm.SMIPC, j.against, j.seeds), leastFactor(j.groups, arm.SMMPI, j.against, j.seeds))
	sentence := fmt.Sprintf("Geometric mean over applications and sizes; in the worst of %d seeds it is %s, and %s was asked for.", len(j.seeds), times(worst), times(muchFaster))
	if f, n := factorOf(j.groups, arm.NUMABalancing, j.against); n > 0 {
		sentence += fmt.Sprintf(" The kernel's NUMA balancing, which the paper does not have, comes to %s.", times(f))
	}
	j.add(statement, "≈ 50×", both(ipc, mpi), worst >= muchFaster, sentence)
}

// same: SM-IPC and SM-MPI do not differ.
func (j *judge) same() {
	const statement = "SM-IPC and SM-MPI come to the same."
	ipc, mpi, ok := j.pair(j.groups)
	if !ok {
		j.unknown(statement, "within 1.4×", "The result has no runs of both mappings.")
		return
	}
	apart := max(ipc/mpi, mpi/ipc)
	j.add(statement, "within 1.4× for each application", times(apart)+" apart", apart <= alike,
		fmt.Sprintf("%s beside Linux alone; up to %s apart is called the same.", both(ipc, mpi), times(alike)))
}

// size: how large the mean gain is.
func (j *judge) size() {
	const statement = "On the average over applications the mappings are some 50 times as fast as Linux's default."
	ipc, mpi, ok := j.pair(j.groups)
	if !ok {
		j.unknown(statement, "≈ 50×", "The result has no runs of both mappings and of Linux alone.")
		return
	}
	sum, n := 0.0, 0
	for _, g := range j.groups {
		if f, ok := g.factor(arm.SMIPC, j.against); ok {
			sum += f
			n++
		}
	}
	f := sum / float64(max(1, n))
	sentence := fmt.Sprintf("%s as arithmetic mean of SM-IPC's factors, %s as geometric means. %s", times(f), both(ipc, mpi), j.because(j.groups)) +
		" What is more than that is waiting at links and controllers (decision 0025); what guests add on real machines (locks whose holder does not run, remote page tables, interrupts, coherence between servers) is not modelled."
	j.add(statement, "≈ 50×", times(f), within(f, 50), sentence)
}

// theirs are the paper's factors beside Linux's default (SM-IPC, SM-MPI).
var theirs = []struct {
	app      string
	ipc, mpi float64
}{
	{"derby", 215, 241}, {"fft", 33, 37}, {"sockshop", 25, 23}, {"sunflow", 34, 34}, {"sor", 17, 23}, {"stream", 105, 105},
}

// factors: one row an application, and one for their order.
func (j *judge) factors() {
	var a, b []float64
	for _, t := range theirs {
		statement := fmt.Sprintf("%s: so many times as fast as with Linux's default.", t.app)
		mine := byApp(j.groups, t.app)
		ipc, mpi, ok := j.pair(mine)
		if !ok {
			j.unknown(statement, both(t.ipc, t.mpi), "The result has no runs of it with both mappings and with Linux alone.")
			continue
		}
		a, b = append(a, t.ipc), append(b, ipc)
		j.add(statement, both(t.ipc, t.mpi), both(ipc, mpi), within(ipc, t.ipc) && within(mpi, t.mpi), j.because(mine))
	}
	const statement = "Which applications gain more than others: Derby most, then Stream, the rest far less."
	if len(a) < len(theirs) {
		j.unknown(statement, "–", "The result does not have all of the applications.")
		return
	}
	c := concordance(a, b)
	j.add(statement, "Derby > Stream > Sunflow ≈ FFT > Sockshop > SOR", strings.Join(ranking(b), " > "), c >= 0.8,
		fmt.Sprintf("%.0f %% of the pairs of applications are in the paper's order; 80 %% was asked for.", 100*c))
}

// ranking names the applications of theirs by falling figures.
func ranking(ours []float64) []string {
	at := make([]int, len(ours))
	for i := range at {
		at[i] = i
	}
	slices.SortStableFunc(at, func(x, y int) int {
		switch {
		case ours[x] > ours[y]:
			return -1
		case ours[x] < ours[y]:
			return 1
		}
		return 0
	})
	names := make([]string, len(at))
	for i, k := range at {
		names[i] = theirs[k].app
	}
	return names
}

// concordance is the share of pairs that differ in a and that b has in the same order.
func concordance(a, b []float64) float64 {
	pairs, same := 0, 0
	for i := range a {
		for k := range i {
			if a[i] != a[k] {
				pairs++
				if a[i] > a[k] == (b[i] > b[k]) {
					same++
				}
			}
		}
	}
	return float64(same) / float64(max(1, pairs))
}

// streams: Stream by size of VM.
func (j *judge) streams() {
	for _, t := range []struct {
		size     string
		ipc, mpi float64
	}{{"small", 48, 47}, {"medium", 105, 105}, {"large", 41, 39}} {
		statement := fmt.Sprintf("Stream in %s VMs: so many times as fast as with Linux's default.", t.size)
		mine := bySize(byApp(j.groups, "stream"), t.size)
		ipc, mpi, ok := j.pair(mine)
		if !ok {
			j.unknown(statement, both(t.ipc, t.mpi), "The result has no runs of it with both mappings and with Linux alone.")
			continue
		}
		j.add(statement, both(t.ipc, t.mpi), both(ipc, mpi), within(ipc, t.ipc) && within(mpi, t.mpi), j.because(mine))
	}
}

// sizes: small and medium VMs gain most. Sizes are compared by the applications that are
// in small, medium and large ones.
func (j *judge) sizes() {
	const statement = "Small and medium VMs gain most."
	common := keep(j.groups, func(g *group) bool {
		return slices.IndexFunc(Sizes[:3], func(s Size) bool { return len(bySize(byApp(j.groups, g.app), s.Name)) == 0 }) < 0
	})
	ok, parts := true, []string{}
	var gain [3]float64
	for i, s := range Sizes[:3] {
		ipc, mpi, known := j.pair(bySize(common, s.Name))
		gain[i], ok = math.Sqrt(ipc*mpi), ok && known
		parts = append(parts, fmt.Sprintf("%s %s", s.Name, both(ipc, mpi)))
	}
	if !ok {
		j.unknown(statement, "Stream: small 48×, medium 105×, large 41×", "The result has no application in VMs of all of these sizes.")
		return
	}
	sentence := "Geometric means over the applications that are in VMs of each of these sizes."
	if ipc, mpi, ok := j.pair(bySize(j.groups, "huge")); ok {
		sentence += fmt.Sprintf(" Huge VMs, which are larger than a server and have other applications: %s.", both(ipc, mpi))
	}
	j.add(statement, "Stream: small 48×, medium 105×, large 41×", strings.Join(parts, ", "), min(gain[0], gain[1]) > max(1, gain[2]), sentence)
}

// spreads: sigma/mean over runs.
func (j *judge) spreads() {
	const statement = "Run-time variation (σ/mean of an application in VMs of a size) falls from more than 0.4 to less than 0.04."
	var before, after, falls []float64
	var loose []string // that no mapping steadies
	for _, g := range j.groups {
		b, ok := g.spread(j.against)
		ipc, ok2 := g.spread(arm.SMIPC)
		mpi, ok3 := g.spread(arm.SMMPI)
		if ok && ok2 && ok3 {
			before, after = append(before, b), append(after, max(ipc, mpi))
			falls = append(falls, b/max(ipc, mpi, 1e-6))
			if max(ipc, mpi) > loosely {
				loose = append(loose, g.app+" in "+g.size+" VMs")
			}
		}
	}
	b, ok := median(before)
	if !ok {
		j.unknown(statement, "> 0.4 → < 0.04", fmt.Sprintf("There are not %d runs of any application in VMs of a size.", leastRuns))
		return
	}
	a, _ := median(after)
	f, _ := median(falls)
	sentence := fmt.Sprintf("Medians over %d pairs of application and size; the worse of the two mappings counts. It falls by a factor of %.3g (median), and %.3g was asked for. Linux's is more than 0.4 in %d of them, the mappings' less than 0.04 in %d.",
		len(before), f, steadier, count(before, func(x float64) bool { return x > unsteady }), count(after, func(x float64) bool { return x < steady }))
	if len(loose) > 0 {
		slices.Sort(loose)
		sentence += fmt.Sprintf(" With a mapping more than %.2g vary still: %s.", loosely, strings.Join(slices.Compact(loose), ", "))
	}
	j.add(statement, "> 0.4 → < 0.04", fmt.Sprintf("%.3g → %.3g", b, a), f >= steadier, sentence)
}

func count(all []float64, yes func(float64) bool) (n int) {
	for _, x := range all {
		if yes(x) {
			n++
		}
	}
	return n
}

func within(ours, theirs float64) bool { return ours >= theirs/near && ours <= theirs*near }

func times(x float64) string { return fmt.Sprintf("%.3g×", x) }

func both(ipc, mpi float64) string { return fmt.Sprintf("%.3g× / %.3g×", ipc, mpi) }
