// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"bytes"
	"errors"
	"strconv"
	"time"

	"homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/perf"
	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
)

// userHZ is the unit of ticks in /proc: 100 a second on every architecture that
// matters here (USER_HZ, include/asm-generic/param.h).
const userHZ = 100

// procPath is a file of a process. It is made thousands of times a survey.
func (r *Reader) procPath(pid int, file string) string {
	if r.proc == "" {
		r.proc = r.cfg.Root.Path("/proc") + "/"
	}
	return r.proc + strconv.Itoa(pid) + "/" + file
}

// cpuTotal is the CPU time used since the round before, in CPUs' worth.
func (r *Reader) cpuTotal(w *workload) unit.Value[float64] {
	if !w.acctHier.Present() {
		return unit.UnknownValue[float64]("its processes are in another cgroup of the cpuacct hierarchy")
	}
	data, err := w.usage.ReadLine(&r.buf)
	now := r.cfg.Now()
	var used time.Duration
	if err == nil && w.acctHier.V2 {
		used, err = cgroup.ParseCPUStat(data)
		w.noteThrottling(data)
	} else if err == nil {
		used, err = cgroup.ParseCPUAcctUsage(data)
	}
	if err != nil {
		w.at = time.Time{}
		return unit.UnknownValue[float64](unix.Explain("read", w.usage.Path, "", err).Error())
	}
	delta, elapsed, first := used-w.used, now.Sub(w.at), w.at.IsZero()
	w.used, w.at = used, now
	if first || elapsed <= 0 || delta < 0 {
		return unit.UnknownValue[float64](firstWindow)
	}
	return unit.Measured(delta.Seconds()/elapsed.Seconds(), pick(w.acctHier, "cpu.stat", "cpuacct.usage"))
}

// quota is its own limit; that of an ancestor is not.
func (r *Reader) quota(w *workload) unit.Value[float64] {
	if !w.cpuHier.Present() {
		return unit.UnknownValue[float64]("no cpu controller for it")
	}
	q, err := r.readQuota(w)
	if err != nil && errors.Is(err, ErrGone) {
		return unit.UnknownValue[float64]("no limit is set: the cpu controller is off in it")
	}
	if err != nil {
		return unit.UnknownValue[float64](err.Error())
	}
	v, ok := q.Get()
	if !ok {
		return unit.UnknownValue[float64]("no limit is set")
	}
	return unit.Measured(v, pick(w.cpuHier, "cpu.max", "cpu.cfs_quota_us"))
}

func (r *Reader) readQuota(w *workload) (unit.Opt[float64], error) {
	data, err := w.quota.ReadLine(&r.buf)
	if err != nil {
		return unit.None[float64](), unix.Explain("read", w.quota.Path, "", err)
	}
	if w.cpuHier.V2 {
		return cgroup.ParseCPUMax(data)
	}
	if q := bytes.TrimSpace(data); len(q) > 0 && q[0] == '-' {
		return unit.None[float64](), nil // no quota: of what period does not matter
	}
	quota := append([]byte(nil), data...) // the buffer is read into again
	period, err := w.period.ReadLine(&r.buf)
	if err != nil {
		return unit.None[float64](), unix.Explain("read", w.period.Path, "", err)
	}
	return cgroup.ParseCFSQuota(quota, period)
}

// cpuByNode takes the best source there is:
//
//  1. cpuacct.usage_percpu (v1): exact.
//  2. the cgroup's task-clock on each CPU (perf): exact unless multiplexed.
//  3. the ticks of each thread, credited to the CPU it ran on last, and scaled
//     to the known total: an estimate.
func (r *Reader) cpuByNode(w *workload, s perf.Sample, total unit.Value[float64]) []unit.Value[float64] {
	n := len(r.machine.Nodes)
	switch {
	case w.perCPUTime():
		return r.cpuByNodeV1(w)
	case r.has(w, perf.Clock):
		if !s.OK {
			return unknownByNode[float64](n, firstWindow)
		}
		return r.cpuByNodePerf(s)
	}
	return r.cpuByThread(w, total)
}

