// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	sys "golang.org/x/sys/unix"

	"homenode/internal/event"
	"homenode/internal/kernel/unix"
	"homenode/internal/machine"
	"homenode/internal/set"
)

// Controllers counts what the memory controllers do, by node: one PMU for each, that
// counts for a package and never for a task. Its events are those of the CPU's table, or
// what sysfs names.
//
//  1. The kernel names one CPU of each package in the PMU's cpumask.
//  2. The counts of a controller belong to the node of that package, if the package has
//     one node with memory and all memory of the machine is on nodes with CPUs: a PMU
//     does not name the node it serves.
//  3. If the package has several, the table may say which one a controller of that number
//     serves, for a package with just these controllers (event.Controllers.Clusters).
type Controllers struct {
	calls  unix.Sampling
	known  event.Controllers
	events []controllerEvent
	units  map[int]int   // PMUs, by index into Machine.Nodes
	broken map[int]error // by index into Machine.Nodes: why a sum would lack a part
}

type controllerEvent struct {
	fd, node int // node: index into Machine.Nodes
	kind     ControllerKind
	bytes    int       // of one count
	last     [3]uint64 // value, enabled, running
}

// ControllerKind is what a sum is of.
type ControllerKind int

// The kinds.
const (
	ControllerReads ControllerKind = iota
	ControllerWrites
	ControllerAll // both, where they cannot be told apart
	clockTicks
	queueNotEmpty
	controllerKinds // how many events are of
	ControllerBusy  = controllerKinds
)

// queueEvents are named by the lab's sysfs, and by no kernel tree that was read. Their
// codes are in no table.
var queueEvents = [controllerKinds]string{clockTicks: "clockticks", queueNotEmpty: "rpq_not_empty"}

// ControllerSums is the activity of one node's controllers since the previous read.
type ControllerSums struct {
	Reads, Writes, All uint64 // cache lines
	Ticks, BusyTicks   uint64
	KnownReads, KnownB bool // whether Reads, and Ticks with BusyTicks, were counted
	KnownWrites        bool
	KnownAll           bool
	Why                error // nothing is known of this node, though it has controllers
}

const pmuFolder = "/sys/bus/event_source/devices/"

