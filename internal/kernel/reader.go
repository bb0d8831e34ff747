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
	"homenode/internal/unit"
	"homenode/internal/window"
)

// Config says what to read. The zero Config reads the running kernel's
// workloads with all the counters it has.
type Config struct {
	Root  Root     // zero: "/"
	Roots []string // globs of cgroup paths, "/demo/*"; none: every cgroup with processes
	// Ours says whether a setting's present value was set by homenode: the
	// journal knows. Nil: nothing is ours.
	Ours   func(id, file, value string) bool
	NoPerf bool   // do not count events
	Events string // how to: EventsAuto, EventsPerf (""), EventsBPF, EventsOff
	Ticks  int    // by BPF: count in one of so many ticks; 0: DefaultTicks, 1: always
	// Watched says who is counted first where not all can be. Nil: nobody.
	Watched  func(id string) bool
	Budget   perf.Budget // of perf's groups; zero: DefaultBudget
	UserOnly bool        // count events in user mode only
	Penalty  bool        // count UncoreRequests, UncoreWaits and LLCMisses of workloads, too, where the CPU can
	Perf     unix.Perf   // nil: the kernel's, if Root is "/"; else none
	// Resctrl says how traffic and cache are counted where resctrl is mounted. Without
	// its Live token only groups that are there are read.
	Resctrl   resctrl.Config
	Hints     HintMode   // when threads' hint faults are read
	HintTasks int        // threads whose hint faults are read in a round; 0: 64
	Maps      MapsBounds // of processes' numa_maps; zero: defaultMaps
	Now       func() time.Time
}

// Reader reads windows. It is not safe for concurrent use.
type Reader struct {
	cfg     Config
	layout  cgroup.Layout
	machine machine.Machine
	proc    string // "/proc/" below the root
	buf     unix.Buffer
	meter   *perf.Meter // nil: noPerf says why
	noPerf  string
	resctrl traffic

	hints  hints
	policy policyTurn
	limits map[string]*limitFile // memory limits of workloads' ancestors
	counting

	online, stat unix.Kept
	onlineText   string
	meminfo      []unix.Kept // parallel to machine.Nodes
	nodeOfCPU    map[int]int // index into machine.Nodes
	ticks        map[int]tickPair
	workloads    map[string]*workload
	parents      map[string]cgroup.Effective // of this round
	ids          []int                       // scratch
	maps         *unix.Budget                // of this round
	patient      patient

	start, last time.Time
	seq         uint64
	cpu         time.Duration
	problems    []string
	bare        bool     // there are no workloads to look for
	always      []string // problems of every window
}

// NewReader prepares to read. It fails with ErrNotSupported where no workload
// could be bound: no cpuset, or no machine.
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
	r.openMeter()
	r.openResctrl()
	r.openBPF()
	return r, nil
}

func emptyReader(cfg Config) *Reader {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Maps == (MapsBounds{}) {
		cfg.Maps = defaultMaps
	}
	r := &Reader{cfg: cfg, workloads: map[string]*workload{}, limits: map[string]*limitFile{}, start: cfg.Now()}
	r.online.Path = cfg.Root.Path("/sys/devices/system/cpu/online")
	r.stat.Path = cfg.Root.Path("/proc/stat")
	return r
}

// newBareReader reads a machine and its nodes, but no workloads; why is a problem
// to be mentioned, if it is one.
func newBareReader(cfg Config, why string) (*Reader, error) {
	r := emptyReader(cfg)
	r.bare = true
	if err := r.readMachine(); err != nil {
		return nil, err
	}
	r.layout, _ = cgroup.Find(cfg.Root) // for the processes of a cgroup
	if why != "" {
		r.always = []string{why}
	}
	return r, nil
}

