// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"slices"
	"time"

	"homenode/internal/kernel/perf"
	"homenode/internal/kernel/procfs"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
)

const (
	byTaskClock      = "perf, time enabled"
	bySchedstat      = "/proc/PID/task/TID/schedstat"
	threadsByLastCPU = "last CPU × time of each thread"
	firstTime        = "no earlier reading of this thread"
)

// readGroup fills in a workload from its threads, and forgets those that ended.
func (r *ThreadReader) readGroup(g *group, w *window.Workload, length time.Duration) {
	w.Threads = w.Threads[:0]
	ended := false
	for _, t := range g.threads {
		if t.gone = t.gone || !r.readThread(t); t.gone {
			ended = true
			continue
		}
		w.Threads = append(w.Threads, r.figures(g, t, length))
		if t.short {
			t.stat.Close()
			t.sched.Close()
		}
	}
	if ended {
		for _, t := range g.threads {
			if t.gone {
				r.closeThread(t)
				delete(r.byTID, t.tid)
			}
		}
		g.threads = slices.DeleteFunc(g.threads, func(t *thread) bool { return t.gone })
	}
	r.sum(g, w)
}

// readThread reads a thread; false means that it ended. A thread that was on no CPU in
// this period is where it was: its file is not read, except once after each look,
// because its id may belong to another thread by now.
func (r *ThreadReader) readThread(t *thread) bool {
	t.sample = perf.TaskSample{}
	if t.count != nil {
		if err := r.meter.Read(t.count, &t.sample); err != nil {
			r.problem(err)
			r.meter.Close(t.count)
			t.count, t.why = nil, err.Error()
			r.opened--
		}
	}
	if !t.sample.OK || t.sample.Time > 0 || t.checked != r.round {
		data, err := t.stat.ReadLine(&r.buf)
		if err != nil {
			return false
		}
		st, err := procfs.ParseTaskStat(data)
		if err != nil || st.Start != t.start || st.State == 'Z' || st.State == 'X' {
			r.problem(err)
			return false
		}
		t.cpu, t.checked = unit.Some(st.CPU), r.round
	}
	return r.readAffinity(t)
}

// readAffinity makes a set only when the mask changed.
func (r *ThreadReader) readAffinity(t *thread) bool {
	n, err := r.cfg.Affinity.Affinity(t.tid, &r.mask)
	if err != nil {
		return false
	}
	if !slices.Equal(t.words, r.mask[:n]) {
		t.words = append(t.words[:0], r.mask[:n]...)
		t.allowed = set.FromCPUs(set.IDsOf(t.words)...)
	}
	return true
}

// figures is what is known of a thread. Whether homenode set its affinity is checked
// each time: that may change while the affinity does not.
func (r *ThreadReader) figures(g *group, t *thread, length time.Duration) window.Thread {
	th := window.Thread{ID: t.tid, Start: t.start, CPU: t.cpu, Allowed: t.allowed, Used: r.used(t, length)}
	th.Ours = r.isOurs(t)
	th.Pinned = !th.Ours && t.allowed != g.cpus && t.allowed.SubsetOf(g.cpus)
	if t.count == nil {
		no := unit.UnknownValue[uint64](t.why)
		th.Cycles, th.Instructions, th.UncoreRequests, th.UncoreWaits = no, no, no, no
		return th
	}
	th.Cycles = r.meter.Value(&t.sample, perf.Cycles)
	th.Instructions = r.meter.Value(&t.sample, perf.Instructions)
	th.UncoreRequests = r.meter.Value(&t.sample, perf.UncoreRequests)
	th.UncoreWaits = r.meter.Value(&t.sample, perf.UncoreWaits)
	return th
}

func (r *ThreadReader) isOurs(t *thread) bool {
	return r.cfg.Ours != nil && r.cfg.Ours(t.tid, t.start, t.allowed)
}

