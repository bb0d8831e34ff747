// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"
	"time"

	"homenode/internal/kernel/procfs"
	"homenode/internal/machine"
	"homenode/internal/unit"
)

// reading is every counter that only means something as a difference from an earlier
// one.
type reading struct {
	at         time.Time
	numastat   map[int]fallible[procfs.Numastat] // by node id
	vmstat     fallible[procfs.Vmstat]
	interrupts map[string]irqCount // by number
	groups     map[string]groupCount
	uptime     unit.Opt[uint64] // ticks since boot, as a thread's start counts them
	processes  []int
	threads    map[int]threadTicks // by TID
}

// fallible is a value that was read, or the reason why it was not.
type fallible[T any] struct {
	v   T
	err error
}

// delta is two readings; was is nil when there is only one.
type delta struct {
	was, now *reading
	nodes    []machine.Node
}

// read takes a reading.
func (s *Snapshotter) read(m machine.Machine) *reading {
	r := &reading{at: s.now(), numastat: map[int]fallible[procfs.Numastat]{}}
	if !s.cfg.OnlyProcesses {
		for _, n := range m.Nodes {
			v, err := parsed(s, fmt.Sprintf("/sys/devices/system/node/node%d/numastat", n.ID), procfs.ParseNumastat)
			r.numastat[n.ID] = fallible[procfs.Numastat]{v, err}
		}
		r.vmstat.v, r.vmstat.err = parsed(s, "/proc/vmstat", procfs.ParseVmstat)
		r.groups = s.countGroups()
	}
	if s.cfg.IRQs {
		r.interrupts = s.countInterrupts(m)
	}
	r.processes = s.selectProcesses()
	if s.cfg.Threads {
		r.uptime = s.uptime()
		r.threads = s.countThreads(r.processes)
	}
	return r
}

// since is the increase of a counter. One that went backwards was reset.
func since(was, now unit.Opt[uint64], from string) unit.Value[uint64] {
	a, ok1 := was.Get()
	b, ok2 := now.Get()
	switch {
	case !ok1 || !ok2:
		return unit.UnknownValue[uint64]("not in " + from)
	case b < a:
		return unit.UnknownValue[uint64](from + ": the counter went backwards")
	}
	return unit.Measured(b-a, from)
}
