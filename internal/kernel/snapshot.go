// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"homenode/internal/kernel/unix"
	"homenode/internal/machine"
	"homenode/internal/snapshot"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// SnapshotConfig says what to read. The zero SnapshotConfig looks once at the running
// kernel: no rates, no processes.
type SnapshotConfig struct {
	Reader Config
	// Interval is the time between the two readings for counts and rates. 0: one
	// reading, and they are unknown.
	Interval time.Duration
	// Processes are those to read. Max limits the automatic selection: the processes of
	// All and Workloads, largest resident memory first; 0 is no limit.
	Processes Selection
	// Threads are read too: CPU by node, where each may run, guests. It costs three
	// files a thread.
	Threads bool
	// Mappings keeps each mapping with memory, not only the sums by kind. It costs
	// /proc/PID/maps.
	Mappings bool
	// Biggest keeps only this many mappings of each process, the largest, and reads
	// only numa_maps for them. Mappings takes precedence.
	Biggest int
	// Maps limits what is read of numa_maps and maps: for a process (Process), and in
	// all (Round). The zero value is snapshotMaps.
	Maps MapsBounds
	IRQs bool
	// OnlyProcesses leaves out the rest: figures of nodes, workloads, the host's
	// settings. The machine then has only its nodes' ids, unless Threads need more.
	OnlyProcesses bool
	// Sampler samples memory accesses, Uncore counts the memory controllers' work. Nil:
	// there are none.
	Sampler, Uncore Probe

	Progress func(string)                               // the current activity; nil: not reported
	Wait     func(context.Context, time.Duration) error // nil: the wall clock
}

// Selection selects processes: the sum of its parts.
type Selection struct {
	All       bool
	PIDs      []int
	Workloads []string // all processes of these, by id
	Max       int
	Others    bool // not this program itself
}

// Probe measures during the interval, from Start to Stop, and puts its result into the
// snapshot, which until then has the reason why there is none. A probe that does not
// start is neither stopped nor finished.
type Probe interface {
	Start(context.Context, machine.Machine) error
	Stop()
	Finish(*snapshot.Snapshot) error
}

// Snapshotter looks closely at a host. It is not safe for concurrent use.
type Snapshotter struct {
	cfg    SnapshotConfig
	reader *Reader // also without workloads: then it reads nodes only
	buf    unix.Buffer
	kinds  kinds
	nodeAt []int // by node id: its place in Machine.Nodes, −1 for none
	maps   *unix.Budget
	before *reading // nil: none yet
	// problems of this snapshot, beside those of the window.
	problems []string
	started  []Probe // of this snapshot
}

const oneReading = "one reading only: no rate"

// snapshotMaps is more than a round of the agent has: a person asked for it, waits, and
// can stop waiting. A process's bound is that of procfs.MapsBudget.
var snapshotMaps = MapsBounds{Process: MapsBound{256 << 20, 30 * time.Second}, Round: MapsBound{1 << 30, 2 * time.Minute}}

// mostKept is the most mappings that are kept of a process: the same as procfs keeps.
const mostKept = 1 << 20

// NewSnapshotter prepares to read. Without a cgroup hierarchy that could bind a
// workload there are no workloads; the rest is still there.
func NewSnapshotter(cfg SnapshotConfig) (*Snapshotter, error) {
	if cfg.Progress == nil {
		cfg.Progress = func(string) {}
	}
	if cfg.Wait == nil {
		cfg.Wait = unix.Sleep
	}
	if cfg.Maps == (MapsBounds{}) {
		cfg.Maps = snapshotMaps
	}
	cfg.Processes.PIDs = slices.Sorted(slices.Values(cfg.Processes.PIDs))
	s := &Snapshotter{cfg: cfg}
	var err error
	switch {
	case cfg.OnlyProcesses && !cfg.Threads && len(cfg.Processes.Workloads) == 0:
		s.reader, err = newIDReader(cfg.Reader)
	case cfg.OnlyProcesses:
		s.reader, err = newBareReader(cfg.Reader, "")
	default:
		// No mountinfo: a recorded tree of /sys alone.
		if s.reader, err = NewReader(cfg.Reader); errors.Is(err, ErrNotSupported) || errors.Is(err, ErrGone) {
			s.reader, err = newBareReader(cfg.Reader, err.Error())
		}
	}
	if err != nil {
		return nil, err
	}
	s.kinds.root = cfg.Reader.Root
	return s, nil
}

// Close closes every open file.
func (s *Snapshotter) Close() { s.reader.Close() }

