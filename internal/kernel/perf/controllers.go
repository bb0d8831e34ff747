// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unsafe"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/unix"
	"homenode/internal/machine"
	"homenode/internal/set"
)

// Controllers counts what the memory controllers do, by node: one PMU for each, named
// uncore_imc_*, that counts for a package and never for a task.
//
//  1. The kernel names one CPU of each package in the PMU's cpumask.
//  2. The counts of a controller belong to the node of that package, if the package has
//     one node with memory and all memory of the machine is on nodes with CPUs: a PMU
//     does not name the node it serves.
type Controllers struct {
	calls  unix.Sampling
	events []controllerEvent
	broken map[int]error // by index into Machine.Nodes: why a sum would lack a part
	Name   string        // how the counts' source is called
	Busy   bool          // there is an event for the time a read was waiting or served
}

type controllerEvent struct {
	fd, node int // node: index into Machine.Nodes
	kind     controllerKind
	last     [3]uint64 // value, enabled, running
}

type controllerKind int

const (
	casReads controllerKind = iota
	clockTicks
	queueNotEmpty
	casWrites
	controllerKinds // how many there are
)

// controllerNames are the events as sysfs calls them.
var controllerNames = map[controllerKind]string{casReads: "cas_count_read", clockTicks: "clockticks", queueNotEmpty: "rpq_not_empty", casWrites: "cas_count_write"}

// ControllerSums is the activity of one node's controllers since the previous read.
type ControllerSums struct {
	Reads, Writes      uint64 // cache lines
	Ticks, BusyTicks   uint64
	KnownReads, KnownB bool // whether Reads, and Ticks with BusyTicks, were counted
	KnownWrites        bool
	Why                error // nothing is known of this node, though it has controllers
}

// OpenControllers starts counting on every controller. It fails with ErrNotSupported
// where there are none, and where the node of any controller is unclear: its counts would
// be missing there. Where only counting fails, that node has no sum.
func OpenControllers(calls unix.Sampling, root unix.Root, m machine.Machine) (*Controllers, error) {
	dirs, _ := filepath.Glob(root.Path("/sys/bus/event_source/devices/uncore_imc*"))
	c := &Controllers{calls: calls, broken: map[int]error{}, Name: "perf uncore_imc"}
	err := fmt.Errorf("count memory controllers: no uncore_imc PMU in /sys/bus/event_source/devices (%w)", unix.ErrNotSupported)
	for _, dir := range dirs {
		if strings.Contains(filepath.Base(dir), "free_running") {
			continue // another set of counters of the same controllers
		}
		if err := c.open(dir, m); err != nil {
			c.Close()
			return nil, err
		}
	}
	for _, why := range c.broken {
		err = why
	}
	if len(c.events) == 0 {
		return nil, err
	}
	return c, nil
}

func (c *Controllers) open(dir string, m machine.Machine) error {
	text := func(name string) (string, error) {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return "", unix.Explain("read", filepath.Join(dir, name), "", err)
		}
		return strings.TrimSpace(string(data)), nil
	}
	kind, err := text("type")
	if err != nil {
		return err
	}
	typ, err := strconv.ParseUint(kind, 10, 32)
	if err != nil {
		return fmt.Errorf("parse %s/type: line 1 %.20q: not a number (%w)", dir, kind, unix.ErrMalformed)
	}
	mask, err := text("cpumask")
	if err != nil {
		return err
	}
	cpus, err := set.ParseCPUs(mask)
	if err != nil {
		return fmt.Errorf("parse %s/cpumask: %w", dir, err)
	}
	for cpu := range cpus.All() {
		node, err := controllerNode(m, cpu)
		if err != nil {
			return err
		}
		if err := c.openOn(uint32(typ), cpu, node, text); err != nil {
			c.broken[node] = err
		}
	}
	return nil
}

// controllerNode is step 2: the index of the node whose memory a controller
// with this CPU serves.
func controllerNode(m machine.Machine, cpu int) (int, error) {
	unclear := func(why string) error {
		return fmt.Errorf("count memory controllers: %s: the node that a controller serves is not shown (%w)", why, unix.ErrNotSupported)
	}
	c, ok := m.CPU(cpu)
	p, known := c.Package.Get()
	if !ok || !known {
		return 0, unclear(fmt.Sprintf("the package of CPU %d is unknown", cpu))
	}
	if !m.NodesWithMemory().Minus(m.NodesWithCPUs()).IsEmpty() {
		return 0, unclear("there is memory without CPUs")
	}
	at := -1
	for i, n := range m.Nodes {
		if !n.CPUs.Overlaps(m.Packages[p]) {
			continue
		}
		if at >= 0 {
			return 0, unclear(fmt.Sprintf("package %d has several nodes", p))
		}
		at = i
	}
	if at < 0 {
		return 0, unclear(fmt.Sprintf("package %d has no node", p))
	}
	return at, nil
}

