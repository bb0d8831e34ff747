// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"homenode/internal/kernel/bpfcount"
	"homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/perf"
	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
	"homenode/internal/window"
)

const (
	firstWindow = "first window of it: no reading before"
	// rarely is how many rounds pass between attempts at what failed, as opening events.
	// Lower finds sooner that it works by now, and costs CPU time.
	rarely = 64
)

// workload is what is remembered of one cgroup between rounds.
type workload struct {
	cgroup.Cgroup
	dir    string
	inode  uint64
	below  bool // there may be cgroups below it
	seen   int  // rounds
	layout cgroup.Layout

	// Where its processes are in each hierarchy; the zero Hier when they are
	// not under the same path there.
	cpuHier, acctHier, memHier, perfHier cgroup.Hier

	usage, perCPU, quota, period, numaStat unix.Kept
	ownCPUs, ownMems, effCPUs, effMems     unix.Kept

	pressure, throttle, limit unix.Kept
	tasks                     unix.Kept // not kept on v1, which keeps the list with the open file (cgroup_pidlist_start)

	waited     time.Duration // of pressure
	waitedAt   time.Time
	noPressure string                      // why it is not read
	throttling unit.Opt[cgroup.Throttling] // of the round before
	throttled  unit.Value[unit.Ratio]

	hints    map[int]*threadHints // by TID
	hintNext int                  // of the threads, in the order of their ids

	at       time.Time // of usage
	used     time.Duration
	perCPUAt time.Time
	byCPU    []time.Duration
	threads  map[int]uint64 // ticks by thread, only where nothing better is
	threadAt time.Time

	events *perf.Group
	noPerf string
	failed bool // events could not be opened
	slot   bpfcount.Slot
	partly bool // not all of its cgroups are counted in slot
	clocks []perf.CPUClock

	policyAt uint64 // round of the last look
	policy   string // why its memory counts as pinned by itself; "" = it does not
	numaMaps cgroup.NumaStat
	noMaps   error // numaMaps has not all of them
	mapsAt   int   // round in which numaMaps was read; −1 = never
}

// meet looks a new workload over.
func (r *Reader) meet(cg cgroup.Cgroup) *workload {
	w := &workload{Cgroup: cg, layout: r.layout, dir: r.layout.Path(r.layout.Cpuset, cg.ID, ""), mapsAt: -1}
	w.Owner = r.layout.Owner(cg.ID, &r.buf)
	w.inode, w.below, _ = unix.Look(w.dir)
	w.tasks.Path = r.layout.Path(r.layout.Cpuset, cg.ID, r.layout.ThreadsFile())
	member := r.membership(cg.ID)
	l := r.layout
	w.cpuHier, w.acctHier = member(l.CPU, "cpu"), member(l.CPUAcct, "cpuacct")
	w.memHier, w.perfHier = member(l.Memory, "memory"), member(l.Perf, "perf_event")
	w.usage.Path = l.Path(w.acctHier, cg.ID, pick(w.acctHier, "cpu.stat", "cpuacct.usage"))
	w.perCPU.Path = l.Path(w.acctHier, cg.ID, "cpuacct.usage_percpu")
	w.quota.Path = l.Path(w.cpuHier, cg.ID, pick(w.cpuHier, "cpu.max", "cpu.cfs_quota_us"))
	w.period.Path = l.Path(w.cpuHier, cg.ID, "cpu.cfs_period_us")
	w.throttle.Path, w.pressure.Path = l.Path(w.cpuHier, cg.ID, "cpu.stat"), l.Path(w.cpuHier, cg.ID, "cpu.pressure")
	w.limit.Path = l.Path(w.memHier, cg.ID, limitName(w.memHier))
	w.numaStat.Path = l.Path(w.memHier, cg.ID, "memory.numa_stat")
	w.ownCPUs.Path, w.ownMems.Path = l.Path(l.Cpuset, cg.ID, cgroup.CPUsFile), l.Path(l.Cpuset, cg.ID, cgroup.MemsFile)
	w.effCPUs.Path = l.Path(l.Cpuset, cg.ID, l.EffectiveFile(cgroup.CPUsFile))
	w.effMems.Path = l.Path(l.Cpuset, cg.ID, l.EffectiveFile(cgroup.MemsFile))
	for _, k := range w.kept() {
		k.Loose = true
	}
	return w
}

