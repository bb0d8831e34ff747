// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"time"

	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// HintMode says when threads' hint faults are read.
type HintMode string

const (
	HintsAuto   HintMode = ""       // for workloads whose DRAM reads are not counted
	HintsAlways HintMode = "always" // for all: to compare
	HintsOff    HintMode = "off"
)

// ParseHintMode reads auto, always or off.
func ParseHintMode(text string) (HintMode, error) {
	switch text {
	case "", "auto":
		return HintsAuto, nil
	case string(HintsAlways), string(HintsOff):
		return HintMode(text), nil
	}
	return "", fmt.Errorf("parse hint faults %q: want auto, always or off", text)
}

const (
	// hintTasks threads are read in a round, of all workloads together. Each costs some
	// 20 µs; more see a change sooner where threads are many.
	hintTasks = 64
	// hintThreads threads of a workload are remembered: a sample.
	hintThreads = 256
	// hintAge is how long a thread's faults are valid without new ones: two scans at
	// their slowest (numa_balancing_scan_period_max_ms, 60 s).
	hintAge = 2 * time.Minute
	// With hintPages or fewer there is no share: ± 9 % at 32.
	hintPages = 32
	// hintCovers is the share of the workload's CPU time for whose threads faults must
	// be known. Memory that a policy binds has none: the kernel does not scan it.
	hintCovers = 0.5
)

// hintCollector reads the NUMA hint faults of some threads in each round.
type hintCollector struct {
	base
	mode      HintMode
	most      int       // threads in a round
	balancing unix.Kept // /proc/sys/kernel/numa_balancing

	// Of this round:
	why   string // why there are none; "": there are
	each  int    // threads of a workload
	left  int    // of all
	turns uint64 // rounds until each workload had one
	place uint64 // of the next workload
}

func newHintCollector(h *host, cfg Config) *hintCollector {
	c := &hintCollector{mode: cfg.Hints, most: cfg.HintTasks, balancing: unix.Kept{Path: h.root.Path("/proc/sys/kernel/numa_balancing")}}
	if c.most <= 0 {
		c.most = hintTasks
	}
	return c
}

func (c *hintCollector) attach(*workload) sensor { return &hintSensor{c: c} }

func (c *hintCollector) close() { c.balancing.Close() }

func (c *hintCollector) begin(rd *round) error {
	n := len(rd.workloads)
	c.why, c.place, c.left = c.none(rd), 0, c.most
	c.each = max(1, c.left/max(1, n))
	c.turns = uint64((n + c.left - 1) / c.left)
	return nil
}

// none says why there are no hint faults; "" if there are. The kernel's switch has a
// bit for each of its two modes: 1 moves pages between nodes; 2 (5.18) looks for hot
// pages on slow ones, and scans nothing else.
func (c *hintCollector) none(rd *round) string {
	if c.mode == HintsOff {
		return "hint faults are switched off"
	}
	data, err := c.balancing.ReadLine(&rd.buf)
	if err != nil {
		return "no hint faults: this kernel does no NUMA balancing"
	}
	if mode, err := strconv.Atoi(string(bytes.TrimSpace(data))); err != nil || mode&1 == 0 {
		return "no hint faults: kernel.numa_balancing is off"
	}
	return ""
}

// hintSensor is a collector's sensor of one workload.
type hintSensor struct {
	c       *hintCollector
	threads map[int]*threadHints // by TID
	next    int                  // of the threads, in the order of their ids
}

// read needs no hint faults where DRAM accesses are counted.
func (s *hintSensor) read(rd *round, out *window.Workload) error {
	place, why := s.c.place, s.c.why
	s.c.place++
	if why == "" && s.c.mode == HintsAuto && counted(out) {
		why = "not read: its memory accesses are counted"
	}
	if why != "" {
		s.threads = nil
		s.unknown(rd, out, why)
		return nil
	}
	if s.c.turns <= 1 || (place+rd.seq)%s.c.turns == 0 {
		s.look(rd)
	}
	out.LocalFaults, out.RemoteFaults = s.sum(rd.now(), len(rd.tids))
	return nil
}

func (s *hintSensor) unknown(_ *round, out *window.Workload, why string) {
	out.LocalFaults, out.RemoteFaults = unit.UnknownValue[uint64](why), unit.UnknownValue[uint64](why)
}

// counted says that the workload's accesses are counted by a better source.
func counted(w *window.Workload) bool {
	return w.LocalLoads.Known() && w.RemoteLoads.Known() || w.Traffic.Known() && w.LocalTraffic.Known()
}

// look reads the next threads, from where the last look stopped.
func (s *hintSensor) look(rd *round) {
	if s.threads == nil {
		s.threads = map[int]*threadHints{}
	}
	of := min(len(rd.tids), hintThreads)
	for range min(s.c.each, s.c.left, of) {
		if s.next++; s.next >= of {
			s.next = 0
			s.forgetEnded(rd.tids)
		}
		s.c.left--
		rd.problem(s.lookAt(rd, rd.tids[s.next]))
	}
}