// OpenControllers starts counting on every controller. It fails with ErrNotSupported
// where there are none, and where the node of any controller is unclear: its counts would
// be missing there. Where only counting fails, that node has no sum.
func OpenControllers(calls unix.Sampling, root unix.Root, m machine.Machine) (*Controllers, error) {
	known, dirs := findControllers(root, event.For(DetectCPU(root)))
	c := &Controllers{calls: calls, known: known, units: map[int]int{}, broken: map[int]error{}}
	err := fmt.Errorf("count memory controllers: no %s PMU in %s (%w)", known.PMU, strings.TrimSuffix(pmuFolder, "/"), unix.ErrNotSupported)
	for _, dir := range dirs {
		if err := c.open(dir, len(dirs), m); err != nil {
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
	if err := c.everyNode(m); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// findControllers are the first of the table's that are there, with the folders of their
// PMUs; else what sysfs names.
func findControllers(root unix.Root, t *event.Table) (event.Controllers, []string) {
	for _, known := range t.Controllers {
		if dirs := controllerDirs(root, known.PMU); len(dirs) > 0 {
			return known, dirs
		}
	}
	known := event.SysfsControllers
	dirs := controllerDirs(root, known.PMU)
	if len(t.Controllers) > 0 && len(dirs) == 0 {
		known = t.Controllers[0] // for the reason
	}
	return known, dirs
}

// controllerDirs are PMU and PMU_N: uncore_imc_free_running_N is another set of counters
// of the same controllers.
func controllerDirs(root unix.Root, pmu string) (dirs []string) {
	all, _ := filepath.Glob(root.Path(pmuFolder + pmu + "*"))
	for _, dir := range all {
		number := strings.TrimPrefix(filepath.Base(dir), pmu)
		if number == "" || numbered(number) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// numbered says whether the rest of a name is "_" and a number.
func numbered(rest string) bool {
	digits, ok := strings.CutPrefix(rest, "_")
	return ok && digits != "" && strings.Trim(digits, "0123456789") == ""
}

// everyNode refuses controllers that are not told apart by package: where one node has
// none, another node's count may be its own (arm_cmn without an affinity from the
// firmware names CPU 0).
func (c *Controllers) everyNode(m machine.Machine) error {
	if len(c.known.All) == 0 {
		return nil
	}
	for i, n := range m.Nodes {
		if n.Memory.Or(0) > 0 && c.units[i] == 0 {
			return fmt.Errorf("count memory controllers: no %s PMU is of node %d: which node the others serve is not told (%w)", c.known.PMU, n.ID, unix.ErrNotSupported)
		}
	}
	return nil
}

func (c *Controllers) open(dir string, all int, m machine.Machine) error {
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
		node, err := c.nodeOf(m, cpu, filepath.Base(dir), all)
		if err != nil {
			return err
		}
		c.units[node]++
		if err := c.openOn(uint32(typ), cpu, node, text); err != nil {
			c.broken[node] = err
		}
	}
	return nil
}

// nodeOf is steps 2 and 3: the index of the node whose memory a controller serves, by its
// CPU and the name of its PMU, which is one of all.
func (c *Controllers) nodeOf(m machine.Machine, cpu int, name string, all int) (int, error) {
	unclear := func(why string) error {
		return fmt.Errorf("count memory controllers: %s: the node that a controller serves is not shown (%w)", why, unix.ErrNotSupported)
	}
	of, ok := m.CPU(cpu)
	p, known := of.Package.Get()
	if !ok || !known {
		return 0, unclear(fmt.Sprintf("the package of CPU %d is unknown", cpu))
	}
	if !c.known.Near && !m.NodesWithMemory().Minus(m.NodesWithCPUs()).IsEmpty() {
		return 0, unclear("there is memory without CPUs")
	}
	var nodes []int
	for i, n := range m.Nodes {
		if n.CPUs.Overlaps(m.Packages[p]) {
			nodes = append(nodes, i)
		}
	}
	switch len(nodes) {
	case 0:
		return 0, unclear(fmt.Sprintf("package %d has no node", p))
	case 1:
		return nodes[0], nil
	}
	slices.SortFunc(nodes, func(a, b int) int { return m.Nodes[a].ID - m.Nodes[b].ID })
	clusters := c.known.Clusters[len(nodes)] // 3
	number, err := strconv.Atoi(strings.TrimPrefix(name, c.known.PMU+"_"))
	if err != nil || number < 0 || number >= len(clusters) || all != len(clusters) {
		return 0, unclear(fmt.Sprintf("package %d has several nodes", p))
	}
	return nodes[clusters[number]], nil
}

// openOn opens the events that the PMU has. Only the primary ones are required.
func (c *Controllers) openOn(typ uint32, cpu, node int, text func(string) (string, error)) error {
	for _, e := range c.known.Primary() {
		kind := ControllerReads
		if len(c.known.All) > 0 {
			kind = ControllerAll
		}
		if err := c.openEvent(typ, cpu, node, kind, e, text); err != nil {
			return err
		}
	}
	for _, e := range c.known.Writes {
		if err := c.openEvent(typ, cpu, node, ControllerWrites, e, text); err != nil && !errors.Is(err, errNoSuchEvent) {
			return err
		}
	}
	for _, kind := range []ControllerKind{clockTicks, queueNotEmpty} {
		e := event.ControllerEvent{Name: queueEvents[kind], Bytes: lineBytes}
		if err := c.openEvent(typ, cpu, node, kind, e, text); err != nil && !errors.Is(err, errNoSuchEvent) {
			return err
		}
	}
	return nil
}

// lineBytes is the unit of sums.
const lineBytes = 64

var errNoSuchEvent = errors.New("sysfs does not name this event")

func (c *Controllers) openEvent(typ uint32, cpu, node int, kind ControllerKind, e event.ControllerEvent, text func(string) (string, error)) error {
	terms := e.Terms
	if terms == "" {
		named, err := text("events/" + e.Name)
		if err != nil {
			return fmt.Errorf("%w: %w", errNoSuchEvent, err)
		}
		terms = named
	}
	config, err := parseEvent(terms, func(field string) (bits, error) {
		s, err := text("format/" + field)
		if err != nil {
			return nil, err
		}
		return parseFormat(s)
	})
	if err != nil {
		return err
	}
	attr := sys.PerfEventAttr{Type: typ, Config: config, Size: uint32(unsafe.Sizeof(sys.PerfEventAttr{})),
		Read_format: sys.PERF_FORMAT_TOTAL_TIME_ENABLED | sys.PERF_FORMAT_TOTAL_TIME_RUNNING}
	fd, err := c.calls.OpenTask(&attr, -1, cpu, -1)
	if err != nil {
		return unix.Explain("open", fmt.Sprintf("%s event %s on CPU %d", c.known.PMU, e.Name, cpu), unix.PerfNeeds(), err)
	}
	c.events = append(c.events, controllerEvent{fd: fd, node: node, kind: kind, bytes: e.Bytes})
	return nil
}

// Read returns what was counted since the Read before (the first: since Open),
// by index into Machine.Nodes. Counts that shared a counter are scaled. A sum that
// would lack one controller is unknown.
func (c *Controllers) Read(nodes int) ([]ControllerSums, error) {
	sums := make([]ControllerSums, nodes)
	totals := make([][controllerKinds]uint64, nodes) // bytes; of ticks, 64 each
	counted := make([][controllerKinds]int, nodes)   // events, by kind
	for i := range c.events {
		e := &c.events[i]
		var now [3]uint64
		if _, err := c.calls.Read(e.fd, now[:]); err != nil {
			return nil, unix.Explain("read", "memory controller's "+c.From(e.kind), "", err)
		}
		delta, ran := scaledCount(now, e.last)
		e.last = now
		if e.node < nodes && ran {
			counted[e.node][e.kind]++
			totals[e.node][e.kind] += delta * uint64(e.bytes)
		}
	}
	for i := range sums {
		sums[i] = c.whole(i, totals[i], counted[i])
	}
	return sums, nil
}

// whole decides which of a node's sums are known: those that all its controllers counted.
func (c *Controllers) whole(node int, total [controllerKinds]uint64, n [controllerKinds]int) ControllerSums {
	if err := c.broken[node]; err != nil {
		return ControllerSums{Why: err}
	}
	units := c.units[node]
	full := func(kind ControllerKind, events int) bool { return units > 0 && events > 0 && n[kind] == units*events }
	s := ControllerSums{KnownReads: full(ControllerReads, len(c.known.Reads)), KnownAll: full(ControllerAll, len(c.known.All))}
	if units > 0 && !s.KnownReads && !s.KnownAll {
		return ControllerSums{Why: fmt.Errorf("count memory controllers: %s had no counter of the PMU in all that time", names(c.known.Primary()))}
	}
	lines := func(kind ControllerKind) uint64 { return total[kind] / lineBytes }
	s.KnownWrites = full(ControllerWrites, len(c.known.Writes))
	s.KnownB = full(clockTicks, 1) && full(queueNotEmpty, 1)
	s.Reads, s.Writes, s.All, s.Ticks, s.BusyTicks = lines(ControllerReads), lines(ControllerWrites), lines(ControllerAll), lines(clockTicks), lines(queueNotEmpty)
	return s
}

// From is how the source of a sum is called: "perf uncore_imc/cas_count_read/".
func (c *Controllers) From(kind ControllerKind) string {
	name := ""
	switch kind {
	case clockTicks, queueNotEmpty:
		name = queueEvents[kind]
	case ControllerReads:
		name = names(c.known.Reads)
	case ControllerWrites:
		name = names(c.known.Writes)
	case ControllerAll:
		name = names(c.known.All)
	case ControllerBusy:
		return c.From(queueNotEmpty) + " over /" + queueEvents[clockTicks] + "/"
	}
	return "perf " + c.known.PMU + "/" + name + "/"
}

func names(events []event.ControllerEvent) string {
	all := make([]string, len(events))
	for i, e := range events {
		all[i] = e.Name
	}
	return strings.Join(all, " + ")
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