// used is a thread's share of a CPU. Time is read slightly later than the clock: a
// share above 1 is 1.
func (r *ThreadReader) used(t *thread, length time.Duration) unit.Value[float64] {
	if t.count == nil {
		return r.scheduled(t, length)
	}
	if !t.sample.OK || length <= 0 {
		return unit.UnknownValue[float64](firstTime)
	}
	return unit.Measured(min(1, t.sample.Time.Seconds()/length.Seconds()), byTaskClock)
}

// scheduled is the same without counters.
func (r *ThreadReader) scheduled(t *thread, length time.Duration) unit.Value[float64] {
	data, err := t.sched.ReadLine(&r.buf)
	if err != nil {
		return unit.UnknownValue[float64](bySchedstat + " cannot be read")
	}
	ran, _, err := procfs.ParseSchedstat(data)
	if err != nil {
		r.problem(err)
		return unit.UnknownValue[float64](bySchedstat + " cannot be read")
	}
	before := t.ran
	if t.ran = int64(ran); before < 0 || t.ran < before || length <= 0 {
		return unit.UnknownValue[float64](firstTime)
	}
	return unit.Estimated(min(1, float64(t.ran-before)/float64(length)), bySchedstat)
}

// sum adds up the threads of a workload.
func (r *ThreadReader) sum(g *group, w *window.Workload) {
	w.Tasks = unit.Measured(len(w.Threads), "/proc/PID/task")
	if g.pid == 0 {
		w.Tasks.From = "cgroup.threads"
	}
	var cpu adder
	var counts [len(perf.TaskFields)]adder
	by := w.CPUByNode
	for i := range by {
		by[i] = unit.Estimated(0.0, threadsByLastCPU)
	}
	for i := range w.Threads {
		th, t := &w.Threads[i], g.threads[i]
		cpu.addFigure(th.Used.V, th.Used.How, th.Used.From)
		r.atNode(by, th)
		for i, field := range perf.TaskFields {
			v := unit.UnknownValue[uint64](t.why)
			if t.count != nil {
				v = r.meter.Value(&t.sample, field)
			}
			n, ok := v.Get()
			counts[i].addFigure(unit.OptOf(float64(n), ok), v.How, v.From)
		}
	}
	w.CPU = unit.Value[float64]{V: unit.OptOf(cpu.sum, cpu.known > 0), How: cpu.how(), From: cpu.from}
	for f, into := range [...]*unit.Value[uint64]{&w.Cycles, &w.Instructions, &w.UncoreRequests, &w.UncoreWaits, &w.LocalLoads, &w.RemoteLoads} {
		c := counts[f]
		*into = unit.Value[uint64]{V: unit.OptOf(uint64(c.sum), c.known > 0), How: c.how(), From: c.from}
	}
}

// atNode credits a thread's time to the node of the CPU that it is on.
func (r *ThreadReader) atNode(by []unit.Value[float64], th *window.Thread) {
	used, ok1 := th.Used.Get()
	cpu, ok2 := th.CPU.Get()
	if !ok1 || !ok2 {
		return
	}
	i, ok := r.topology.NodeAt(cpu)
	if !ok {
		return
	}
	v := &by[i]
	v.V = unit.Some(v.V.Or(0) + used)
}

// adder sums figures; if one of them is unknown, the sum of the others is an estimate.
type adder struct {
	sum            float64
	known, unknown int
	weakest        unit.Source
	from           string
}

func (a *adder) addFigure(v unit.Opt[float64], how unit.Source, from string) {
	x, ok := v.Get()
	if !ok {
		a.unknown++
		if a.known == 0 {
			a.from = from
		}
		return
	}
	if a.known++; a.known == 1 {
		a.weakest, a.from = how, from
	}
	a.sum, a.weakest = a.sum+x, min(a.weakest, how)
}

func (a *adder) how() unit.Source {
	switch {
	case a.known == 0:
		return unit.HowUnknown
	case a.unknown > 0:
		return min(a.weakest, unit.HowEstimated)
	}
	return a.weakest
}