// openOn opens the events that the PMU has. Only reads are required.
func (c *Controllers) openOn(typ uint32, cpu, node int, text func(string) (string, error)) error {
	format := func(field string) (bits, error) {
		s, err := text("format/" + field)
		if err != nil {
			return nil, err
		}
		return parseFormat(s)
	}
	for _, kind := range []controllerKind{casReads, clockTicks, queueNotEmpty, casWrites} {
		s, err := text("events/" + controllerNames[kind])
		if err != nil && kind != casReads {
			continue
		}
		var config uint64
		if err == nil {
			config, err = parseEvent(s, format)
		}
		if err != nil {
			return err
		}
		attr := sys.PerfEventAttr{Type: typ, Config: config, Size: uint32(unsafe.Sizeof(sys.PerfEventAttr{})),
			Read_format: sys.PERF_FORMAT_TOTAL_TIME_ENABLED | sys.PERF_FORMAT_TOTAL_TIME_RUNNING}
		fd, err := c.calls.OpenTask(&attr, -1, cpu)
		if err != nil {
			return unix.Explain("open", fmt.Sprintf("uncore_imc event %s on CPU %d", controllerNames[kind], cpu), unix.PerfNeeds(), err)
		}
		c.events = append(c.events, controllerEvent{fd: fd, node: node, kind: kind})
		c.Busy = c.Busy || kind == queueNotEmpty
	}
	return nil
}

// Read returns what was counted since the Read before (the first: since Open),
// by index into Machine.Nodes. Counts that shared a counter are scaled. A sum that
// would lack one controller is unknown.
func (c *Controllers) Read(nodes int) ([]ControllerSums, error) {
	sums := make([]ControllerSums, nodes)
	counted := make([][controllerKinds]int, nodes) // controllers, by kind
	for i := range c.events {
		e := &c.events[i]
		var now [3]uint64
		if _, err := c.calls.Read(e.fd, now[:]); err != nil {
			return nil, unix.Explain("read", "memory controller's "+controllerNames[e.kind], "", err)
		}
		delta, ran := scaledCount(now, e.last)
		e.last = now
		if e.node >= nodes {
			continue
		}
		s := &sums[e.node]
		if ran {
			counted[e.node][e.kind]++
		} else if e.kind == casReads {
			s.Why = fmt.Errorf("count memory controllers: %s had no counter of the PMU in all that time", controllerNames[e.kind])
		}
		switch e.kind {
		case casReads:
			s.Reads += delta
		case clockTicks:
			s.Ticks += delta
		case queueNotEmpty:
			s.BusyTicks += delta
		case casWrites:
			s.Writes += delta
		}
	}
	for i, n := range counted {
		sums[i] = c.whole(i, sums[i], n)
	}
	return sums, nil
}

// whole decides which of a node's sums are known: those that all its controllers counted.
func (c *Controllers) whole(node int, s ControllerSums, n [controllerKinds]int) ControllerSums {
	if err := c.broken[node]; err != nil {
		s.Why = err
	}
	if s.Why != nil {
		return ControllerSums{Why: s.Why}
	}
	s.KnownReads = n[casReads] > 0
	s.KnownWrites = s.KnownReads && n[casWrites] == n[casReads]
	s.KnownB = s.KnownReads && n[queueNotEmpty] == n[casReads] && n[clockTicks] == n[casReads]
	return s
}

// scaledCount is the count between two readings of value, time enabled, time
// running. One that did not run is unknown, not 0.
func scaledCount(now, last [3]uint64) (count uint64, ran bool) {
	value, enabled, running := now[0]-last[0], now[1]-last[1], now[2]-last[2]
	if running == 0 {
		return 0, false
	}
	if running >= enabled {
		return value, true
	}
	return uint64(float64(value) * float64(enabled) / float64(running)), true
}

// Close stops counting.
func (c *Controllers) Close() {
	for _, e := range c.events {
		c.calls.Close(e.fd)
	}
	c.events = nil
}
