// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"homenode/internal/kernel/bpfcount"
	"homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/perf"
	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
)

// How events are counted: Config.Events. The zero value is EventsPerf.
const (
	EventsAuto = "auto" // by BPF where that works, else by perf's groups
	EventsPerf = "perf" // a group of events for each cgroup and CPU
	EventsBPF  = "bpf"  // by BPF or not at all
	EventsOff  = "off"
)

const (
	// DefaultTicks is one of how many ticks a CPU counts in. docs/decisions/0027 has what
	// it costs and how far counts are off; lower is nearer and costs workloads more.
	DefaultTicks = 16
	// firstSlots are what BPF starts with at least; it starts anew when there are more
	// cgroups than it has room for.
	firstSlots = 256
	// mostBelow is how many cgroups below a workload count as its own.
	mostBelow = 256
)

// counting is what counting by BPF, and taking turns, remembers.
type counting struct {
	bpf     *bpfcount.Counter // nil: by perf
	slots   int               // asked for: bpf may have fewer
	full    bool              // somebody found no room
	turns   perf.Turns
	counted map[string]bool // whose turn it is; nil: everybody's
	budget  perf.Budget
}

// openBPF starts counting by BPF, if that is wanted; where it cannot be, auto goes on
// with perf and says so once.
func (r *Reader) openBPF() {
	wanted := r.cfg.Events == EventsAuto || r.cfg.Events == EventsBPF
	if !wanted || r.meter == nil || r.cfg.Perf != nil || r.cfg.Root.Path("/") != "/" {
		return
	}
	if found, err := r.discover(); err == nil { // what goes wrong is told in the round
		r.slots = max(r.slots, bpfcount.RoundUp(len(found)))
	}
	r.slots, r.full = max(r.slots, firstSlots), false
	c := bpfcount.Config{UserOnly: r.cfg.UserOnly, CPUs: r.machine.OnlineCPUs().IDs(), Slots: r.slots, Every: r.oneOf()}
	if !r.layout.Cpuset.V2 {
		c.Controller = "cpuset"
	}
	var err error
	for _, c.Events = range r.meter.Table().Fewer() {
		if c.Events == nil && !r.layout.CPUAcct.V2 {
			break // cpuacct tells what the clock would
		}
		if r.bpf, err = bpfcount.New(c); !errors.Is(err, ErrNotSupported) {
			break
		}
	}
	if err == nil {
		return
	}
	r.problem(err)
	if r.cfg.Events == EventsBPF {
		r.meter, r.noPerf = nil, err.Error()
	}
}

func (r *Reader) oneOf() int {
	if r.cfg.Ticks == 0 {
		return DefaultTicks
	}
	return r.cfg.Ticks
}

func (r *Reader) closeBPF() {
	if r.bpf != nil {
		r.bpf.Close()
		r.bpf = nil
	}
	for _, w := range r.workloads {
		w.slot = 0
	}
}

// beginCounting is once a round, before any workload is read.
func (r *Reader) beginCounting(found []cgroup.Cgroup) {
	r.growBPF(len(found))
	if r.bpf != nil {
		r.problem(r.bpf.Update())
		return
	}
	if r.meter != nil {
		r.takeTurns(found)
	}
}

// growBPF starts anew with twice the slots where there are too few, before anything of
// the round is read: everybody's next sample is a base. A counter that has fewer than it
// was asked for is as large as it may be.
func (r *Reader) growBPF(found int) {
	if r.bpf == nil || r.bpf.Slots() < r.slots || !r.full && found <= r.slots {
		return
	}
	r.closeBPF()
	r.slots *= 2
	r.openBPF()
}

// takeTurns decides who has events of its own, and relieves the others.
func (r *Reader) takeTurns(found []cgroup.Cgroup) {
	each := len(r.machine.OnlineCPUs().IDs()) * (len(r.meter.Table().Events) + 1)
	all := make([]perf.Candidate, 0, len(found))
	for _, cg := range found {
		w := r.workloads[cg.ID]
		if w == nil || !w.perfHier.Present() || w.events == nil && !r.mayOpen(w) {
			continue
		}
		ours := r.cfg.Watched != nil && r.cfg.Watched(cg.ID)
		all = append(all, perf.Candidate{ID: cg.ID, Files: each, Ours: ours})
	}
	r.counted = map[string]bool{}
	for _, id := range r.turns.Choose(all, r.budget) {
		r.counted[id] = true
	}
	waiting := 0
	for _, c := range all {
		if w := r.workloads[c.ID]; !r.counted[c.ID] {
			waiting++
			w.noPerf = "not its turn to be counted: the budget of descriptors is less than all workloads' events"
			if w.events != nil {
				w.events.Close()
				w.events = nil
			}
		}
	}
	if waiting > 0 {
		r.problem(fmt.Errorf("count events: %d of %d workloads wait for their turn: %d descriptors for each, %d in all (raise LimitNOFILE, or count by BPF)", waiting, len(all), each, r.budget.Files))
	}
}

