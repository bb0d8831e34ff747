// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unsafe"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/unix"
)

const attrBytes = uint32(unsafe.Sizeof(sys.PerfEventAttr{}))

// Config says what to sample.
type Config struct {
	Table         Table
	Loads, Stores bool
	Period        uint64 // qualifying accesses per sample. Smaller: more samples, and more time taken from the sampled program
	// LatencyThreshold is the least latency of a load that qualifies, in cycles. 3
	// takes all; above the LLC's, only loads from DRAM or another socket.
	LatencyThreshold int
	UserOnly         bool // default: user and kernel mode together
}

// Target is the program whose accesses are sampled: a cgroup, some threads, or the
// whole machine (the zero value). Threads that start later are not followed.
type Target struct {
	Cgroup string // its directory, in the hierarchy that has perf_event
	TIDs   []int
}

// Sampler holds the opened events of one target.
type Sampler struct {
	calls    unix.Sampling
	period   uint64
	streams  []stream
	bytes    []byte
	accesses []Access
}

// stream is one event with its ring.
type stream struct {
	fd      int
	leader  int // enabled and disabled for the event; the event itself where it has none
	ring    unix.Ring
	decoder decoder
	trace   *trace // nil: samples are in the ring
	counted uint64 // when it was disabled last
	stats   Stats  // of this Collect
}

const (
	// ringBytes hold 1,024 samples of 64 bytes. Every CPU has two such rings.
	ringBytes = 64 << 10
	// traceBytes hold 2,048 records of SPE, of a CPU or thread. The kernel passes them on by
	// traceStep, in whole pages, and when the event stops. With fewer than leastTrace pages of
	// 64 KiB it would find no room before the first were taken.
	traceBytes, traceStep, leastTrace = 128 << 10, 16 << 10, 8
	// traceRing holds 1,600 switches of tasks, two records of 40 bytes each: 32,000 a second.
	traceRing = 128 << 10
	// emptied every 50 ms: 20,000 samples/s fit. More often: more wake-ups.
	interval = 50 * time.Millisecond
)

// pagesOf is bytes in pages, at least so many.
func pagesOf(bytes, least int) int { return max(least, bytes/unix.PageSize()) }

// Open prepares to sample the target on these CPUs (usually all online ones). A CPU
// that went offline and a thread that ended are left out. On error nothing stays open.
func Open(calls unix.Sampling, cfg Config, target Target, cpus []int) (*Sampler, error) {
	if err := cfg.check(target); err != nil {
		return nil, err
	}
	s := &Sampler{calls: calls, period: cfg.Table.Period(cfg.Period)}
	if err := s.open(cfg, target, cpus); err != nil {
		s.Close()
		return nil, err
	}
	if len(s.streams) == 0 {
		return nil, fmt.Errorf("sample memory accesses: every requested thread or CPU is gone: %w", unix.ErrGone)
	}
	return s, nil
}

func (c Config) check(t Target) error {
	switch {
	case !c.Loads && !c.Stores:
		return errors.New("sample memory accesses: neither loads nor stores are requested")
	case c.Period == 0:
		return errors.New("sample memory accesses: the period is 0: give the number of accesses per sample")
	case c.LatencyThreshold < 0 || c.LatencyThreshold > 0xffff:
		return fmt.Errorf("sample memory accesses: least latency %d is not within 0-65535 cycles", c.LatencyThreshold)
	case t.Cgroup != "" && t.TIDs != nil:
		return errors.New("sample memory accesses: both a cgroup and threads are given: choose one")
	}
	return nil
}

func (s *Sampler) open(cfg Config, target Target, cpus []int) error {
	for _, e := range cfg.events() {
		if err := s.openEvent(cfg, e, target, cpus); err != nil {
			return err
		}
	}
	return nil
}

func (c Config) events() []Event {
	var events []Event
	if c.Table.Loads.Ops {
		e := c.Table.Loads // one event has both
		if e.Traced {
			e.Config = speConfig(c.Loads, c.Stores)
		}
		return append(events, e)
	}
	if c.Loads {
		events = append(events, c.Table.Loads)
	}
	if c.Stores {
		events = append(events, c.Table.Stores)
	}
	return events
}

const ofThread = "thread"

// opening opens one event of a CPU or thread; group is −1 for a leader.
type opening func(attr *sys.PerfEventAttr, id, group int) (int, error)

