// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"path"

	"homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
	"homenode/internal/window"
)

var errNoMemoryHier = errors.New("its processes are in another cgroup of the memory hierarchy")

// memoryLimitCollector reads the least memory limit of each workload and of the cgroups
// above it. Each cgroup above is read once a round.
type memoryLimitCollector struct {
	base
	above map[string]*limitFile // by id
}

// limitFile is the memory limit of a cgroup above workloads.
type limitFile struct {
	file  unix.Kept
	limit unit.Opt[unit.Bytes]
	seen  uint64 // round
}

func newMemoryLimitCollector() *memoryLimitCollector {
	return &memoryLimitCollector{above: map[string]*limitFile{}}
}

func (c *memoryLimitCollector) attach(w *workload) sensor {
	return &memoryLimitSensor{c: c, w: w, own: w.file(w.memHier, limitName(w.memHier))}
}

// finish closes the files of cgroups that no workload was below in this round.
func (c *memoryLimitCollector) finish(rd *round) error {
	for id, l := range c.above {
		if l.seen != rd.seq {
			l.file.Close()
			delete(c.above, id)
		}
	}
	return nil
}

func (c *memoryLimitCollector) close() {
	for _, l := range c.above {
		l.file.Close()
	}
}

func limitName(h cgroup.Hier) string { return pick(h, "memory.max", "memory.limit_in_bytes") }

// memoryLimitSensor is a collector's sensor of one workload.
type memoryLimitSensor struct {
	c   *memoryLimitCollector
	w   *workload
	own *unix.Kept
}

// read looks at all cgroups upwards, since a charge counts in each of them
// (page_counter_try_charge in mm/page_counter.c).
func (s *memoryLimitSensor) read(rd *round, out *window.Workload) error {
	h := s.w.memHier
	if !h.Present() {
		return errNoMemoryHier
	}
	least, err := readLimit(&rd.buf, s.own)
	by := s.w.ID
	for id := path.Dir(s.w.ID); err == nil && id != "/" && id != "."; id = path.Dir(id) {
		var l unit.Opt[unit.Bytes]
		l, err = s.c.limitOf(rd, h, id)
		if n, ok := l.Get(); ok && (!least.Known() || n < least.Or(0)) {
			least, by = l, id
		}
	}
	if err != nil {
		return err
	}
	n, ok := least.Get()
	if !ok {
		return errNoLimit
	}
	from := limitName(h)
	if s.w.limitedBy = by; by != s.w.ID {
		from += " of " + by
	}
	out.MemoryLimit = unit.Measured(n, from)
	return nil
}

func (s *memoryLimitSensor) unknown(_ *round, out *window.Workload, why string) {
	out.MemoryLimit = unit.UnknownValue[unit.Bytes](why)
}

func (c *memoryLimitCollector) limitOf(rd *round, h cgroup.Hier, id string) (unit.Opt[unit.Bytes], error) {
	l := c.above[id]
	if l == nil {
		l = &limitFile{file: unix.Kept{Path: rd.layout.Path(h, id, limitName(h)), Loose: true}}
		c.above[id] = l
	}
	if l.seen == rd.seq {
		return l.limit, nil
	}
	limit, err := readLimit(&rd.buf, &l.file)
	l.limit, l.seen = limit, rd.seq
	return limit, err
}

// readLimit is none if the controller is off: then nothing limits memory.
func readLimit(buf *unix.Buffer, k *unix.Kept) (unit.Opt[unit.Bytes], error) {
	data, err := k.ReadLine(buf)
	if err != nil {
		if errors.Is(unix.Classify(err), unix.ErrGone) {
			return unit.None[unit.Bytes](), nil
		}
		return unit.None[unit.Bytes](), unix.Explain("read", k.Path, "", err)
	}
	return cgroup.ParseMemoryLimit(data)
}