// Read takes a snapshot. The first time, with an interval, it reads twice with the
// interval in between; after that every Read waits, and reads once.
func (s *Snapshotter) Read(ctx context.Context) (snapshot.Snapshot, error) {
	s.problems, s.started = nil, nil
	if s.cfg.Interval > 0 && s.before == nil {
		s.cfg.Progress("first reading")
		for range 2 { // the first opens counters, which takes a while; all deltas are since the second
			if _, err := s.window(ctx); err != nil {
				return snapshot.Snapshot{}, err
			}
		}
		s.before = s.read(s.reader.Machine())
		s.problems = nil // persisting problems are reported by the second reading
	}
	w, err := s.watch(ctx)
	if err != nil {
		return snapshot.Snapshot{}, err
	}
	out := s.assemble(w)
	for _, p := range s.started {
		s.problem(p.Finish(&out))
	}
	out.Problems = append(out.Problems, w.Problems...)
	out.Problems = append(out.Problems, s.problems...)
	slices.Sort(out.Problems)
	out.Problems = slices.Compact(out.Problems)
	return out, nil
}

// watch waits while the probes run, and reads the window. They end where
// Snapshot.Length does: reading processes takes seconds on a large host, and makes
// traffic of its own. The last one's Stop is the quickest.
func (s *Snapshotter) watch(ctx context.Context) (window.Window, error) {
	defer func() {
		for _, p := range slices.Backward(s.started) {
			p.Stop()
		}
	}()
	if err := s.interval(ctx); err != nil {
		return window.Window{}, fmt.Errorf("wait between two readings: %w", err)
	}
	s.cfg.Progress("reading")
	return s.window(ctx)
}

// interval lets the probes run while it waits.
func (s *Snapshotter) interval(ctx context.Context) error {
	if s.cfg.Interval <= 0 {
		return nil
	}
	for _, p := range []Probe{s.cfg.Sampler, s.cfg.Uncore} {
		if p == nil {
			continue
		}
		err := p.Start(ctx, s.reader.Machine())
		if s.problem(err); err == nil {
			s.started = append(s.started, p)
		}
	}
	s.cfg.Progress(fmt.Sprintf("watching for %v", s.cfg.Interval))
	return s.cfg.Wait(ctx, s.cfg.Interval)
}

// window reads the window, or the part that OnlyProcesses leaves.
func (s *Snapshotter) window(ctx context.Context) (window.Window, error) {
	if s.cfg.OnlyProcesses {
		return window.Window{Schema: window.Schema, At: s.now().Round(0)}, nil
	}
	return s.reader.Read(ctx)
}

func (s *Snapshotter) now() time.Time { return s.reader.now() }

// assemble makes the snapshot from the second reading.
func (s *Snapshotter) assemble(w window.Window) snapshot.Snapshot {
	m := s.reader.Machine()
	s.nodeAt = nodePlaces(m)
	out := snapshot.Snapshot{Schema: snapshot.Schema, At: w.At, Machine: m, Window: w}
	now := s.read(m)
	was := s.before
	if was != nil {
		out.Length = now.at.Sub(was.at)
	}
	if s.cfg.Interval > 0 {
		s.before = now
	}
	since := delta{was: was, now: now, nodes: m.Nodes}
	if !s.cfg.OnlyProcesses {
		out.Nodes = s.nodes(m, since)
		out.Balancing = s.balancing(since)
		out.Swapping = swapping(since)
		out.Settings = s.settings()
		out.Cgroups = s.cgroups()
		out.Self = s.reader.own
		out.Hypervisor = s.hypervisor()
		out.Groups = s.groups(w, since, pooled(out.Nodes))
	}
	if s.cfg.IRQs {
		out.IRQs = s.irqs(since)
	}
	out.Processes = s.processes(now.processes, since, out.Length)
	out.Samples = snapshot.Samples{Why: "sampling of memory accesses was not requested"}
	return out
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

func (s *Snapshotter) problem(err error) {
	if err != nil {
		s.problems = append(s.problems, err.Error())
	}
}

// file reads a whole file of the tree. The error names the file and the failure.
func (s *Snapshotter) file(path string) ([]byte, error) {
	data, err := s.buf.ReadFile(s.cfg.Reader.Root.Path(path))
	if err != nil {
		return nil, unix.Explain("read", path, "", err)
	}
	return data, nil
}

// parsed reads a file and parses it. A malformed file is also a problem; a missing file
// is only unknown.
func parsed[T any](s *Snapshotter, path string, parse func([]byte) (T, error)) (T, error) {
	data, err := s.file(path)
	var v T
	if err == nil {
		if v, err = parse(data); err != nil {
			err = fmt.Errorf("read %s: %w", path, err)
		}
	}
	if err != nil && !errors.Is(err, ErrGone) {
		s.problem(err)
	}
	return v, err
}

// valueOf is a figure that was read, or the reason why it is unknown.
func valueOf[T any](v T, err error, from string) unit.Value[T] {
	if err != nil {
		return unit.UnknownValue[T](err.Error())
	}
	return unit.Measured(v, from)
}

// opt is a figure from a file that may lack it.
func opt[T any](o unit.Opt[T], err error, from string) unit.Value[T] {
	if v, ok := o.Get(); ok && err == nil {
		return unit.Measured(v, from)
	}
	if err != nil {
		return unit.UnknownValue[T](err.Error())
	}
	return unit.UnknownValue[T]("not in " + from)
}