func (s *Sampler) openEvent(cfg Config, e Event, target Target, cpus []int) error {
	switch {
	case target.Cgroup != "":
		dir, err := s.calls.OpenDir(target.Cgroup)
		if err != nil {
			return unix.Explain("open", target.Cgroup, "", err)
		}
		defer s.calls.Close(dir)
		return s.openEach(cfg, e, cpus, "cpu", func(attr *sys.PerfEventAttr, cpu, group int) (int, error) {
			return s.calls.Open(attr, dir, cpu, group)
		})
	case target.TIDs != nil:
		return s.openEach(cfg, e, target.TIDs, ofThread, func(attr *sys.PerfEventAttr, tid, group int) (int, error) {
			attr.Bits &^= sys.PerfBitContextSwitch // it is always this thread that runs
			return s.calls.OpenTask(attr, tid, -1, group)
		})
	}
	return s.openEach(cfg, e, cpus, "cpu", func(attr *sys.PerfEventAttr, cpu, group int) (int, error) {
		return s.calls.OpenTask(attr, -1, cpu, group)
	})
}

func (s *Sampler) openEach(cfg Config, e Event, ids []int, what string, open opening) error {
	for _, id := range ids {
		one, err := s.openOne(cfg, e, id, open)
		if errors.Is(err, sys.ENODEV) || errors.Is(err, sys.ESRCH) {
			continue // offline; ended
		}
		if err != nil {
			return explain(fmt.Sprintf("access samples of %s %d", what, id), e, err)
		}
		if err := s.mapRing(&one, cfg.Table, e, id, what); err != nil {
			s.closeFiles(one)
			return unix.Explain("map", fmt.Sprintf("access samples of %s %d", what, id), "CAP_IPC_LOCK, or a larger /proc/sys/kernel/perf_event_mlock_kb", err)
		}
		s.streams = append(s.streams, one)
	}
	return nil
}

func (s *Sampler) mapRing(one *stream, table Table, e Event, id int, what string) (err error) {
	if !e.Traced {
		one.ring, err = s.calls.Ring(one.fd, pagesOf(ringBytes, 1))
		return err
	}
	ring, err := s.calls.Trace(one.fd, pagesOf(traceRing, 1), pagesOf(traceBytes, leastTrace))
	if err != nil {
		return err
	}
	one.ring, one.trace = ring, &trace{ring: ring, encoding: table.encoding}
	if what == ofThread {
		one.trace.tid = id
		return nil
	}
	clock, ok := ring.Clock()
	if !ok {
		_ = ring.Close()
		return fmt.Errorf("the kernel does not publish its clock (cap_user_time_zero; Linux 5.9 and later do on arm64), so a sample's task is unknown; threads can be sampled: %w", unix.ErrNotSupported)
	}
	one.trace.cpu, one.trace.clock = id, clock
	return nil
}

// openOne opens an event, its leader first if it needs one. The kernel lets a group count
// only while its leader does, so the event itself begins enabled.
func (s *Sampler) openOne(cfg Config, e Event, id int, open opening) (stream, error) {
	attr := cfg.attr(e)
	one := stream{fd: -1, leader: -1, decoder: cfg.decoder(e)}
	if e.Leader != 0 {
		leader := cfg.leaderAttr(e)
		fd, err := open(&leader, id, -1)
		if err != nil {
			return stream{}, err
		}
		one.leader = fd
		attr.Bits &^= sys.PerfBitDisabled
	}
	fd, err := open(&attr, id, one.leader)
	if err != nil {
		s.closeFiles(one)
		return stream{}, err
	}
	if one.fd = fd; one.leader < 0 {
		one.leader = fd
	}
	return one, nil
}

func (s *Sampler) closeFiles(one stream) {
	if one.fd >= 0 {
		s.calls.Close(one.fd)
	}
	if one.leader >= 0 && one.leader != one.fd {
		s.calls.Close(one.leader)
	}
}