// mayOpen spares what failed for a while.
func (r *Reader) mayOpen(w *workload) bool { return !w.failed || w.seen%rarely == 0 }

// has says whether a field of the workload is counted.
func (r *Reader) has(w *workload, f perf.Field) bool {
	if r.bpf != nil {
		return w.slot != 0 && r.bpf.Has(f)
	}
	return w.events != nil && w.events.Has(f)
}

// sampleBPF reads the workload's part of the ledger. What was counted in some ticks only,
// or of some of its cgroups, stands for the others, and is scaled by the CPU time that it
// used, which is exact, to the one estimated.
func (r *Reader) sampleBPF(w *workload, total unit.Value[float64]) (perf.Sample, string) {
	if w.slot == 0 || w.seen%rarely == 0 {
		if err := r.slotFor(w); err != nil {
			r.problem(err)
			if w.slot == 0 {
				return perf.Sample{}, err.Error()
			}
		}
	}
	s, err := r.bpf.Read(w.slot, r.cfg.Now().Sub(r.start), w.clocks)
	if err != nil {
		r.problem(err)
		return perf.Sample{}, err.Error()
	}
	w.clocks = s.ByCPU
	if !s.OK || r.oneOf() <= 1 && !w.partly {
		return s, "first sample of a counter is only a base"
	}
	used, known := total.Get()
	counted := time.Duration(s.Total[perf.Clock]).Seconds()
	switch {
	case !known:
		s.ScaleBy(1)
	case counted > 0:
		s.ScaleBy(used * s.Elapsed.Seconds() / counted)
	case used > 0:
		s.OK = false
	}
	return s, "it did not run in the ticks that were counted"
}

// partOf says of which part counts are that were scaled by CPU time.
func (r *Reader) partOf(w *workload) string {
	var of string
	if n := r.oneOf(); n > 1 {
		of = fmt.Sprintf(", in one of %d ticks", n)
	}
	if w.partly {
		of += ", of some of its cgroups"
	}
	return of
}

// slotFor has BPF count the workload and the cgroups below it: those that are there now.
func (r *Reader) slotFor(w *workload) error {
	ids, all, err := below(w.dir, r.otherThan(w))
	if err != nil {
		return err
	}
	if w.slot == 0 {
		w.slot, err = r.bpf.Add(ids...)
	} else {
		err = r.bpf.Replace(w.slot, ids...)
	}
	r.full = r.full || errors.Is(err, bpfcount.ErrFull)
	w.partly = !all || err != nil
	return err
}

// otherThan says of a directory below w's whether it is a workload itself: that has a
// slot of its own, and those below it are its.
func (r *Reader) otherThan(w *workload) func(dir string) bool {
	top := strings.TrimSuffix(w.dir, w.ID)
	return func(dir string) bool {
		return r.workloads["/"+strings.TrimLeft(strings.TrimPrefix(dir, top), "/")] != nil
	}
}

// below are the ids of a cgroup and of those below it, without others' and theirs; all
// is false when there are more than mostBelow.
func below(dir string, other func(dir string) bool) (ids []uint64, all bool, err error) {
	id, err := unix.Inode(dir)
	if err != nil {
		return nil, false, unix.Explain("look at", dir, "", err)
	}
	ids, all = []uint64{id}, true
	if !unix.MayHaveSubdirs(dir) {
		return ids, all, nil
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || !d.IsDir() || path == dir:
			return nil // one that is gone by now
		case other(path):
			return fs.SkipDir
		case len(ids) >= mostBelow:
			all = false
			return fs.SkipAll
		}
		if id, err := unix.Inode(path); err == nil {
			ids = append(ids, id)
		}
		return nil
	})
	return ids, all, nil
}
