// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"homenode/internal/kernel/membench"
	"homenode/internal/profile"
	"homenode/internal/render"
	"homenode/internal/unit"
)

const (
	// loadLimit is how much of a CPU other programs may use during a part. Daemons of
	// an idle host use less than a tenth.
	loadLimit = 0.1
	// loadLeast is the shortest part for which the load of other programs is judged:
	// the kernel counts CPU time in ticks of up to 10 ms, for each CPU.
	loadLeast = 500 * time.Millisecond
	// spreadLimit is the (max - min) / median above which a figure is not steady: the
	// 5 % that a profile of an idle host promises.
	spreadLimit = 0.05
	// agreeLLC is the largest ratio at which two sizes of the last-level cache agree:
	// the steps of the scan are half octaves, and its ramp is wide.
	agreeLLC = 2
)

// watch gathers what decides how far figures can be trusted.
type watch struct {
	first  membench.Conditions
	unread error            // why some of them are unknown
	prior  []profile.Caveat // of parts measured before, with their names
	parts  []profile.Part   // measured now, so far

	at     time.Time // the current part's begin
	before membench.Conditions
	own    time.Duration // upper bound of our threads' CPU time in this part

	asked, cycles bool // cycles were requested, and were counted
	load          float64
	loaded, hot   []profile.Part
}

func (w *watch) begin(b *bench, part profile.Part) {
	w.parts = append(w.parts, part)
	w.at, w.own = b.o.Now(), 0
	w.before, _ = b.prober.Conditions() // what could not be read is unknown
}

// ran notes that this many threads of ours may have run for this long. It is too much
// when one thread sets up a job: the load of other programs is then found late, never
// invented.
func (w *watch) ran(took time.Duration, threads int) { w.own += took * time.Duration(threads) }

func (w *watch) counted(job membench.Job, r membench.Result) {
	for i, t := range job.Threads {
		w.asked = w.asked || t.Count
		w.cycles = w.cycles || t.Count && r.Threads[i].Cycles.Known()
	}
}

// end compares the conditions with those at the part's begin.
func (w *watch) end(b *bench, part profile.Part) {
	now, _ := b.prober.Conditions()
	wall := b.o.Now().Sub(w.at)
	if cpus, ok := othersLoad(w.before, now, w.own, wall, b.m.OnlineCPUs().Len()); ok && cpus > loadLimit {
		w.load, w.loaded = max(w.load, cpus), append(w.loaded, part)
	}
	t0, ok0 := w.before.Throttled.Get()
	t1, ok1 := now.Throttled.Get()
	if ok0 && ok1 && t1 > t0 {
		w.hot = append(w.hot, part)
	}
}

// othersLoad is the number of a machine's CPUs that other programs kept busy.
func othersLoad(before, after membench.Conditions, own, wall time.Duration, cpus int) (float64, bool) {
	b0, ok0 := before.Busy.Get()
	b1, ok1 := after.Busy.Get()
	if !ok0 || !ok1 || wall < loadLeast {
		return 0, false
	}
	return min(float64(cpus), float64(b1-b0-own)/float64(wall)), true
}

// caveats are the reasons not to trust figures, worst first: those about the machine or
// seen in the figures; those about the current measurement; and those about earlier
// ones (prior). A caveat about everything names no parts.
func (b *bench) caveats() []profile.Caveat {
	have := measured(b.profile)
	all := b.lasting()
	lasting := len(all)
	for _, c := range append(b.passing(), b.watch.prior...) {
		if c.Parts = among(c.Parts, have); len(c.Parts) > 0 {
			all = merge(all, c)
		}
	}
	for i, c := range all[lasting:] {
		if len(c.Parts) == len(have) && !slices.Contains(alwaysNamed, c.Code) {
			all[lasting+i].Parts = nil
		}
	}
	if parts, worst, what := unsteady(b.profile); len(parts) > 0 {
		all = append(all, profile.Caveat{Code: "spread", Text: fmt.Sprintf("Repeats differ by more than %s: by %s at worst, in %s.", render.WholePercent(spreadLimit), render.WholePercent(worst), what), Parts: parts})
	}
	return all
}

// among are the parts that are also in others.
func among(parts, others []profile.Part) []profile.Part {
	return slices.DeleteFunc(slices.Clone(parts), func(part profile.Part) bool { return !slices.Contains(others, part) })
}

// alwaysNamed are codes whose parts are always named.
var alwaysNamed = []string{"other-load", "thermal"}

// lasting are caveats about machine and profile: they are made again each time.
func (b *bench) lasting() (all []profile.Caveat) {
	add := func(code, text string) { all = append(all, profile.Caveat{Code: code, Text: text}) }
	if b.how == unit.HowModelled {
		add("modelled", "Times are of the lab's model, not of this machine.")
	}
	if c := b.watch.first; c.Hypervisor != "" {
		add("virtual-machine", fmt.Sprintf("This is a virtual machine (%s): nodes, caches and distances may be invented, and neighbours are not visible.", c.Hypervisor))
	}
	if only := b.profile.Only(); only != "" {
		add("restricted", fmt.Sprintf("It was measured with %s: the rest of the machine is missing.", only))
	}
	if text := b.disagree(); text != "" {
		add("cache-size", text)
	}
	return all
}