// explain distinguishes a PMU that cannot sample addresses (mostly a VM without precise
// sampling) from other failures.
func explain(object string, e Event, err error) error {
	if e.Traced && errors.Is(err, sys.EBUSY) {
		return fmt.Errorf("open %s: %w (%w): a CPU has one unit for SPE, and another program samples by it (perf record, or another homenode): end that, or try again later", object, unix.ErrNotSupported, err)
	}
	if errors.Is(err, sys.ENOENT) || errors.Is(err, sys.EOPNOTSUPP) || errors.Is(err, sys.EINVAL) || errors.Is(err, sys.ENODATA) {
		why := "this PMU cannot sample addresses"
		if e.Ops && !e.Traced {
			why += " of one cgroup or thread before Linux 6.2 (IBS): sample all CPUs"
		}
		return fmt.Errorf("open %s: %w (%w): %s", object, err, unix.ErrNotSupported, why)
	}
	return unix.Explain("open", object, unix.PerfNeeds(), err)
}

// Collect samples for d, or until ctx ends, and passes each access to each, event by
// event in the order of time. What was collected before an error is valid.
func (s *Sampler) Collect(ctx context.Context, d time.Duration, each func(Access)) (Stats, error) {
	for i := range s.streams {
		s.streams[i].stats = Stats{}
	}
	err := s.Start()
	if err == nil {
		err = s.collect(ctx, d, each)
	}
	// Disabling makes the PMU write what it still held: the rings are emptied once
	// more.
	err = errors.Join(err, s.all("disable", s.calls.Disable), s.count(), s.take(each))
	var total Stats
	for _, one := range s.streams {
		if one.trace != nil { // it counts nothing
			one.stats.Lost += one.trace.settle()
			one.stats.Qualified = (one.stats.Samples + one.stats.Lost) * s.period
		}
		total.add(one.stats.settled(s.period))
	}
	return total, err
}

// Start begins to sample, for a caller that has to know when: samples before Collect
// wait in the rings. Collect starts by itself.
func (s *Sampler) Start() error {
	for _, one := range s.streams {
		one.trace.restart()
	}
	return s.all("enable", s.calls.Enable)
}

// settled adds the losses at the end: the kernel reports losses with the next record
// that fits, and there was none.
func (s Stats) settled(period uint64) Stats {
	if due := s.Qualified / period; due > s.Samples+s.Lost {
		s.Lost = due - s.Samples
	}
	return s
}

// count reads the number of accesses that qualified since the last time.
func (s *Sampler) count() error {
	var errs []error
	for i := range s.streams {
		one := &s.streams[i]
		var now [1]uint64
		n, err := s.calls.Read(one.fd, now[:])
		if err == nil && n != 1 {
			err = fmt.Errorf("%d words: %w", n, unix.ErrMalformed)
		}
		if err != nil {
			errs = append(errs, unix.Explain("read", "count of sampled accesses", "", err))
			continue
		}
		one.stats.Qualified += now[0] - one.counted
		one.counted = now[0]
	}
	return errors.Join(errs...)
}

func (s *Sampler) collect(ctx context.Context, d time.Duration, each func(Access)) error {
	end := time.After(d)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-end:
			return nil
		case <-tick.C:
			if err := errors.Join(s.take(each), s.resume()); err != nil {
				return err
			}
		}
	}
}

// take empties every ring.
func (s *Sampler) take(each func(Access)) error {
	var errs []error
	for i := range s.streams {
		one := &s.streams[i]
		accesses, stats, err := one.take(s)
		errs = append(errs, err)
		one.stats.add(stats)
		for _, a := range accesses {
			each(a)
		}
		s.accesses = accesses
	}
	return errors.Join(errs...)
}

// take reads what one event has; s lends its memory.
func (one *stream) take(s *Sampler) ([]Access, Stats, error) {
	if one.trace != nil {
		return one.trace.take(s.accesses[:0], one.decoder)
	}
	s.bytes = one.ring.Take(s.bytes[:0])
	return one.decoder.parse(s.accesses[:0], s.bytes)
}

// resume enables what the kernel stopped because its buffer was full. It tells of that only where it
// finds room, so all are enabled: that does nothing to one that runs.
func (s *Sampler) resume() error {
	if s.streams[0].trace == nil {
		return nil
	}
	return s.all("enable", s.calls.Enable)
}

func (s *Sampler) all(verb string, call func(fd int) error) error {
	var errs []error
	for _, one := range s.streams {
		errs = append(errs, unix.Explain(verb, "access samples", "", call(one.leader)))
	}
	return errors.Join(errs...)
}

// Close closes the events.
func (s *Sampler) Close() {
	for _, one := range s.streams {
		_ = one.ring.Close()
		s.closeFiles(one)
	}
	s.streams = nil
}