func (s *hintSensor) lookAt(rd *round, tid int) error {
	data, err := rd.buf.ReadFile(rd.taskPath(tid, tid, "sched"))
	if err != nil {
		delete(s.threads, tid) // it has ended
		return nil
	}
	h, err := procfs.ParseTaskHints(data)
	if err != nil {
		return err
	}
	if s.threads[tid] == nil {
		s.threads[tid] = &threadHints{}
	}
	s.threads[tid].see(h, rd.now())
	return nil
}

// forgetEnded drops threads that ended.
func (s *hintSensor) forgetEnded(tids []int) {
	here := make(map[int]bool, len(tids))
	for _, tid := range tids {
		here[tid] = true
	}
	for tid := range s.threads {
		if !here[tid] {
			delete(s.threads, tid)
		}
	}
}

// threadHints is what is remembered of one thread.
type threadHints struct {
	procfs.TaskHints
	at     time.Time
	weight float64             // CPUs' worth between the last two looks
	fresh  []procfs.NodeFaults // since the look before; at first all that the kernel remembers
	since  time.Time           // of the look that found them
}

// see takes a new look at the thread.
//
//  1. Between two looks the kernel has halved what it remembers once for each scan that
//     was followed by a fault of this thread (task_numa_placement in kernel/sched/fair.c),
//     rounding up, and added the new faults. The number of halvings is not shown, but it
//     is at most the number of scans of its address space.
//  2. So everything above the remembered count, halved for each scan, is new: of
//     several scans the last one counts in full, the one before half.
//  3. A thread whose run time or scans went backwards is another thread with the same
//     id.
func (t *threadHints) see(h procfs.TaskHints, now time.Time) {
	if t.at.IsZero() || h.Ran < t.Ran || h.ScanSeq < t.ScanSeq { // 3
		*t = threadHints{TaskHints: h, at: now, fresh: h.Faults, since: now}
		return
	}
	if elapsed := now.Sub(t.at); elapsed > 0 {
		t.weight = (h.Ran - t.Ran).Seconds() / elapsed.Seconds()
	}
	if fresh := newFaults(t.TaskHints, h); sumFaults(fresh) > 0 {
		t.fresh, t.since = fresh, now
	}
	t.TaskHints, t.at = h, now
}

// newFaults is numbers 1 and 2.
func newFaults(before, now procfs.TaskHints) []procfs.NodeFaults {
	scans := min(now.ScanSeq-before.ScanSeq, 63) // 1
	old := make(map[int]uint64, len(before.Faults))
	for _, f := range before.Faults {
		old[f.Node] = (f.Pages + 1<<scans - 1) >> scans
	}
	fresh := make([]procfs.NodeFaults, 0, len(now.Faults))
	for _, f := range now.Faults { // 2
		fresh = append(fresh, procfs.NodeFaults{Node: f.Node, Pages: f.Pages - min(f.Pages, old[f.Node])})
	}
	return fresh
}

func sumFaults(by []procfs.NodeFaults) (sum uint64) {
	for _, f := range by {
		sum += f.Pages
	}
	return sum
}

// sum adds up the threads. A thread that uses much CPU time touches memory more often
// than its share of pages shows, so each thread's local share is weighted by its CPU
// time; the two figures add up to the pages that were seen.
func (s *hintSensor) sum(now time.Time, tasks int) (local, remote unit.Value[uint64]) {
	var pages uint64
	var cpu, covered, near float64
	threads := 0
	for _, t := range s.threads {
		cpu += t.weight
		all := sumFaults(t.fresh)
		node, ok := t.Node.Get()
		if all == 0 || !ok || t.weight <= 0 || now.Sub(t.since) > hintAge {
			continue
		}
		threads++
		pages += all
		covered += t.weight
		for _, f := range t.fresh {
			if f.Node == node {
				near += t.weight * float64(f.Pages) / float64(all)
			}
		}
	}
	why := ""
	switch {
	case cpu == 0:
		why = "its threads used no CPU time between two looks"
	case pages < hintPages:
		why = fmt.Sprintf("only %d hint faults", pages)
	case covered < hintCovers*cpu:
		why = fmt.Sprintf("hint faults of threads with %v of its CPU time only", unit.Ratio(covered/cpu))
	}
	if why != "" {
		return unit.UnknownValue[uint64](why), unit.UnknownValue[uint64](why)
	}
	n := uint64(math.Round(float64(pages) * near / covered))
	from := fmt.Sprintf("NUMA hint faults of %d of %d threads", threads, tasks)
	return unit.Estimated(min(n, pages), from), unit.Estimated(pages-min(n, pages), from)
}
