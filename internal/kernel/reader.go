// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/perf"
	"homenode/internal/kernel/resctrl"
	"homenode/internal/kernel/unix"
	"homenode/internal/machine"
	"homenode/internal/set"
	"homenode/internal/window"
)

// Config says what to read. The zero Config reads the running kernel's
// workloads with all the counters it has.
type Config struct {
	Root  Root     // zero: "/"
	Roots []string // globs of cgroup paths, "/demo/*"; none: every cgroup with processes
	// Ours says whether homenode set a setting's present value, by the journal. Nil: no
	// setting is ours.
	Ours   func(id, file, value string) bool
	NoPerf bool   // do not count events
	Events string // how to: EventsAuto, EventsPerf (""), EventsBPF, EventsOff
	Ticks  int    // by BPF: count in one of this many ticks; 0: DefaultTicks, 1: always
	// Watched says which workloads are counted first if not all can be. Nil: none.
	Watched  func(id string) bool
	Budget   perf.Budget // of perf's groups; zero: DefaultBudget
	UserOnly bool        // count events in user mode only
	Penalty  bool        // also count UncoreRequests, UncoreWaits and LLCMisses of workloads, where the CPU can
	Perf     unix.Perf   // nil: the kernel's, if Root is "/"; else none
	// Resctrl says how traffic and cache are counted where resctrl is mounted. Without
	// its Live token, only existing groups are read.
	Resctrl   resctrl.Config
	Hints     HintMode   // when threads' hint faults are read
	HintTasks int        // threads whose hint faults are read in a round; 0: 64
	Maps      MapsBounds // of processes' numa_maps; zero: defaultMaps
	Now       func() time.Time
	Seq       uint64 // number of the window before the first one
}

// Reader reads windows: it finds the workloads, and has the collectors read them. It is
// not safe for concurrent use.
type Reader struct {
	host
	roots      []string // Config.Roots
	bare       bool     // workloads are not searched for
	collectors []registered
	workloads  map[string]*workload

	seq    uint64
	last   time.Time     // end of the last window
	cpu    time.Duration // used by all Reads
	always []string      // problems of every window
}

// NewReader prepares to read. It fails with ErrNotSupported if no workload could be
// bound: no cpuset, or no machine.
func NewReader(cfg Config) (*Reader, error) {
	layout, err := cgroup.Find(cfg.Root)
	if err == nil {
		err = layout.NeedCpuset()
	}
	if err != nil {
		return nil, err
	}
	unix.BoundLoose()
	r := emptyReader(cfg)
	r.layout = layout
	if err := r.readMachine(); err != nil {
		return nil, err
	}
	r.register(cfg)
	return r, nil
}

func emptyReader(cfg Config) *Reader {
	return &Reader{host: newHost(cfg), roots: cfg.Roots, workloads: map[string]*workload{}}
}

// newBareReader reads a machine and its nodes, but no workloads; why is a problem of
// every window, if it is one.
func newBareReader(cfg Config, why string) (*Reader, error) {
	r := emptyReader(cfg)
	r.bare = true
	if err := r.readMachine(); err != nil {
		return nil, err
	}
	r.layout, _ = cgroup.Find(cfg.Root) // for the processes of a cgroup
	r.collectors = []registered{{"nodes", newNodeCollector(&r.host)}}
	if why != "" {
		r.always = []string{why}
	}
	return r, nil
}

// newIDReader knows only the ids of the nodes. That takes one file; a machine's
// topology takes many for every CPU.
func newIDReader(cfg Config) (*Reader, error) {
	const file = "/sys/devices/system/node/online"
	r := emptyReader(cfg)
	data, err := r.buf.ReadFile(cfg.Root.Path(file))
	if err != nil {
		return newBareReader(cfg, "") // no NUMA in this kernel, or no such file in the tree
	}
	ids, err := set.ParseNodes(string(data))
	if err != nil || ids.IsEmpty() {
		return nil, malformedSet(file, errors.Join(err, errNoNode(ids)))
	}
	r.bare = true
	m := &r.topology.Machine
	for id := range ids.All() {
		m.Nodes = append(m.Nodes, machine.Node{ID: id})
	}
	return r, nil
}

