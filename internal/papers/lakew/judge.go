// SPDX-License-Identifier: Apache-2.0

package lakew

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"homenode/internal/experiment"
	"homenode/internal/sim/arena"
	"homenode/internal/sim/catalog"
	"homenode/internal/sim/runner"
)

// Paper names the source in rows.
const Paper = "Lakew 2025"

// The limits of the verdicts. They were fixed before there was a result.
const (
	muchFaster = 2.0  // "far better than": this many times as fast, in every seed
	alike      = 1.25 // "the same": within this factor
	closely    = 2.0  // a factor is reproduced within this factor
	steadier   = 10.0 // the spread falls by at least this factor (the target)
	unsteady   = 0.4  // Linux's sigma/mean is above this (paper)
	steady     = 0.04 // the mappings' is below this (paper)
	loosely    = 0.10 // an application that varies by more is named
)

// judge holds what the verdicts are based on.
type judge struct {
	groups  []*group // of the paper's machine
	seeds   []uint64
	against string
	measured
}

// measured holds the results that do not come from the arena's cells.
type measured struct {
	curve   []Point
	guesses []Guess
	why     string // why it is empty
}

// statements are the paper's. Its ordering was the target.
func statements() []arena.Statement[*judge] {
	all := []arena.Statement[*judge]{
		{Paper: Paper, Text: "Linux's default is far slower than either mapping.", Theirs: "≈ 50×", Target: true, Judge: (*judge).order},
		{Paper: Paper, Text: "SM-IPC and SM-MPI come to the same.", Theirs: "within 1.4× for each application", Target: true, Judge: (*judge).same},
		{Paper: Paper, Text: "On the average over applications the mappings are some 50 times as fast as Linux's default.", Theirs: "≈ 50×", Judge: (*judge).size},
	}
	for _, t := range theirs {
		all = append(all, arena.Statement[*judge]{Paper: Paper, Text: t.app + ": so many times as fast as with Linux's default.", Theirs: both(t.ipc, t.mpi),
			Judge: func(j *judge) arena.Finding { return j.factor(byApp(j.groups, t.app), t.ipc, t.mpi) }})
	}
	all = append(all, arena.Statement[*judge]{Paper: Paper, Text: "Which applications gain more than others: Derby most, then Stream, the rest far less.", Theirs: "Derby > Stream > Sunflow ≈ FFT > Sockshop > SOR", Judge: (*judge).ranks})
	for _, t := range streams {
		all = append(all, arena.Statement[*judge]{Paper: Paper, Text: fmt.Sprintf("Stream in %s VMs: so many times as fast as with Linux's default.", t.size), Theirs: both(t.ipc, t.mpi),
			Judge: func(j *judge) arena.Finding { return j.factor(bySize(byApp(j.groups, "stream"), t.size), t.ipc, t.mpi) }})
	}
	return append(all, []arena.Statement[*judge]{
		{Paper: Paper, Text: "Small and medium VMs gain most.", Theirs: "Stream: small 48×, medium 105×, large 41×", Target: true, Judge: (*judge).sizes},
		{Paper: Paper, Text: "Run-time variation (σ/mean of an application in VMs of a size) falls from more than 0.4 to less than 0.04.", Theirs: "> 0.4 → < 0.04", Target: true, Judge: (*judge).spreads},
		{Paper: Paper, Text: "A program that computes (mpegaudio) loses a little with its memory on another node of the server (16, 22).", Theirs: "5 to 10 %", Judge: (*judge).near},
		{Paper: Paper, Text: "… and not much more with its memory in another server (160, 200).", Theirs: "at most 17 %", Judge: (*judge).far},
		{Paper: Paper, Text: "Neo4j, Sockshop and Derby are sheep, SPECjvm2008's programs rabbits and devils, Stream is a devil.", Theirs: "given by hand", Judge: (*judge).classes},
		{Paper: Paper, Text: "Classes need not be given by hand: they show in counters (the paper's future work).", Theirs: "given by hand", Judge: (*judge).inferred},
		{Paper: Paper, Text: "The mapping works with KVM guests through libvirt: vCPUs pinned, memory migrated.", Theirs: "done so", Judge: guests},
		{Paper: Paper, Text: "On the paper's hardware (six servers, NumaConnect, 288 cores) the figures are as published.", Theirs: "as published", Judge: hardware},
	}...)
}

