// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"homenode/internal/kernel/probe"
	"homenode/internal/profile"
	"homenode/internal/unit"
)

const (
	// loadLimit is how much of a CPU others may use during a part. Daemons of an idle
	// host use less than a tenth.
	loadLimit = 0.1
	// spreadLimit is the (max - min) / median above which a figure is not steady: the
	// 5 % that a profile of an idle host promises.
	spreadLimit = 0.05
	// agreeLLC is up to how many times as large one of two sizes of the last-level
	// cache may be: the steps of the scan are half octaves, and its ramp is wide.
	agreeLLC = 2
)

// watch gathers what decides how far figures can be trusted.
type watch struct {
	first  probe.Conditions
	unread error // why some of them are unknown
	prior  []profile.Caveat

	at     time.Time // the current part's begin
	before probe.Conditions
	own    time.Duration // at most what our threads ran in this part

	asked, cycles bool // cycles were asked for, and came
	load          float64
	loaded, hot   []profile.Part
}

func (w *watch) begin(b *bench) {
	w.at, w.own = b.o.Now(), 0
	w.before, _ = b.prober.Conditions() // what could not be read is unknown
}

// ran notes that this many threads of ours may have run for so long. It is too much
// where a job is set up by one thread: others' load is then found late, never
// invented.
func (w *watch) ran(took time.Duration, threads int) { w.own += took * time.Duration(threads) }

func (w *watch) counted(job probe.Job, r probe.Result) {
	for i, t := range job.Threads {
		w.asked = w.asked || t.Count
		w.cycles = w.cycles || t.Count && r.Threads[i].Cycles.Known()
	}
}

// end compares the conditions with those at the part's begin.
func (w *watch) end(b *bench, part profile.Part) {
	now, _ := b.prober.Conditions()
	wall := b.o.Now().Sub(w.at)
	if cpus, ok := othersLoad(w.before, now, w.own, wall); ok && cpus > loadLimit {
		w.load, w.loaded = max(w.load, cpus), append(w.loaded, part)
	}
	t0, ok0 := w.before.Throttled.Get()
	t1, ok1 := now.Throttled.Get()
	if ok0 && ok1 && t1 > t0 {
		w.hot = append(w.hot, part)
	}
}

// othersLoad is how many CPUs others kept busy.
func othersLoad(before, after probe.Conditions, own, wall time.Duration) (float64, bool) {
	b0, ok0 := before.Busy.Get()
	b1, ok1 := after.Busy.Get()
	if !ok0 || !ok1 || wall <= 0 {
		return 0, false
	}
	return float64(b1-b0-own) / float64(wall), true
}

// caveats are the reasons not to trust figures, worst first.
func (b *bench) caveats() []profile.Caveat {
	var all []profile.Caveat
	add := func(code, text string, parts ...profile.Part) {
		all = append(all, profile.Caveat{Code: code, Text: text, Parts: parts})
	}
	c := b.watch.first
	if b.how == unit.HowModelled {
		add("modelled", "Times are of the lab's model, not of this machine.")
	}
	if c.Hypervisor != "" {
		add("virtual-machine", fmt.Sprintf("This is a virtual machine (%s): nodes, caches and distances may be made up, and neighbours are not seen.", c.Hypervisor))
	}
	if only := b.profile.Only(); only != "" {
		add("restricted", fmt.Sprintf("It was measured with %s: what the rest of the machine can do is not in it.", only))
	}
	if text := b.disagree(); text != "" {
		add("cache-size", text)
	}
	if len(b.watch.loaded) > 0 {
		add("other-load", fmt.Sprintf("Other programs kept up to %.1f CPUs busy while this was measured.", b.watch.load), b.watch.loaded...)
	}
	if len(b.watch.hot) > 0 {
		add("thermal", "CPUs were slowed down because they were too hot.", b.watch.hot...)
	}
	for _, p := range b.watch.prior {
		if p.Code == "other-load" || p.Code == "thermal" { // of parts measured before
			all = append(all, p)
		}
	}
	if b.watch.unread != nil {
		add("conditions", "It could not be read whether anything else disturbed the measurement: "+strings.Join(strings.Fields(b.watch.unread.Error()), " ")+".")
	}
	if c.Governor != "" && c.Governor != "performance" {
		add("governor", fmt.Sprintf("The CPU frequency governor is %q, not performance: clocks vary.", c.Governor))
	}
	if c.Balancing.Or(false) {
		add("balancing", "NUMA balancing is on: it may have moved pages meanwhile.")
	}
	if !b.huge {
		add("small-pages", "Huge pages cannot be asked for: latencies of large working sets include page walks.")
	}
	if b.watch.asked && !b.watch.cycles {
		add("no-cycles", "The cycles counter could not be read: there are no figures in cycles.")
	}
	if parts, worst, what := unsteady(b.profile); len(parts) > 0 {
		add("spread", fmt.Sprintf("Repeats differ by more than %.0f %%: by %.0f %% at worst, in %s.", spreadLimit*100, worst*100, what), parts...)
	}
	return all
}

// disagree says that the scan found another last-level cache than the firmware tells
// of. A part of a large one may not be ours, and a scan may end early.
func (b *bench) disagree() string {
	measured, ok := b.profile.LLC()
	told := b.told()
	if !ok || told == 0 || max(measured, told) <= agreeLLC*min(measured, told) {
		return ""
	}
	return fmt.Sprintf("The scan found a last-level cache of %v, the firmware says %v: buffers are sized by the larger.", measured, told)
}

// unsteady are the parts that have figures of a large spread.
func unsteady(p profile.Profile) (parts []profile.Part, worst float64, what string) {
	look := func(part profile.Part, figures ...profile.Figure) {
		for _, f := range figures {
			s := f.Spread()
			if s <= spreadLimit {
				continue
			}
			if !slices.Contains(parts, part) {
				parts = append(parts, part)
			}
			if s > worst {
				worst, what = s, strings.ReplaceAll(string(part), "-", " ")
			}
		}
	}
	for _, f := range p.WorkingSets {
		look(profile.Caches, f.Figure)
	}
	for _, f := range p.Latency {
		look(profile.Latency, f.Figure)
	}
	for _, f := range p.Bandwidth {
		look(profile.Bandwidth, f.Figure)
	}
	for _, f := range p.Peak {
		look(profile.Bandwidth, f.Figure)
	}
	for _, f := range p.Mixes {
		look(profile.Mixes, f.Figure)
	}
	for _, c := range p.Loaded {
		for _, f := range c.Points {
			look(profile.Loaded, f.Bandwidth, f.Latency)
		}
	}
	for _, f := range p.CacheSharing {
		look(profile.CacheSharing, f.Alone, f.Together)
	}
	for _, f := range p.CoreToCore {
		look(profile.CoreToCore, f.Figure)
	}
	for _, f := range p.Migration {
		look(profile.Migrating, f.PerPage)
	}
	for _, f := range p.Policies {
		look(profile.Policies, f.Figure)
	}
	for _, f := range p.Rao {
		look(profile.Rao, f.PerOp)
	}
	return parts, worst, what
}
