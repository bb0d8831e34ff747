// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/perf"
	"homenode/internal/kernel/unix"
	"homenode/internal/machine"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// ThreadConfig says which threads to read.
type ThreadConfig struct {
	Root Root // zero: "/"
	// PIDs are processes, Cgroups globs of cgroup paths: their operator says that it
	// matters where they run. Watched are processes for which it does not matter.
	PIDs, Watched []int
	Cgroups       []string
	// Infer leaves the tags of PIDs and Cgroups open: the policy must find them.
	Infer    bool
	UserOnly bool // count events in user mode only
	// Ours says whether a thread's affinity was set by homenode; nil: none was.
	Ours     func(tid int, start uint64, cpus set.CPUSet) bool
	Discover time.Duration // interval between searches for new threads; 0: at each Read
	Perf     unix.Tasks    // nil: the kernel's, if Root is "/"; else none
	Affinity unix.Affinity // nil: the kernel's
	Now      func() time.Time
}

// ThreadReader reads windows of single threads: of some processes and cgroups, where each thread
// is, what it did, and where it may run. It is made for periods from 10 ms up, so what a
// window costs is what counts.
//
//	each period, of each thread:
//	  perf group, one read ─▶ time on a CPU, cycles, instructions, A, W, DRAM reads
//	  task/TID/stat        ─▶ last CPU           (left out where it did not run)
//	  sched_getaffinity    ─▶ Allowed, Ours, Pinned
//	some times a second:
//	  task/, cgroup.threads ─▶ threads that came and went; CPUs that did
//
// Files stay open, and nothing is allocated for a thread that was there before. A window
// is therefore valid until the next Read only. It is not safe for concurrent use.
//
// Without counters the time on a CPU is from schedstat, which lags by up to a tick for a
// thread that runs, and everything else is unknown, with the reason.
type ThreadReader struct {
	cfg       ThreadConfig
	layout    cgroup.Layout
	noLayout  error
	topology  Topology
	allOnline set.CPUSet

	meter  *perf.TaskMeter // nil: noPerf says why
	noPerf string
	opened int // threads that are counted
	err    error
	// Threads that could not be read in the last look, and what was reported already.
	unread                            int
	whyUnread                         error
	reportedUncounted, reportedUnread int
	reportedCPUs                      map[string]bool // groups whose cpuset is not known

	groups   []*group // ascending by id
	byTID    map[int]*thread
	buf      unix.Buffer
	mask     unix.CPUWords
	round    uint64 // of looking for threads
	looked   time.Time
	last     time.Time
	seq      uint64
	cpu      time.Duration
	w        window.Window
	problems []string
	begun    map[string]bool // processes that were there once
}

