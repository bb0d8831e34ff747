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
	"homenode/internal/kernel/perf"
	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
)

const (
	// DefaultTicks: a CPU counts in one of this many ticks. docs/decisions/0027 has its
	// cost and the error of the counts; lower is more exact and costs workloads more.
	DefaultTicks = 16
	// firstSlots is the least that BPF starts with; it starts again when there are more
	// cgroups than it has room for.
	firstSlots = 256
	// mostBelow is the number of cgroups below a workload that count as its own.
	mostBelow = 256
)

// bpfCounting is what counting by BPF remembers.
type bpfCounting struct {
	bpf      *bpfcount.Counter // nil: by perf
	slots    int               // asked for: bpf may have fewer
	full     bool              // a cgroup found no room
	topology int               // Topology.Reads that bpf was opened for
}

// followBPF opens the counter, and opens it again when the machine has changed or when
// there are more cgroups than it has room for. It does so before anything of the round
// is read: every workload's next sample is a base.
func (c *eventCollector) followBPF(rd *round) {
	if c.topology != rd.topology.Reads {
		c.topology = rd.topology.Reads
		c.closeBPF()
		c.openBPF(len(rd.workloads))
	}
	c.growBPF(len(rd.workloads))
}

// openBPF starts counting by BPF, if that is wanted; if it fails, auto continues with
// perf and reports it once.
func (c *eventCollector) openBPF(workloads int) {
	wanted := c.cfg.Events == EventsAuto || c.cfg.Events == EventsBPF
	if !wanted || c.meter == nil || c.cfg.Perf != nil || !c.host.live() {
		return
	}
	c.slots, c.full = max(c.slots, bpfcount.RoundUp(workloads), firstSlots), false
	cfg := bpfcount.Config{UserOnly: c.cfg.UserOnly, CPUs: c.host.topology.Machine.OnlineCPUs().IDs(), Slots: c.slots, Every: c.oneOf()}
	if !c.host.layout.Cpuset.V2 {
		cfg.Controller = "cpuset"
	}
	var err error
	for _, cfg.Events = range c.meter.Table().Fewer() {
		if cfg.Events == nil && !c.host.layout.CPUAcct.V2 {
			break // the clock alone: cpuacct has it
		}
		if c.bpf, err = bpfcount.New(cfg); !errors.Is(err, ErrNotSupported) {
			break
		}
	}
	if err == nil {
		return
	}
	c.host.problem(err)
	if c.cfg.Events == EventsBPF {
		c.meter, c.why = nil, err.Error()
	}
}

func (c *eventCollector) oneOf() int {
	if c.cfg.Ticks == 0 {
		return DefaultTicks
	}
	return c.cfg.Ticks
}

func (c *eventCollector) closeBPF() {
	if c.bpf != nil {
		c.bpf.Close()
		c.bpf = nil
	}
	for _, s := range c.of {
		s.slot = 0
	}
}

// growBPF starts again with twice the slots when there are too few. A counter with
// fewer than were requested is as large as it may be.
func (c *eventCollector) growBPF(workloads int) {
	if c.bpf == nil || c.bpf.Slots() < c.slots || !c.full && workloads <= c.slots {
		return
	}
	c.closeBPF()
	c.slots *= 2
	c.openBPF(workloads)
}

// sampleBPF reads the workload's part of the ledger. Counts from some ticks only, or
// from some of its cgroups, stand for the others. They are scaled from the CPU time
// that was counted to the CPU time that the workload used, which is exact.
func (s *eventSensor) sampleBPF(rd *round, total unit.Value[float64]) (perf.Sample, string) {
	if s.slot == 0 || s.w.seen%rarely == 0 {
		if err := s.takeSlot(); err != nil {
			rd.problem(err)
			if s.slot == 0 {
				return perf.Sample{}, err.Error()
			}
		}
	}
	sample, err := s.c.bpf.Read(s.slot, rd.now().Sub(s.c.start), s.clocks)
	if err != nil {
		rd.problem(err)
		return perf.Sample{}, err.Error()
	}
	s.clocks = sample.ByCPU
	if !sample.OK || s.c.oneOf() <= 1 && !s.partly {
		return sample, firstSample
	}
	scaleToUsed(&sample, total)
	return sample, "it did not run in the counted ticks"
}

func scaleToUsed(sample *perf.Sample, total unit.Value[float64]) {
	used, known := total.Get()
	counted := time.Duration(sample.Total[perf.Clock]).Seconds()
	switch {
	case !known:
		sample.ScaleBy(1)
	case counted > 0:
		sample.ScaleBy(used * sample.Elapsed.Seconds() / counted)
	case used > 0:
		sample.OK = false
	}
}

// partOf names the part that counts scaled by CPU time come from.
func (s *eventSensor) partOf() string {
	var of string
	if n := s.c.oneOf(); n > 1 {
		of = fmt.Sprintf(", in one of %d ticks", n)
	}
	if s.partly {
		of += ", of some of its cgroups"
	}
	return of
}

// takeSlot makes BPF count the workload and the cgroups below it: those that are there
// now.
func (s *eventSensor) takeSlot() error {
	ids, all, err := below(s.w.dir, s.isOther)
	if err != nil {
		return err
	}
	if s.slot == 0 {
		s.slot, err = s.c.bpf.Add(ids...)
	} else {
		err = s.c.bpf.Replace(s.slot, ids...)
	}
	s.c.full = s.c.full || errors.Is(err, bpfcount.ErrFull)
	s.partly = !all || err != nil
	return err
}

// isOther says whether a directory below the workload's is a workload itself. Such a
// workload has a slot of its own, which counts the cgroups below it, too.
func (s *eventSensor) isOther(dir string) bool {
	top := strings.TrimSuffix(s.w.dir, s.w.ID)
	return s.c.of["/"+strings.TrimLeft(strings.TrimPrefix(dir, top), "/")] != nil
}

// below are the ids of a cgroup and of those below it, without other workloads and the
// cgroups below them; all is false when there are more than mostBelow.
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