func pick(h cgroup.Hier, v2, v1 string) string {
	if h.V2 {
		return v2
	}
	return v1
}

// same says that the directory is still the one that was met.
func (w *workload) same() bool {
	inode, below, ok := unix.Look(w.dir)
	w.below = below
	return ok && inode == w.inode
}

func (w *workload) kept() []*unix.Kept {
	return []*unix.Kept{&w.usage, &w.perCPU, &w.quota, &w.period, &w.numaStat, &w.ownCPUs, &w.ownMems, &w.effCPUs, &w.effMems,
		&w.pressure, &w.throttle, &w.limit, &w.tasks}
}

func (w *workload) close() {
	for _, k := range w.kept() {
		k.Close()
	}
	if w.events != nil {
		w.events.Close()
		w.events = nil
	}
}

// membership returns a filter: the hierarchy if the workload's processes are
// under the same path in it, else none. One process speaks for all.
func (r *Reader) membership(id string) func(cgroup.Hier, string) cgroup.Hier {
	paths := r.pathsOf(id)
	return func(h cgroup.Hier, controller string) cgroup.Hier {
		if !h.Present() || h.Mount == r.layout.Cpuset.Mount {
			return h
		}
		if h.V2 {
			controller = ""
		}
		for _, m := range paths {
			if slices.Contains(strings.Split(m.Controllers, ","), controller) && m.Path != id {
				return cgroup.Hier{}
			}
		}
		if _, err := unix.Inode(r.layout.Path(h, id, "")); err != nil {
			return cgroup.Hier{}
		}
		return h
	}
}

// pathsOf reads /proc/PID/cgroup of the workload's first process that can be read.
func (r *Reader) pathsOf(id string) []procfs.Membership {
	r.ids, _ = r.layout.PIDs(r.ids[:0], id, &r.buf)
	for _, pid := range r.ids {
		data, err := r.buf.ReadFile(r.procPath(pid, "cgroup"))
		if err != nil {
			continue
		}
		if paths, err := procfs.ParsePIDCgroup(data); err == nil {
			return paths
		}
	}
	return nil
}

// readWorkload reads everything about one workload. The error is for what makes
// it useless; a single figure that cannot be had is unknown and says why.
func (r *Reader) readWorkload(w *workload) (window.Workload, error) {
	out := window.Workload{ID: w.ID, Owner: w.Owner}
	var err error
	if out.Binding, err = r.binding(w); err != nil {
		return window.Workload{}, err
	}
	if r.ids, err = r.tids(w); err != nil {
		return window.Workload{}, err
	}
	out.Tasks = unit.Measured(len(r.ids), r.layout.ThreadsFile())
	out.CPU = r.cpuTotal(w)
	out.Quota = r.quota(w)
	out.Waiting, out.Throttled = r.waiting(w), r.throttledShare(w, out.Quota)
	out.MemoryLimit = r.memoryLimit(w)
	sample, why := r.sample(w, out.CPU)
	r.setCounts(&out, w, sample, why)
	r.setHints(&out, w)
	out.CPUByNode = r.cpuByNode(w, sample, out.CPU)
	if !out.CPU.Known() {
		out.CPU = total(out.CPUByNode, out.CPU)
	}
	out.AnonByNode, out.FileByNode = r.memoryByNode(w)
	r.lookAtPolicies(w)
	if w.policy != "" {
		out.Binding.PinnedMems = true
		out.Binding.PinnedWhy = join(out.Binding.PinnedWhy, w.policy)
	}
	w.seen++
	return out, nil
}

// tids lists the workload's threads. Discovery has not looked whether there are any.
func (r *Reader) tids(w *workload) (ids []int, err error) {
	if w.below {
		ids, err = r.layout.TIDs(r.ids[:0], w.ID, &r.buf)
	} else {
		var data []byte
		data, err = w.tasks.ReadLine(&r.buf)
		if !r.layout.Cpuset.V2 {
			w.tasks.Close()
		}
		if err != nil {
			return r.ids[:0], unix.Explain("read", w.tasks.Path, "", err)
		}
		ids, err = procfs.AppendPIDs(r.ids[:0], data)
	}
	if err == nil && len(ids) == 0 {
		err = fmt.Errorf("%s has no process any more (%w)", w.ID, ErrGone)
	}
	return ids, err
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}

