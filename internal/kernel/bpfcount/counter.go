// SPDX-License-Identifier: Apache-2.0

package bpfcount

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/perf"
	"homenode/internal/kernel/unix"
)

// Config says what to count and for how many cgroups.
type Config struct {
	Events   []perf.Event // none: only the clock
	UserOnly bool
	CPUs     []int // online
	// Controller names the cgroup v1 hierarchy that ids belong to, such as "cpuset"; "" =
	// v2.
	Controller string
	// Slots is the number of cgroups that can be counted separately; Counter.Slots has
	// the actual number. Memory: Slots × (highest CPU + 1) × 64 bytes, 128 with more than
	// five events, at most MostLedger; and the same of the heap for each CPU that a
	// cgroup ran on.
	Slots int
	// Every makes a CPU with many switches count in one of so many ticks, drawn at
	// random; ≤ 1: in all. A higher value costs the workloads less; then all counts are
	// estimates, the clock included.
	Every int
}

// Counter counts until Close. It is not safe for concurrent use.
type Counter struct {
	cfg     Config
	cpus    int         // highest + 1
	stride  int         // words of an entry
	maps    []*ebpf.Map // slots, ledger, state, then one for each event
	ask     *ebpf.Program
	link    link.Link
	memory  *ebpf.Memory
	files   []int
	slotOf  map[uint64]uint32
	ids     [][]uint64 // by slot; an id that another slot took since is still listed
	free    []uint32
	last    []base // by slot
	at      []time.Duration
	scratch []uint64
	none    []uint64 // zeros
}

// New loads the program and starts it; it counts no cgroup until Add. On error nothing
// stays. ErrNotSupported: this kernel cannot; ErrNotPermitted: this process may not.
func New(cfg Config) (*Counter, error) {
	if len(cfg.CPUs) == 0 || cfg.Slots < 1 {
		return nil, errors.New("count by BPF: no CPU or no slot")
	}
	c := &Counter{cfg: cfg, cpus: slices.Max(cfg.CPUs) + 1, slotOf: map[uint64]uint32{}}
	c.stride = (wordValues + len(cfg.Events) + 7) / 8 * 8 // a cache line each, so that CPUs do not share one
	c.scratch, c.none = make([]uint64, c.stride), make([]uint64, c.stride)
	c.cfg.Slots = min(cfg.Slots, max(1, MostLedger/(word*c.stride*c.cpus)-1))
	c.last, c.at, c.ids = make([]base, c.cfg.Slots+1), make([]time.Duration, c.cfg.Slots+1), make([][]uint64, c.cfg.Slots+1)
	for slot := c.cfg.Slots; slot > 0; slot-- {
		c.free = append(c.free, uint32(slot))
	}
	if err := c.start(); err != nil {
		c.Close()
		return nil, explain(err)
	}
	return c, nil
}

// MostLedger is the most bytes of the ledger: it is mapped, so all of it counts as ours.
// On 128 CPUs it has room for 2047 cgroups.
const MostLedger = 16 << 20

// Slots is the number of slots, those in use included: as many as were asked for, unless
// MostLedger allows fewer.
func (c *Counter) Slots() int { return c.cfg.Slots }

func explain(err error) error {
	switch {
	case errors.Is(err, sys.EPERM), errors.Is(err, sys.EACCES):
		return fmt.Errorf("count by BPF: %w (%w): it needs CAP_BPF and %s", err, unix.ErrNotPermitted, unix.PerfNeeds())
	case errors.Is(err, unix.ErrNotSupported):
		return fmt.Errorf("count by BPF: %w", err)
	case errors.Is(err, ebpf.ErrNotSupported), errors.Is(err, sys.EINVAL), errors.Is(err, sys.ENOENT), errors.Is(err, sys.ENOSYS), errors.Is(err, sys.EOPNOTSUPP), errors.Is(err, sys.ENXIO):
		return fmt.Errorf("count by BPF: %w (%w)", err, unix.ErrNotSupported)
	}
	return fmt.Errorf("count by BPF: %w", err)
}

// start makes maps, events, programs. The kernel's types are mapped, and take some MB once
// they are parsed: they are needed only here, and the collection at its end unmaps them.
func (c *Counter) start() error {
	spec, err := btf.LoadKernelSpec()
	if err != nil {
		return err
	}
	defer debug.FreeOSMemory()
	s := shape{cpus: c.cpus, every: c.cfg.Every}
	if s.layout, err = find(spec, c.cfg.Controller); err != nil {
		return err
	}
	if err := c.makeMaps(); err != nil {
		return err
	}
	s.maps = maps{slots: c.maps[0].FD(), ledger: c.maps[1].FD(), state: c.maps[2].FD()}
	for _, m := range c.maps[firstEvent:] {
		s.events = append(s.events, m.FD())
	}
	if err := c.openEvents(); err != nil {
		return err
	}
	return c.loadPrograms(s)
}

// firstEvent is the map of the first event.
const firstEvent = 3