// newIDReader knows the ids of the nodes and nothing else: one file, where a
// machine's topology is many for every CPU.
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
	for id := range ids.All() {
		r.machine.Nodes = append(r.machine.Nodes, machine.Node{ID: id})
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
func (r *Reader) Machine() machine.Machine { return r.machine }

// CPUTime is what all Reads together cost.
func (r *Reader) CPUTime() time.Duration { return r.cpu }

// EventTable names the table that counters are read by; "" when none are.
func (r *Reader) EventTable() string {
	if r.meter == nil {
		return ""
	}
	return r.meter.Table().Name
}

// Close lets go of every open file.
func (r *Reader) Close() {
	for _, w := range r.workloads {
		w.close()
	}
	r.closeBPF()
	r.closeFiles()
	r.hints.balancing.Close()
	r.dropLimits(0)
	r.resctrl.close()
	clear(r.workloads)
}

func (r *Reader) closeFiles() {
	r.online.Close()
	r.stat.Close()
	for i := range r.meminfo {
		r.meminfo[i].Close()
	}
}

// openMeter prepares perf, or notes why there is none.
func (r *Reader) openMeter() {
	calls := r.cfg.Perf
	if calls == nil && r.cfg.Root.Path("/") == "/" {
		calls = unix.LivePerf{}
	}
	switch {
	case r.cfg.NoPerf, r.cfg.Events == EventsOff:
		r.noPerf = "perf is switched off"
	case calls == nil:
		r.noPerf = "no perf on a recorded tree"
	case !r.layout.Perf.Present():
		r.noPerf = "no cgroup hierarchy has perf_event"
	default:
		limit, err := unix.RaiseFileLimit()
		r.problem(err)
		cfg := perf.Config{Table: perf.Detect(r.cfg.Root), UserOnly: r.cfg.UserOnly}
		if r.cfg.Penalty {
			cfg.Table = cfg.Table.WithPenalty()
		}
		r.meter = perf.NewMeter(calls, cfg, limit)
		if r.budget = r.cfg.Budget; r.budget == (perf.Budget{}) {
			r.budget = perf.DefaultBudget(limit)
		}
	}
}

// readMachine (re)reads the topology and what hangs on it.
func (r *Reader) readMachine() error {
	// First, which CPUs are online: what comes or goes while the rest is read is seen by
	// the next round, and the machine read again.
	if text, err := r.online.Read(&r.buf); err == nil {
		r.onlineText = string(text)
	}
	m, err := ReadMachine(r.cfg.Root)
	if len(m.Nodes) == 0 {
		return errors.Join(err, fmt.Errorf("read machine %s: no NUMA node (%w)", r.cfg.Root, ErrNotSupported))
	}
	r.problem(err)
	r.closeFiles()
	r.machine, r.nodeOfCPU, r.ticks = m, map[int]int{}, map[int]tickPair{}
	r.meminfo = make([]unix.Kept, len(m.Nodes))
	for i, n := range m.Nodes {
		r.meminfo[i].Path = r.cfg.Root.Path(fmt.Sprintf("/sys/devices/system/node/node%d/meminfo", n.ID))
	}
	for _, c := range m.CPUs {
		if id, ok := c.Node.Get(); ok {
			r.nodeOfCPU[c.ID] = slices.IndexFunc(m.Nodes, func(n machine.Node) bool { return n.ID == id })
		}
	}
	return nil
}

// Read returns what happened since the Read before. The first one only primes:
// its deltas are unknown. An error means that there is no window.
func (r *Reader) Read(ctx context.Context) (window.Window, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began := unix.ThreadCPU()
	defer func() { r.cpu += unix.ThreadCPU() - began }()

	r.followHotplug()
	found, err := r.discover()
	if err != nil {
		return window.Window{}, err
	}
	r.follow(found)
	r.beginCounting(found)
	r.parents = map[string]cgroup.Effective{}
	r.seq++
	r.maps = r.cfg.Maps.Round.begin(nil)
	r.beginHints(len(found))
	r.beginPolicies()
	w := window.Window{Schema: window.Schema, Seq: r.seq, Nodes: r.nodes()}
	for _, cg := range found {
		if err := ctx.Err(); err != nil {
			return window.Window{}, fmt.Errorf("read window: %w", err)
		}
		r.add(&w, cg)
	}
	r.addTraffic(&w)
	r.finish(&w)
	return w, nil
}

func (r *Reader) discover() ([]cgroup.Cgroup, error) {
	if r.bare {
		return nil, nil
	}
	return r.layout.DiscoverKnowing(r.cfg.Roots, func(id string) bool { return r.workloads[id] != nil }, r.problem)
}

// add reads one workload; one that is gone by now is left out.
func (r *Reader) add(w *window.Window, cg cgroup.Cgroup) {
	wl, err := r.readWorkload(r.workloads[cg.ID])
	switch {
	case errors.Is(err, ErrGone):
		r.forget(cg.ID)
	case err != nil:
		r.problem(err)
	default:
		w.Workloads = append(w.Workloads, wl)
	}
}

func (r *Reader) finish(w *window.Window) {
	r.dropLimits(r.seq)
	now := r.cfg.Now()
	w.At = now.Round(0)
	if !r.last.IsZero() {
		w.Length = max(0, now.Sub(r.last)) // by the monotonic clock: now has its reading, At has not
	}
	r.last = now
	r.problems = append(r.problems, r.always...)
	slices.Sort(r.problems)
	w.Problems = slices.Compact(r.problems)
	r.problems = nil
}

// follow forgets workloads that went away and meets new ones.
func (r *Reader) follow(found []cgroup.Cgroup) {
	here := map[string]bool{}
	for _, cg := range found {
		here[cg.ID] = true
		w := r.workloads[cg.ID]
		if w != nil && !w.same() {
			r.forget(cg.ID)
			w = nil
		}
		if w == nil {
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
	if w := r.workloads[id]; w != nil {
		w.close()
		r.turns.Forget(id)
		if r.bpf != nil && w.slot != 0 {
			r.bpf.Remove(w.slot)
		}
		delete(r.workloads, id)
	}
}

// followHotplug starts over when the set of online CPUs has changed: events are
// opened per CPU.
func (r *Reader) followHotplug() {
	text, err := r.online.Read(&r.buf)
	if err != nil || string(text) == r.onlineText {
		return
	}
	for id := range r.workloads {
		r.forget(id)
	}
	r.problem(r.readMachine())
	r.resctrl.machineChanged(r.machine)
	r.closeBPF()
	r.openBPF()
}

// problem notes what went wrong, a sentence each.
func (r *Reader) problem(err error) {
	if err != nil {
		r.problems = append(r.problems, err.Error())
	}
}

// perNode adds CPU times up by node, in CPUs' worth of elapsed.
func (r *Reader) perNode(elapsed time.Duration, each func(add func(cpu int, t time.Duration))) []float64 {
	by := make([]float64, len(r.machine.Nodes))
	each(func(cpu int, t time.Duration) {
		if i, ok := r.nodeOfCPU[cpu]; ok && i >= 0 && elapsed > 0 {
			by[i] += t.Seconds() / elapsed.Seconds()
		}
	})
	return by
}

// unknownByNode is a slice by node of which nothing is known, and why.
func unknownByNode[T any](n int, why string) []unit.Value[T] {
	all := make([]unit.Value[T], n)
	for i := range all {
		all[i] = unit.UnknownValue[T](why)
	}
	return all
}