// sample reads the workload's events, opening them first where that is due.
func (r *Reader) sample(w *workload, total unit.Value[float64]) (perf.Sample, string) {
	if r.meter == nil {
		return perf.Sample{}, r.noPerf
	}
	if r.bpf != nil {
		return r.sampleBPF(w, total)
	}
	if w.events == nil && r.counted[w.ID] {
		r.openEvents(w)
	}
	if w.events == nil {
		return perf.Sample{}, w.noPerf
	}
	s, err := w.events.Read(r.cfg.Now().Sub(r.start), w.clocks)
	if err != nil {
		r.problem(err)
		w.events.Close()
		w.events, w.noPerf = nil, err.Error()
		return perf.Sample{}, w.noPerf
	}
	w.clocks = s.ByCPU
	return s, "first sample of a counter is only a base"
}

// perCPUTime says that cpuacct tells CPU time by CPU (v1).
func (w *workload) perCPUTime() bool { return w.acctHier.Present() && !w.acctHier.V2 }

func (r *Reader) openEvents(w *workload) {
	if !w.perfHier.Present() {
		w.noPerf = "its processes are in another cgroup of the perf_event hierarchy"
		return
	}
	g, err := r.meter.Open(r.layout.Path(w.perfHier, w.ID, ""), r.machine.OnlineCPUs().IDs(), !w.perCPUTime())
	w.failed = err != nil
	if err != nil {
		w.noPerf = err.Error()
		r.problem(err)
		return
	}
	w.events = g
}

// setCounts fills in the event fields. A PMU that counted no cycle while CPU time
// was used is asleep: its zeros are not counts.
func (r *Reader) setCounts(out *window.Workload, w *workload, s perf.Sample, why string) {
	type field struct {
		into *unit.Value[uint64]
		f    perf.Field
	}
	fields := []field{
		{&out.Cycles, perf.Cycles}, {&out.Instructions, perf.Instructions}, {&out.StallCycles, perf.StallCycles},
		{&out.LocalLoads, perf.LocalLoads}, {&out.RemoteLoads, perf.RemoteLoads},
	}
	if r.cfg.Penalty {
		fields = append(fields, field{&out.UncoreRequests, perf.UncoreRequests}, field{&out.UncoreWaits, perf.UncoreWaits}, field{&out.LLCMisses, perf.LLCMisses})
	}
	if s.OK && r.has(w, perf.Cycles) && s.Total[perf.Cycles] == 0 && out.CPU.Or(0) > 0 {
		s.OK, why = false, "the PMU counted no cycle while CPU time was used (is the lab's model off?)"
	}
	for _, f := range fields {
		switch {
		case !s.OK:
			*f.into = unit.UnknownValue[uint64](why)
		case !r.has(w, f.f):
			_, from := r.meter.Table().Source(f.f)
			*f.into = unit.UnknownValue[uint64](from + ": not counted on this PMU")
		default:
			*f.into = r.count(w, f.f, s)
		}
	}
}

// count marks a figure: scaled ones are estimates, whatever counted them.
func (r *Reader) count(w *workload, f perf.Field, s perf.Sample) unit.Value[uint64] {
	how, from := r.meter.Table().Source(f)
	switch {
	case s.Lost > 0.05:
		return unit.UnknownValue[uint64](from + ": the PMU had no room for it in " + unit.Ratio(s.Lost).String() + " of the time")
	case s.Sampled:
		how, from = unit.Weakest(how, unit.HowEstimated), from+r.partOf(w)
	case s.Scaled > 1:
		how, from = unit.Weakest(how, unit.HowEstimated), from+", multiplexed and scaled"
	case s.Doubt:
		how, from = unit.Weakest(how, unit.HowEstimated), from+", no believable time to scale by"
	}
	return unit.ValueOf(s.Total[f], how, from)
}