// passing are caveats about the parts that are measured now.
func (b *bench) passing() (all []profile.Caveat) {
	w, c := &b.watch, b.watch.first
	add := func(when bool, code, text string, parts []profile.Part) {
		if when && len(parts) > 0 {
			all = append(all, profile.Caveat{Code: code, Text: text, Parts: parts})
		}
	}
	add(true, "other-load", fmt.Sprintf("Other programs kept up to %s CPUs busy while this was measured.", render.Tenths(w.load)), w.loaded)
	add(true, "thermal", "CPUs were slowed down because they were too hot.", w.hot)
	if w.unread != nil {
		add(true, "conditions", "Whether anything else disturbed the measurement is unknown: "+strings.Join(strings.Fields(w.unread.Error()), " ")+".", w.parts)
	}
	add(c.Governor != "" && c.Governor != "performance", "governor", fmt.Sprintf("The CPU frequency governor is %q, not performance: clocks vary.", c.Governor), w.parts)
	add(c.Balancing.Or(false), "balancing", "NUMA balancing is on: it may have moved pages meanwhile.", w.parts)
	add(!b.huge, "small-pages", "Huge pages are not available: latencies of large working sets include page walks.", w.parts)
	add(w.asked && !w.cycles, "no-cycles", "The cycles counter could not be read: there are no figures in cycles.", w.parts)
	return all
}

// priorCaveats are the caveats of a continued profile about its parts, which are now
// named: the parts that follow may be measured under better conditions.
func priorCaveats(p profile.Profile) (kept []profile.Caveat) {
	have := measured(p)
	for _, c := range p.Caveats {
		if slices.Contains([]string{"modelled", "virtual-machine", "restricted", "cache-size", "spread"}, c.Code) {
			continue // made again
		}
		if len(c.Parts) == 0 {
			c.Parts = have
		}
		if c.Parts = among(c.Parts, have); len(c.Parts) > 0 {
			kept = append(kept, c)
		}
	}
	return kept
}

// merge adds a caveat, or adds its parts to the same caveat of other parts.
func merge(all []profile.Caveat, c profile.Caveat) []profile.Caveat {
	i := slices.IndexFunc(all, func(have profile.Caveat) bool { return have.Code == c.Code && have.Text == c.Text })
	if i < 0 {
		return append(all, c)
	}
	var both []profile.Part
	for _, part := range profile.Parts() {
		if slices.Contains(all[i].Parts, part) || slices.Contains(c.Parts, part) {
			both = append(both, part)
		}
	}
	all[i].Parts = both
	return all
}

// measured are the parts with figures in a profile.
func measured(p profile.Profile) (parts []profile.Part) {
	all := byPart(p)
	return slices.DeleteFunc(profile.Parts(), func(part profile.Part) bool { return len(all[part]) == 0 })
}

// byPart are all figures of a profile.
func byPart(p profile.Profile) map[profile.Part][]profile.Figure {
	all := map[profile.Part][]profile.Figure{}
	add := func(part profile.Part, figures ...profile.Figure) { all[part] = append(all[part], figures...) }
	for _, f := range p.WorkingSets {
		add(profile.Caches, f.Figure)
	}
	for _, f := range p.Latency {
		add(profile.Latency, f.Figure)
	}
	for _, f := range p.Bandwidth {
		add(profile.Bandwidth, f.Figure)
	}
	for _, f := range p.Peak {
		add(profile.Bandwidth, f.Figure)
	}
	for _, f := range p.Mixes {
		add(profile.Mixes, f.Figure)
	}
	for _, c := range p.Loaded {
		for _, f := range c.Points {
			add(profile.Loaded, f.Bandwidth, f.Latency)
		}
	}
	for _, f := range p.CacheSharing {
		add(profile.CacheSharing, f.Alone, f.Together)
	}
	for _, f := range p.CoreToCore {
		add(profile.CoreToCore, f.Figure)
	}
	for _, f := range p.Migration {
		add(profile.Migrating, f.PerPage)
	}
	for _, f := range p.Policies {
		add(profile.Policies, f.Figure)
	}
	for _, f := range p.Rao {
		add(profile.Rao, f.PerOp)
	}
	return all
}

// disagree says that the scan found a last-level cache other than the firmware's. A
// part of a large one may not be ours, and a scan may end early.
func (b *bench) disagree() string {
	measured, ok := b.profile.LLC()
	expected := b.expectedLLC()
	if !ok || expected == 0 || max(measured, expected) <= agreeLLC*min(measured, expected) {
		return ""
	}
	return fmt.Sprintf("The scan found a last-level cache of %v, the firmware says %v: buffers are sized by the larger.", measured, expected)
}

// unsteady are the parts that have figures with a large spread.
func unsteady(p profile.Profile) (parts []profile.Part, worst float64, what string) {
	all := byPart(p)
	for _, part := range profile.Parts() {
		most := 0.0
		for _, f := range all[part] {
			most = max(most, f.Spread())
		}
		if most > spreadLimit {
			parts = append(parts, part)
		}
		if most > max(worst, spreadLimit) {
			worst, what = most, strings.ReplaceAll(string(part), "-", " ")
		}
	}
	return parts, worst, what
}
