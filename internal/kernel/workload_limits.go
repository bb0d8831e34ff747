// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"path"
	"time"

	"homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
)

// waiting is the share of the time since the round before in which a thread of it
// waited for a CPU: cpu.pressure of v2, one small file. Per thread it would be one of
// /proc/PID/task/TID/schedstat for each.
func (r *Reader) waiting(w *workload) unit.Value[unit.Ratio] {
	if !w.cpuHier.Present() || !w.cpuHier.V2 {
		return unit.UnknownValue[unit.Ratio]("no cpu.pressure: its cpu controller is not cgroup v2's")
	}
	if w.noPressure != "" && w.seen%rarely != 0 {
		return unit.UnknownValue[unit.Ratio](w.noPressure)
	}
	data, err := w.pressure.ReadLine(&r.buf) // two lines, of 120 bytes together
	now := r.cfg.Now()
	var total time.Duration
	if err == nil {
		total, err = cgroup.ParseCPUPressure(data)
	}
	if err != nil { // PSI is not in the kernel, or off (psi=0)
		w.noPressure, w.waitedAt = unix.Explain("read", w.pressure.Path, "", err).Error(), time.Time{}
		return unit.UnknownValue[unit.Ratio](w.noPressure)
	}
	delta, elapsed, first := total-w.waited, now.Sub(w.waitedAt), w.waitedAt.IsZero()
	w.noPressure, w.waited, w.waitedAt = "", total, now
	if first || elapsed <= 0 || delta < 0 {
		return unit.UnknownValue[unit.Ratio](firstWindow)
	}
	// The kernel adds a wait up when it ends, or every 2 s: some of it may be older.
	return unit.Measured(unit.Ratio(min(1, delta.Seconds()/elapsed.Seconds())), "cpu.pressure")
}

// noteThrottling takes what cpu.stat says of the quota; of v2 it is the file that has
// the CPU time as well.
func (w *workload) noteThrottling(data []byte) {
	t, err := cgroup.ParseThrottling(data)
	if err != nil {
		w.throttled, w.throttling = unit.UnknownValue[unit.Ratio](err.Error()), unit.None[cgroup.Throttling]()
		return
	}
	before, seen := w.throttling.Get()
	w.throttling = unit.Some(t)
	share, ok := unit.RatioOf(float64(t.Throttled-before.Throttled), float64(t.Periods-before.Periods)).Get()
	switch {
	case !seen:
		w.throttled = unit.UnknownValue[unit.Ratio](firstWindow)
	case !ok:
		w.throttled = unit.UnknownValue[unit.Ratio]("no period of its quota ended")
	default:
		w.throttled = unit.Measured(share, "cpu.stat")
	}
}

func (r *Reader) throttledShare(w *workload, quota unit.Value[float64]) unit.Value[unit.Ratio] {
	if !quota.Known() {
		return unit.UnknownValue[unit.Ratio](quota.From)
	}
	if !w.cpuHier.V2 {
		data, err := w.throttle.ReadLine(&r.buf)
		if err != nil {
			return unit.UnknownValue[unit.Ratio](unix.Explain("read", w.throttle.Path, "", err).Error())
		}
		w.noteThrottling(data)
	}
	return w.throttled
}

// limitFile is the memory limit of a cgroup above workloads.
type limitFile struct {
	file  unix.Kept
	limit unit.Opt[unit.Bytes]
	seen  uint64 // round
}

func limitName(h cgroup.Hier) string { return pick(h, "memory.max", "memory.limit_in_bytes") }

const noLimit = "no limit is set"

// memoryLimit is the least limit of the workload's cgroup and those above it: a
// charge counts in each (page_counter_try_charge in mm/page_counter.c).
func (r *Reader) memoryLimit(w *workload) unit.Value[unit.Bytes] {
	if !w.memHier.Present() {
		return unit.UnknownValue[unit.Bytes]("its processes are in another cgroup of the memory hierarchy")
	}
	least, err := r.readLimit(&w.limit)
	if err != nil {
		return unit.UnknownValue[unit.Bytes](err.Error())
	}
	whose := limitName(w.memHier)
	for id := path.Dir(w.ID); id != "/" && id != "."; id = path.Dir(id) {
		l, err := r.limitOf(w.memHier, id)
		if err != nil {
			return unit.UnknownValue[unit.Bytes](err.Error())
		}
		if n, ok := l.Get(); ok && (!least.Known() || n < least.Or(0)) {
			least, whose = l, limitName(w.memHier)+" of "+id
		}
	}
	n, ok := least.Get()
	if !ok {
		return unit.UnknownValue[unit.Bytes](noLimit)
	}
	return unit.Measured(n, whose)
}

// limitOf reads an ancestor once a round.
func (r *Reader) limitOf(h cgroup.Hier, id string) (unit.Opt[unit.Bytes], error) {
	l := r.limits[id]
	if l == nil {
		l = &limitFile{file: unix.Kept{Path: r.layout.Path(h, id, limitName(h)), Loose: true}}
		r.limits[id] = l
	}
	if l.seen == r.seq {
		return l.limit, nil
	}
	limit, err := r.readLimit(&l.file)
	l.limit, l.seen = limit, r.seq
	return limit, err
}

// readLimit is none where the controller is off: nothing limits it there.
func (r *Reader) readLimit(k *unix.Kept) (unit.Opt[unit.Bytes], error) {
	data, err := k.ReadLine(&r.buf)
	if err != nil {
		if errors.Is(unix.Classify(err), unix.ErrGone) {
			return unit.None[unit.Bytes](), nil
		}
		return unit.None[unit.Bytes](), unix.Explain("read", k.Path, "", err)
	}
	return cgroup.ParseMemoryLimit(data)
}

// dropLimits closes ancestors that no workload had in this round; 0: all.
func (r *Reader) dropLimits(round uint64) {
	for id, l := range r.limits {
		if round == 0 || l.seen != round {
			l.file.Close()
			delete(r.limits, id)
		}
	}
}