func values(by []float64, how unit.Source, from string) []unit.Value[float64] {
	out := make([]unit.Value[float64], len(by))
	for i, v := range by {
		out[i] = unit.ValueOf(v, how, from)
	}
	return out
}

func (r *Reader) cpuByNodeV1(w *workload) []unit.Value[float64] {
	const from = "cpuacct.usage_percpu"
	data, err := w.perCPU.ReadLine(&r.buf)
	now := r.cfg.Now()
	var all []time.Duration
	if err == nil {
		all, err = cgroup.ParseCPUAcctPerCPU(data)
	}
	if err != nil {
		return unknownByNode[float64](len(r.machine.Nodes), unix.Explain("read", from, "", err).Error())
	}
	before, elapsed := w.byCPU, now.Sub(w.perCPUAt)
	w.byCPU, w.perCPUAt = all, now
	if len(before) != len(all) || elapsed <= 0 {
		return unknownByNode[float64](len(r.machine.Nodes), firstWindow)
	}
	by := r.perNode(elapsed, func(add func(int, time.Duration)) {
		for cpu := range all {
			add(cpu, max(0, all[cpu]-before[cpu]))
		}
	})
	return values(by, unit.HowMeasured, from)
}

func (r *Reader) cpuByNodePerf(s perf.Sample) []unit.Value[float64] {
	if s.Elapsed <= 0 {
		return unknownByNode[float64](len(r.machine.Nodes), firstWindow)
	}
	by := r.perNode(s.Elapsed, func(add func(int, time.Duration)) {
		for _, c := range s.ByCPU {
			add(c.CPU, c.Time)
		}
	})
	how, from := r.meter.Table().Source(perf.Clock)
	if r.bpf != nil {
		from = "clock at context switches (BPF)"
	}
	if s.Sampled {
		how = unit.HowEstimated
	} else if s.Scaled > 1 {
		how, from = unit.HowEstimated, from+", multiplexed and scaled"
	}
	return values(by, how, from)
}

// cpuByThread is (3). A thread's first sight is only a base.
func (r *Reader) cpuByThread(w *workload, total unit.Value[float64]) []unit.Value[float64] {
	before, elapsed, now := w.threads, r.cfg.Now().Sub(w.threadAt), r.cfg.Now()
	w.threads, w.threadAt = map[int]uint64{}, now
	by := r.perNode(elapsed, func(add func(int, time.Duration)) {
		for _, tid := range r.ids {
			st, err := r.threadStat(tid)
			if err != nil {
				continue
			}
			w.threads[tid] = st.Ticks
			if was, ok := before[tid]; ok && st.Ticks > was {
				add(st.CPU, time.Duration(st.Ticks-was)*time.Second/userHZ)
			}
		}
	})
	if before == nil || elapsed <= 0 {
		return unknownByNode[float64](len(by), firstWindow)
	}
	scaleTo(by, total)
	return values(by, unit.HowEstimated, "last CPU × time of each thread")
}

// total adds parts up, where the whole is not known; els is why it is not.
func total(by []unit.Value[float64], els unit.Value[float64]) unit.Value[float64] {
	sum := 0.0
	for _, v := range by {
		part, ok := v.Get()
		if !ok {
			return els
		}
		sum += part
	}
	if len(by) == 0 {
		return els
	}
	return unit.ValueOf(sum, by[0].How, by[0].From)
}

// scaleTo makes the parts add up to a known total.
func scaleTo(by []float64, total unit.Value[float64]) {
	sum := 0.0
	for _, v := range by {
		sum += v
	}
	if t, ok := total.Get(); ok && sum > 0 {
		for i := range by {
			by[i] *= t / sum
		}
	}
}

// threadStat reads /proc/TID/task/TID/stat: any thread's id leads there, while
// /proc/TID/stat would add up its whole process.
func (r *Reader) threadStat(tid int) (procfs.TaskStat, error) {
	data, err := r.buf.ReadFile(r.procPath(tid, "task/"+strconv.Itoa(tid)+"/stat"))
	if err != nil {
		return procfs.TaskStat{}, err
	}
	return procfs.ParseTaskStat(data)
}
