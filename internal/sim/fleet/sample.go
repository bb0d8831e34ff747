// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"homenode/internal/profiling"
	"homenode/internal/sim"
	"homenode/internal/sim/detmath"
	"homenode/internal/sim/runner"
	"homenode/internal/unit"
	"homenode/internal/window"
)

const (
	// How long a replica is observed before it may be bound. A longer time gives steadier
	// features and later bindings.
	lookFor = time.Hour
	// How long after its binding it is not compared, as its memory is still moving.
	settleFor = 10 * time.Minute
	// The shortest comparison that is worth a row.
	compareFor = 30 * time.Minute
)

// Skipped counts replicas that made no row, by reason.
type Skipped struct {
	TooBrief   int `json:"too_brief"`   // not bound, and not there long enough to be observed and compared
	TooShort   int `json:"too_short"`   // bound, but not long enough to be compared
	MovedAside int `json:"moved_aside"` // not bound, but its CPUs were narrowed to make room, so it is no control
	NoRequests int `json:"no_requests"` // no requests: no latency to compare
}

func (s *Skipped) plus(o Skipped) {
	s.TooBrief += o.TooBrief
	s.TooShort += o.TooShort
	s.MovedAside += o.MovedAside
	s.NoRequests += o.NoRequests
}

// subject is a replica under observation.
type subject struct {
	id, service   string
	first, before means // over its first windows; over all until it was bound
	seen          int   // windows seen
	since         int   // windows since it was bound
	ever          bool  // it was bound at some time
	bound, free   comparison
}

// comparison is the same windows on both sides.
type comparison struct {
	windows       int
	with, without runner.Tally
	// CPU time of the server's other workloads on the side with MAO, and the part that
	// belongs to bound ones.
	others, othersBound float64
}

// compared is the comparison that a row describes.
func (s *subject) compared() *comparison {
	if s.ever {
		return &s.bound
	}
	return &s.free
}

// pair simulates a server twice, with the same demand, window by window.
//
//  1. Until a replica is bound, its features come from the windows of the side without
//     MAO. No replica is bound there, so the features of replicas that are bound late do not
//     depend on what was bound before them.
//  2. While it is bound, and after its memory had time to follow, what it got on both
//     sides is added up over the same windows. A replica that is never bound is compared too,
//     after the same time: this shows the effect of its neighbours' bindings.
//  3. Each of them then makes a row.
func (j *job) pair(ctx context.Context) error {
	seed := j.config.serverSeed(j.server)
	off, err := j.newSide(seed, runner.None)
	if err != nil {
		return err
	}
	on, err := j.newSide(seed, runner.MAO)
	if err != nil {
		return err
	}
	on.loop.Policy = patient(on.loop.Policy, j.config.inWindows(lookFor))
	subjects := map[string]*subject{}
	for i := range j.config.windows() {
		if err := ctx.Err(); err != nil {
			return err
		}
		j.warm(i, on)
		j.warm(i, off)
		before, w := off.loop.Round(), on.loop.Round()
		on.count(w)
		without, with := off.world.Truth(), on.world.Truth()
		j.addWindow(&j.done.without, i, without)
		j.addWindow(&j.done.with, i, with)
		j.observe(subjects, on, w, before) // 1
		j.compare(subjects, w, without, with)
	}
	j.close(&j.done.without, off)
	j.close(&j.done.with, on)
	j.rows(subjects)
	return nil
}

// observe takes the features from the window of the side without MAO.
func (j *job) observe(subjects map[string]*subject, on *side, w, off window.Window) {
	for i := range w.Workloads {
		wl := &w.Workloads[i]
		s := subjects[wl.ID]
		if s == nil {
			s = &subject{id: wl.ID, service: wl.Service}
			subjects[wl.ID] = s
		}
		s.seen++
		if on.loop.Bound(wl.ID) {
			s.since++
			s.ever = true
			continue
		}
		s.since = 0
		at, ok := slices.BinarySearchFunc(off.Workloads, wl.ID, func(x window.Workload, id string) int { return strings.Compare(x.ID, id) })
		if s.ever || !ok {
			continue
		}
		s.before.addWindow(&off.Workloads[at], off.Length)
		if s.seen <= j.config.inWindows(lookFor) {
			s.first = s.before
		}
	}
}

// wasBound reports whether it was bound throughout the window: Bound describes its end.
func (s *subject) wasBound() bool { return s.since > 1 }

// compare adds up a window for replicas that were bound throughout it, and for those that
// never were. Both lists are in the order of IDs.
func (j *job) compare(subjects map[string]*subject, w window.Window, without, with []sim.Truth) {
	look, settle := j.config.inWindows(lookFor), j.config.inWindows(settleFor)
	cpu := map[string]float64{}
	var all, bound float64
	for i := range w.Workloads {
		wl := &w.Workloads[i]
		used := wl.CPU.Or(0)
		cpu[wl.ID] = used
		all += used
		if subjects[wl.ID].wasBound() {
			bound += used
		}
	}
	for i := range with { // 2
		s := subjects[with[i].Workload]
		if s == nil || s.ever && s.since <= settle || !s.ever && (s.seen <= look+settle || with[i].BoundSeconds > 0) {
			continue
		}
		at, ok := slices.BinarySearchFunc(without, with[i].Workload, func(t sim.Truth, id string) int { return strings.Compare(t.Workload, id) })
		if !ok {
			continue
		}
		own := cpu[s.id]
		others, theirs := all-own, bound
		if s.wasBound() {
			theirs -= own
		}
		s.compared().addWindow(&with[i], &without[at], others, theirs)
	}
}