func (c *Counter) makeMaps() error {
	entry := uint32(word * c.stride)
	specs := []ebpf.MapSpec{
		{Name: "hn_slots", Type: ebpf.Hash, KeySize: 8, ValueSize: 4, MaxEntries: uint32(4 * c.cfg.Slots)},
		{Name: "hn_ledger", Type: ebpf.Array, KeySize: 4, ValueSize: entry, MaxEntries: uint32((c.cfg.Slots + 1) * c.cpus), Flags: sys.BPF_F_MMAPABLE},
		{Name: "hn_state", Type: ebpf.Array, KeySize: 4, ValueSize: uint32(word * (c.stride + 8)), MaxEntries: uint32(c.cpus)},
	}
	for range c.cfg.Events {
		specs = append(specs, ebpf.MapSpec{Name: "hn_event", Type: ebpf.PerfEventArray, KeySize: 4, ValueSize: 4, MaxEntries: uint32(c.cpus)})
	}
	for i := range specs {
		m, err := ebpf.NewMap(&specs[i])
		if err != nil {
			return err
		}
		c.maps = append(c.maps, m)
	}
	var err error
	c.memory, err = c.maps[1].Memory()
	return err
}

// openEvents puts a group on every CPU. A CPU that went offline is left out.
func (c *Counter) openEvents() error {
	for _, cpu := range c.cfg.CPUs {
		leader := -1
		for i, e := range c.cfg.Events {
			attr := perf.Attr(e, c.cfg.UserOnly)
			fd, err := unix.OpenOnCPU(&attr, cpu, leader)
			if errors.Is(err, sys.ENODEV) && leader < 0 {
				break
			}
			if err != nil {
				return fmt.Errorf("open %s on cpu %d: %w", e.Name(), cpu, err)
			}
			c.files = append(c.files, fd)
			if leader < 0 {
				leader = fd
			}
			if err := c.maps[firstEvent+i].Put(uint32(cpu), uint32(fd)); err != nil {
				return fmt.Errorf("hand %s on cpu %d to BPF: %w", e.Name(), cpu, err)
			}
		}
	}
	return nil
}

func (c *Counter) loadPrograms(s shape) error {
	on, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "hn_switch", Type: ebpf.Tracing, AttachType: ebpf.AttachTraceRawTp,
		AttachTo: "sched_switch", Instructions: s.onSwitch(), License: "GPL"})
	if err != nil {
		return err
	}
	defer on.Close()
	c.ask, err = ebpf.NewProgram(&ebpf.ProgramSpec{Name: "hn_ask", Type: ebpf.RawTracepoint, Instructions: s.onAsk(), License: "GPL"})
	if err != nil {
		return err
	}
	c.link, err = link.AttachTracing(link.TracingOptions{Program: on, AttachType: ebpf.AttachTraceRawTp})
	return err
}

// Close stops counting.
func (c *Counter) Close() {
	if c.link != nil {
		c.link.Close()
	}
	if c.ask != nil {
		c.ask.Close()
	}
	for _, m := range c.maps {
		m.Close()
	}
	for _, fd := range c.files {
		unix.LivePerf{}.Close(fd)
	}
	*c = Counter{}
}

// Files is the number of descriptors it holds: of events, maps, program and link.
func (c *Counter) Files() int { return len(c.files) + len(c.maps) + 2 }

// Events are those that are counted.
func (c *Counter) Events() []perf.Event { return c.cfg.Events }

// Has reports whether a field is counted.
func (c *Counter) Has(f perf.Field) bool {
	return f == perf.Clock || slices.ContainsFunc(c.cfg.Events, func(e perf.Event) bool { return e.Field == f })
}

// ErrFull means that there is no room left: make a Counter with more slots.
var ErrFull = errors.New("no slot is left")

// full does not name the cgroup: one reason in a window is enough for all.
func (c *Counter) full() error {
	return fmt.Errorf("count by BPF: %w of %d", ErrFull, c.cfg.Slots)
}

// Add starts counting a cgroup; the cgroups below it are ids of the same slot.
func (c *Counter) Add(ids ...uint64) (Slot, error) {
	if len(c.free) == 0 {
		return 0, c.full()
	}
	slot := c.free[len(c.free)-1]
	c.free = c.free[:len(c.free)-1]
	c.last[slot] = base{}
	if err := c.Replace(Slot(slot), ids...); err != nil {
		c.Remove(Slot(slot))
		return 0, err
	}
	return Slot(slot), nil
}

// Slot is a cgroup, with those below it, that is counted.
type Slot uint32

// Replace makes the slot count these cgroups from now on, and no others: one that is gone
// must not keep its place, as new ones come without end. With ErrFull some of them are
// not counted.
func (c *Counter) Replace(slot Slot, ids ...uint64) error {
	kept := make(map[uint64]bool, len(ids))
	for _, id := range ids {
		kept[id] = true
	}
	for _, id := range c.ids[slot] {
		if !kept[id] {
			c.drop(slot, id)
		}
	}
	c.ids[slot] = append(c.ids[slot][:0], ids...)
	for _, id := range ids {
		if c.slotOf[id] == uint32(slot) {
			continue
		}
		err := c.maps[0].Put(id, uint32(slot))
		if errors.Is(err, sys.E2BIG) {
			return c.full()
		}
		if err != nil {
			return fmt.Errorf("count cgroup %d by BPF: %w", id, err)
		}
		c.slotOf[id] = uint32(slot)
	}
	return nil
}