func errNoNode(ids set.NodeSet) error {
	if ids.IsEmpty() {
		return errors.New("no node is online")
	}
	return nil
}

// Machine is the topology as last read; it changes when CPUs go on- or offline.
func (r *Reader) Machine() machine.Machine { return r.topology.Machine }

func (r *Reader) readMachine() error { return r.topology.Read(&r.buf, r.problem) }

// CPUTime is the cost of all Reads together.
func (r *Reader) CPUTime() time.Duration { return r.cpu }

// EventTable names the event table of the counters; "" when there are none.
func (r *Reader) EventTable() string {
	for _, c := range r.collectors {
		if events, ok := c.collector.(*eventCollector); ok {
			return events.table()
		}
	}
	return ""
}

// WhyNotCounted says why accesses to memory would not be counted for any workload; "" if
// they would. It is for a window without workloads, which cannot say it.
func (r *Reader) WhyNotCounted() string {
	for _, c := range r.collectors {
		if events, ok := c.collector.(*eventCollector); ok {
			return events.whyNot()
		}
	}
	return "no events are read"
}

// Close closes every open file.
func (r *Reader) Close() {
	r.forgetAll()
	for _, c := range r.collectors {
		c.close()
	}
	r.topology.Close()
}

// Read returns what happened since the Read before. The first one only sets the base:
// its deltas are unknown. An error means that there is no window.
func (r *Reader) Read(ctx context.Context) (window.Window, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began := unix.ThreadCPU() + r.patient.cpu
	defer func() { r.cpu += unix.ThreadCPU() + r.patient.cpu - began }()

	r.followHotplug()
	found, err := r.discover()
	if err != nil {
		return window.Window{}, err
	}
	r.follow(found)
	rd := r.beginRound(found)
	for _, w := range rd.workloads {
		if err := ctx.Err(); err != nil {
			return window.Window{}, fmt.Errorf("read window: %w", err)
		}
		r.addWorkload(rd, w)
	}
	return r.finishRound(rd), nil
}

// followHotplug starts over when the set of online CPUs has changed: events are
// opened per CPU.
func (r *Reader) followHotplug() {
	if r.topology.Changed(&r.buf) {
		r.forgetAll()
		r.problem(r.readMachine())
	}
}

func (r *Reader) discover() ([]cgroup.Cgroup, error) {
	if r.bare {
		return nil, nil
	}
	return r.layout.DiscoverKnowing(r.roots, func(id string) bool { return r.workloads[id] != nil }, r.problem)
}

// follow forgets workloads that have gone, and attaches the collectors to new ones.
func (r *Reader) follow(found []cgroup.Cgroup) {
	here := map[string]bool{}
	for _, cg := range found {
		here[cg.ID] = true
		if w := r.workloads[cg.ID]; w != nil && !w.same() {
			r.forget(cg.ID)
		}
		if r.workloads[cg.ID] == nil {
			r.workloads[cg.ID] = r.meet(cg)
		}
	}
	for id := range r.workloads {
		if !here[id] {
			r.forget(id)
		}
	}
}

func (r *Reader) forget(id string) {
	r.workloads[id].close()
	delete(r.workloads, id)
	for _, c := range r.collectors {
		c.forget(id)
	}
}

func (r *Reader) forgetAll() {
	for id := range r.workloads {
		r.forget(id)
	}
}

// finishRound completes the window.
func (r *Reader) finishRound(rd *round) window.Window {
	for _, c := range r.collectors {
		r.problem(c.finish(rd))
	}
	w, now := rd.window, r.now()
	w.At = now.Round(0)
	if !r.last.IsZero() {
		w.Length = max(0, now.Sub(r.last)) // by the monotonic clock: now has its reading, At has not
	}
	r.last = now
	r.problems = append(r.problems, r.always...)
	slices.Sort(r.problems)
	w.Problems = slices.Compact(r.problems)
	r.problems = nil
	return w
}