// NewThreadReader opens the existing threads. It fails if there is nothing to read: no
// machine, or a process that does not exist.
func NewThreadReader(cfg ThreadConfig) (*ThreadReader, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Affinity == nil {
		cfg.Affinity = unix.LiveAffinity{}
	}
	r := &ThreadReader{cfg: cfg, topology: NewTopology(cfg.Root), byTID: map[int]*thread{}, begun: map[string]bool{}, reportedCPUs: map[string]bool{}}
	r.layout, r.noLayout = cgroup.Find(cfg.Root)
	if len(cfg.Cgroups) > 0 && r.noLayout != nil {
		return nil, r.noLayout
	}
	for _, pid := range slices.Concat(cfg.PIDs, cfg.Watched) {
		if pid == os.Getpid() && cfg.Root.Path("/") == "/" {
			return nil, fmt.Errorf("process %d is homenode itself (%w)", pid, ErrNotSupported)
		}
		if _, err := FindProcess(cfg.Root, pid); err != nil {
			return nil, err
		}
	}
	if err := r.readMachine(); err != nil {
		return nil, err
	}
	r.openMeter()
	if err := r.findThreads(); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// filesOfThread is the number of files kept open for a counted thread, beside its
// events: stat.
const filesOfThread = 1

func (r *ThreadReader) openMeter() {
	calls := r.cfg.Perf
	if calls == nil && r.cfg.Root.Path("/") == "/" {
		calls = unix.LivePerf{}
	}
	if calls == nil {
		r.noPerf = "no perf on a recorded tree"
		return
	}
	limit, err := unix.RaiseFileLimit()
	r.problem(err)
	r.meter = perf.NewTaskMeter(calls, perf.Config{Table: perf.Detect(r.cfg.Root).On(r.topology.Machine), UserOnly: r.cfg.UserOnly}, limit, filesOfThread)
}

// Usable is the reason why the uncore penalty of these threads is not counted; nil if
// it is.
func (r *ThreadReader) Usable() error {
	switch {
	case r.meter == nil:
		return perf.Need(fmt.Errorf("%s (%w)", r.noPerf, ErrNotSupported))
	case r.opened == 0 && r.err != nil:
		return perf.Need(r.err)
	}
	return r.meter.Usable()
}

// Machine is the topology as last read; it changes when CPUs go on- or offline.
func (r *ThreadReader) Machine() machine.Machine { return r.topology.Machine }

// EventTable names the event table of the counters; "" when there are none.
func (r *ThreadReader) EventTable() string {
	if r.meter == nil {
		return ""
	}
	return r.meter.Table().Name
}

// CPUTime is the cost of all Reads together.
func (r *ThreadReader) CPUTime() time.Duration { return r.cpu }

// Threads is the number of threads that are read now.
func (r *ThreadReader) Threads() int { return len(r.byTID) }

// Close closes every open file.
func (r *ThreadReader) Close() {
	for _, t := range r.byTID {
		r.closeThread(t)
	}
	clear(r.byTID)
	r.groups = nil
	r.topology.Close()
}

// readMachine (re)reads the topology.
func (r *ThreadReader) readMachine() error {
	if err := r.topology.Read(&r.buf, r.problem); err != nil {
		return err
	}
	r.allOnline, r.w.Nodes = set.CPUSet{}, nil
	for _, n := range r.topology.Machine.Nodes {
		r.allOnline = r.allOnline.Union(n.CPUs)
		r.w.Nodes = append(r.w.Nodes, bareNode(n))
	}
	return nil
}

// notRead is the reason why a node's figures are unknown.
const notRead = "not read with threads"

func bareNode(n machine.Node) window.Node {
	no := unit.UnknownValue[unit.Bytes](notRead)
	return window.Node{ID: n.ID, CPUs: n.CPUs, CPUBusy: unit.UnknownValue[float64](notRead), Memory: no, Free: no, File: no, Anon: no}
}

// Read returns what happened since the Read before; the first one only sets the base.
// The window is valid until the next Read.
func (r *ThreadReader) Read(ctx context.Context) (window.Window, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began := unix.ThreadCPU()
	defer func() { r.cpu += unix.ThreadCPU() - began }()
	now := r.cfg.Now()
	if now.Sub(r.looked) >= r.cfg.Discover {
		if err := r.findThreads(); err != nil {
			return window.Window{}, err
		}
	}
	length := time.Duration(0)
	if !r.last.IsZero() {
		length = now.Sub(r.last)
	}
	r.last = now
	for i, g := range r.groups {
		if err := ctx.Err(); err != nil {
			return window.Window{}, fmt.Errorf("read window: %w", err)
		}
		r.readGroup(g, &r.w.Workloads[i], length)
	}
	r.seq++
	r.w.Schema, r.w.Seq, r.w.At, r.w.Length, r.w.Outcomes = window.Schema, r.seq, now.Round(0), length, nil
	r.w.Problems, r.problems = r.problems, nil
	return r.w, nil
}

func (r *ThreadReader) problem(err error) {
	if err != nil {
		r.problems = append(r.problems, err.Error())
	}
}