// drop removes an id, unless another slot has it now.
func (c *Counter) drop(slot Slot, id uint64) {
	if c.slotOf[id] == uint32(slot) {
		_ = c.maps[0].Delete(id) // the map goes with the counter at the latest
		delete(c.slotOf, id)
	}
}

// Remove stops counting a slot; it may be given out again.
func (c *Counter) Remove(slot Slot) {
	for _, id := range c.ids[slot] {
		c.drop(slot, id)
	}
	c.ids[slot], c.last[slot] = nil, base{}
	c.free = append(c.free, uint32(slot))
}

// Update credits what runs now on each CPU: once a round, before Read. Without it a task
// that does not leave its CPU would not be seen.
func (c *Counter) Update() error {
	var errs []error
	for _, cpu := range c.cfg.CPUs {
		_, err := c.ask.Run(&ebpf.RunOptions{CPU: uint32(cpu), Flags: sys.BPF_F_TEST_RUN_ON_CPU})
		if err != nil && !errors.Is(err, sys.ENXIO) { // ENXIO: offline
			errs = append(errs, fmt.Errorf("count by BPF: run on cpu %d: %w", cpu, err))
		}
	}
	return errors.Join(errs...)
}

// entry copies the words of a slot on a CPU into the scratch space.
func (c *Counter) entry(slot Slot, cpu int) ([]uint64, error) {
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(&c.scratch[0])), word*c.stride)
	_, err := c.memory.ReadAt(bytes, int64(int(slot)*c.cpus+cpu)*int64(len(bytes)))
	return c.scratch, err
}

// base is a slot's words at the previous read, of those CPUs that it ever ran on: few of
// many, on hosts with many. The zero value was never read.
type base struct {
	place []uint16 // by CPU: 1 + place in words; 0: it did not run there
	words []uint64
}

func (b *base) read() bool { return b.place != nil }

func (b *base) of(cpu, stride int) []uint64 {
	if p := int(b.place[cpu]); p > 0 {
		return b.words[(p-1)*stride:][:stride]
	}
	return nil
}

func (b *base) keep(cpu int, words []uint64) {
	if last := b.of(cpu, len(words)); last != nil {
		copy(last, words)
		return
	}
	if slices.Max(words) > 0 {
		b.words = append(b.words, words...)
		b.place[cpu] = uint16(len(b.words) / len(words))
	}
}

// Read takes a sample of a slot, as perf.Group.Read does; the first is only a base.
func (c *Counter) Read(slot Slot, now time.Duration, byCPU []perf.CPUClock) (perf.Sample, error) {
	b := &c.last[slot]
	first := !b.read()
	if first {
		b.place = make([]uint16, c.cpus)
	}
	s := perf.Sample{OK: !first, Scaled: 1, ByCPU: byCPU[:0], Elapsed: now - c.at[slot]}
	c.at[slot] = now
	var enabled, lost float64
	for _, cpu := range c.cfg.CPUs {
		words, err := c.entry(slot, cpu)
		if err != nil {
			return perf.Sample{}, fmt.Errorf("read ledger of BPF: %w", err)
		}
		if !first {
			last := b.of(cpu, c.stride)
			if last == nil {
				last = c.none
			}
			e, l := c.addCPU(&s, cpu, words, last)
			enabled, lost = enabled+e, lost+l
		}
		b.keep(cpu, words)
	}
	if enabled > 0 {
		s.Lost = lost / enabled
	}
	return s, nil
}

// addCPU adds what a CPU counted since last: scaled by its own times, which are those of
// the cgroup's stay. It returns the time enabled, and the part of it with no counter at
// all.
func (c *Counter) addCPU(s *perf.Sample, cpu int, words, last []uint64) (enabled, lost float64) {
	delta := func(w int) uint64 { return words[w] - last[w] }
	clock := delta(wordClock)
	if len(c.cfg.Events) > 0 {
		clock = delta(wordEnabled)
	}
	s.Total[perf.Clock] += clock
	s.ByCPU = append(s.ByCPU, perf.CPUClock{CPU: cpu, Time: time.Duration(clock)})
	e, r := float64(delta(wordEnabled)), float64(delta(wordRunning))
	scale := 1.0
	switch {
	case e > 0 && r == 0:
		return e, e
	case e > r*1.001: // up to 0.1 % is the order in which the kernel takes its two times
		scale = e / r
		s.Scaled = max(s.Scaled, scale)
	}
	for i, event := range c.cfg.Events {
		s.Total[event.Field] += uint64(float64(delta(wordValues+i))*scale + 0.5)
	}
	return e, 0
}

// RoundUp is the number of slots to make for n cgroups, with room for some more.
func RoundUp(n int) int { return n + n/4 + 32 }