// Judge returns a verdict for each of the paper's statements. It measures the curve and the
// classes itself, since they do not compare policies.
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
	j := &judge{groups: groupsOf(r, catalog.Torus), seeds: r.Seeds, against: r.Against, measured: m}
	if j.against == "" {
		j.against = runner.None
	}
	return arena.Judge(statements(), j)
}

// pair is the figure of SM-IPC and the figure of SM-MPI.
func (j *judge) pair(groups []*group) (ipc, mpi float64, ok bool) {
	ipc, n := factorOf(groups, runner.SMIPC, j.against)
	mpi, m := factorOf(groups, runner.SMMPI, j.against)
	return ipc, mpi, n > 0 && m > 0
}

// order: Linux's default is far slower than either mapping.
func (j *judge) order() arena.Finding {
	ipc, mpi, ok := j.pair(j.groups)
	if !ok {
		return arena.Untested("The result has no runs of both mappings and of Linux alone.")
	}
	worst := min(leastFactor(j.groups, runner.SMIPC, j.against, j.seeds), leastFactor(j.groups, runner.SMMPI, j.against, j.seeds))
	sentence := fmt.Sprintf("Geometric mean over applications and sizes; in the worst of %d seeds it is %s, and %s was asked for.", len(j.seeds), times(worst), times(muchFaster))
	if f, n := factorOf(j.groups, runner.NUMABalancing, j.against); n > 0 {
		sentence += fmt.Sprintf(" The kernel's NUMA balancing, which the paper does not have, comes to %s.", times(f))
	}
	return arena.Found(worst >= muchFaster, both(ipc, mpi), sentence)
}

// same: SM-IPC and SM-MPI do not differ.
func (j *judge) same() arena.Finding {
	ipc, mpi, ok := j.pair(j.groups)
	if !ok {
		return arena.Untested("The result has no runs of both mappings.")
	}
	apart := max(ipc/mpi, mpi/ipc)
	return arena.Found(apart <= alike, times(apart)+" apart",
		fmt.Sprintf("%s beside Linux alone; up to %s apart is called the same.", both(ipc, mpi), times(alike)))
}

// size: how large the mean gain is.
func (j *judge) size() arena.Finding {
	ipc, mpi, ok := j.pair(j.groups)
	if !ok {
		return arena.Untested("The result has no runs of both mappings and of Linux alone.")
	}
	sum, n := 0.0, 0
	for _, g := range j.groups {
		if f, ok := g.factor(runner.SMIPC, j.against); ok {
			sum += f
			n++
		}
	}
	f := sum / float64(max(1, n))
	sentence := fmt.Sprintf("%s as arithmetic mean of SM-IPC's factors, %s as geometric means. %s", times(f), both(ipc, mpi), j.because(j.groups)) +
		" What is more than that is waiting at links and controllers (decision 0025); what guests add on real machines (locks whose holder does not run, remote page tables, interrupts, coherence between servers) is not modelled."
	return arena.Found(within(f, 50), times(f), sentence)
}

// theirs has the paper's factors over Linux's default (SM-IPC, SM-MPI).
var theirs = []struct {
	app      string
	ipc, mpi float64
}{
	{"derby", 215, 241}, {"fft", 33, 37}, {"sockshop", 25, 23}, {"sunflow", 34, 34}, {"sor", 17, 23}, {"stream", 105, 105},
}

// factor judges both mappings against Linux's default.
func (j *judge) factor(groups []*group, ipc, mpi float64) arena.Finding {
	ours, also, ok := j.pair(groups)
	if !ok {
		return arena.Untested("The result has no runs of it with both mappings and with Linux alone.")
	}
	return arena.Found(within(ours, ipc) && within(also, mpi), both(ours, also), j.because(groups))
}