func (c *comparison) addWindow(with, without *sim.Truth, others, bound float64) {
	c.windows++
	c.with.Add(with)
	c.without.Add(without)
	c.others += others
	c.othersBound += bound
}

// neighboursBound is limited to [0, 1], which differences of sums can exceed by a bit.
func (c *comparison) neighboursBound() *float64 {
	v := over(c.othersBound, c.others)
	if v != nil {
		*v = min(max(*v, 0), 1)
	}
	return v
}

func (j *job) rows(subjects map[string]*subject) {
	ids := make([]string, 0, len(subjects))
	for id := range subjects {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids { // 3
		if s := subjects[id]; !j.skip(s) {
			j.done.rows = append(j.done.rows, j.row(s))
		}
	}
}

// skip reports that a replica makes no row, and counts the reason.
func (j *job) skip(s *subject) bool {
	c, n := j.config, j.config.inWindows(compareFor)
	why := &j.done.skipped
	switch x := s.compared(); {
	case s.ever && x.windows < n:
		why.TooShort++
	case !s.ever && s.seen < c.inWindows(lookFor)+c.inWindows(settleFor)+n:
		why.TooBrief++
	case x.windows < n:
		why.MovedAside++
	case x.with.Ops == 0 || x.without.Ops == 0:
		why.NoRequests++
	default:
		return false
	}
	return true
}

func (j *job) row(s *subject) Row {
	c, x := j.config, s.compared()
	r := Row{
		Server: hash(c.Seed, "server", fmt.Sprint(j.server)), Service: hash(c.Seed, "service", s.service), Replica: hash(c.Seed, "replica", s.id),
		Machine: c.Machine.Origin, GeneratorVersion: GeneratorVersion, Seed: c.Seed, How: unit.HowModelled.String(),
		Bound: s.ever, WindowsCompared: int32(x.windows), NeighboursBound: x.neighboursBound(), LocalAccessRatioOn: localRatio(&x.with),
		GainLatencyTrue: gainOf(meanLatency(&x.with), meanLatency(&x.without)),
		GainCPUTrue:     gainOf(cpuPerOp(&x.with), cpuPerOp(&x.without)),
		GainIPCTrue:     gainOf(cpi(&x.with), cpi(&x.without)),
	}
	if s.ever {
		s.before.into(&r)
	} else {
		s.first.into(&r)
	}
	r.Disturb(c.Noise, detmath.NewRandom(c.Seed, "fleet", "noise", s.id))
	return r
}

// hash hides names: a model must not recognise rows by name.
func hash(seed uint64, kind, name string) string {
	r := detmath.NewRandom(seed, "fleet", "hash", kind, name)
	return fmt.Sprintf("%016x", r.Uint64())
}

// gain is 1 − on / off.
func gainOf(on, off *float64) *float64 {
	if on == nil || off == nil || *off <= 0 {
		return nil
	}
	return known(1 - *on / *off)
}

// mean is the mean of the known values.
type mean struct{ sum, n float64 }

func (m *mean) add(v float64, ok bool) {
	if ok {
		m.sum += v
		m.n++
	}
}

func (m mean) value() *float64 {
	if m.n == 0 {
		return nil
	}
	return known(m.sum / m.n)
}

// means are features over windows.
type means struct {
	windows                                      int32
	mbw, msr, npmr, rmbr, local, cpu, quota, rss mean
	ipc, mpki                                    mean
}

func (m *means) addWindow(wl *window.Workload, length time.Duration) {
	f := profiling.Observe(wl, length)
	m.windows++
	for _, v := range []struct {
		to   *mean
		from *float64
	}{{&m.mbw, f.MBW}, {&m.msr, f.MSR}, {&m.npmr, f.NPMR}, {&m.rmbr, f.RMBR}, {&m.cpu, f.CPU}, {&m.rss, f.RSS}, {&m.ipc, f.IPC}, {&m.mpki, f.LLCMPKI}} {
		if v.from != nil {
			v.to.add(*v.from, true)
		}
	}
	local, ok := window.LocalAccessRatio(wl).Get()
	m.local.add(float64(local), ok)
	m.quota.add(wl.Quota.Get())
}

func (m *means) into(r *Row) {
	r.WindowsBefore = m.windows
	r.MBW, r.MSR, r.NPMR, r.RMBR = m.mbw.value(), m.msr.value(), m.npmr.value(), m.rmbr.value()
	r.LocalAccessRatio, r.CPU, r.RSS, r.CPULimit = m.local.value(), m.cpu.value(), m.rss.value(), m.quota.value()
	r.IPC, r.LLCMPKI = m.ipc.value(), m.mpki.value()
}