// ranks judges the order of the applications' factors.
func (j *judge) ranks() arena.Finding {
	var a, b []float64
	for _, t := range theirs {
		if ipc, _, ok := j.pair(byApp(j.groups, t.app)); ok {
			a, b = append(a, t.ipc), append(b, ipc)
		}
	}
	if len(a) < len(theirs) {
		return arena.Untested("The result does not have all of the applications.")
	}
	c := concordance(a, b)
	return arena.Found(c >= 0.8, strings.Join(ranking(b), " > "), fmt.Sprintf("%.0f %% of the pairs of applications are in the paper's order; 80 %% was asked for.", 100*c))
}

// ranking names the applications, the largest figure first.
func ranking(ours []float64) []string {
	at := make([]int, len(ours))
	for i := range at {
		at[i] = i
	}
	slices.SortStableFunc(at, func(x, y int) int { return cmp.Compare(ours[y], ours[x]) })
	names := make([]string, len(at))
	for i, k := range at {
		names[i] = theirs[k].app
	}
	return names
}

// concordance is the share of the pairs that differ in a and have the same order in b.
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

// streams has the paper's factors of Stream by size of VM.
var streams = []struct {
	size     string
	ipc, mpi float64
}{{"small", 48, 47}, {"medium", 105, 105}, {"large", 41, 39}}

// sizes judges whether small and medium VMs gain most. It compares sizes by the
// applications that run in small, medium and large VMs.
func (j *judge) sizes() arena.Finding {
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
		return arena.Untested("The result has no application in VMs of all of these sizes.")
	}
	sentence := "Geometric means over the applications that are in VMs of each of these sizes."
	if ipc, mpi, ok := j.pair(bySize(j.groups, "huge")); ok {
		sentence += fmt.Sprintf(" Huge VMs, which are larger than a server and have other applications: %s.", both(ipc, mpi))
	}
	return arena.Found(min(gain[0], gain[1]) > max(1, gain[2]), strings.Join(parts, ", "), sentence)
}

// spreads judges sigma/mean over runs.
func (j *judge) spreads() arena.Finding {
	var before, after, falls []float64
	var loose []string // pairs that no mapping makes steady
	for _, g := range j.groups {
		b, ok := g.spread(j.against)
		ipc, ok2 := g.spread(runner.SMIPC)
		mpi, ok3 := g.spread(runner.SMMPI)
		if ok && ok2 && ok3 {
			before, after = append(before, b), append(after, max(ipc, mpi))
			falls = append(falls, b/max(ipc, mpi, 1e-6))
			if max(ipc, mpi) > loosely {
				loose = append(loose, g.app+" in "+g.size+" VMs")
			}
		}
	}
	b, ok := experiment.Median(before)
	if !ok {
		return arena.Untested("There are not %d runs of any application in VMs of a size.", leastRuns)
	}
	a, _ := experiment.Median(after)
	f, _ := experiment.Median(falls)
	sentence := fmt.Sprintf("Medians over %d pairs of application and size; the worse of the two mappings counts. It falls by a factor of %.3g (median), and %.3g was asked for. Linux's is more than 0.4 in %d of them, the mappings' less than 0.04 in %d.",
		len(before), f, steadier, count(before, func(x float64) bool { return x > unsteady }), count(after, func(x float64) bool { return x < steady }))
	if len(loose) > 0 {
		slices.Sort(loose)
		sentence += fmt.Sprintf(" With a mapping more than %.2g vary still: %s.", loosely, strings.Join(slices.Compact(loose), ", "))
	}
	return arena.Found(f >= steadier, fmt.Sprintf("%.3g → %.3g", b, a), sentence)
}

func count(all []float64, yes func(float64) bool) (n int) {
	for _, x := range all {
		if yes(x) {
			n++
		}
	}
	return n
}

func within(ours, theirs float64) bool { return ours >= theirs/closely && ours <= theirs*closely }

func times(x float64) string { return fmt.Sprintf("%.3g×", x) }

func both(ipc, mpi float64) string { return fmt.Sprintf("%.3g× / %.3g×", ipc, mpi) }
