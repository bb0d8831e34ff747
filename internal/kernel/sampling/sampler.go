// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"time"
	"unsafe"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/unix"
)

const attrBytes = uint32(unsafe.Sizeof(sys.PerfEventAttr{}))

// preciseShift is where precise_ip begins in perf_event_attr's bits.
var preciseShift = bits.TrailingZeros64(sys.PerfBitPreciseIPBit1)

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
	ring    unix.Ring
	counted uint64 // when it was disabled last
	stats   Stats  // of this Collect
}

const (
	// ringPages of samples (64 bytes each): 1,024 in 64 KiB. Every CPU has two.
	ringPages = 16
	// emptied every 50 ms: 20,000 samples/s fit. More often: more wake-ups.
	interval = 50 * time.Millisecond
)

// Open prepares to sample the target on these CPUs (usually all online ones). A CPU
// that went offline and a thread that ended are left out. On error nothing stays open.
func Open(calls unix.Sampling, cfg Config, target Target, cpus []int) (*Sampler, error) {
	if err := cfg.check(target); err != nil {
		return nil, err
	}
	s := &Sampler{calls: calls, period: cfg.Period}
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
		attr := cfg.attr(e)
		if err := s.openEvent(&attr, target, cpus); err != nil {
			return err
		}
	}
	return nil
}

func (c Config) events() []Event {
	var events []Event
	if c.Loads {
		events = append(events, c.Table.Loads)
	}
	if c.Stores {
		events = append(events, c.Table.Stores)
	}
	return events
}

func (s *Sampler) openEvent(attr *sys.PerfEventAttr, target Target, cpus []int) error {
	switch {
	case target.Cgroup != "":
		dir, err := s.calls.OpenDir(target.Cgroup)
		if err != nil {
			return unix.Explain("open", target.Cgroup, "", err)
		}
		defer s.calls.Close(dir)
		return s.openEach(cpus, "cpu", func(cpu int) (int, error) { return s.calls.Open(attr, dir, cpu, -1) })
	case target.TIDs != nil:
		return s.openEach(target.TIDs, "thread", func(tid int) (int, error) { return s.calls.OpenTask(attr, tid, -1) })
	}
	return s.openEach(cpus, "cpu", func(cpu int) (int, error) { return s.calls.OpenTask(attr, -1, cpu) })
}

func (s *Sampler) openEach(ids []int, what string, open func(int) (int, error)) error {
	for _, id := range ids {
		fd, err := open(id)
		if errors.Is(err, sys.ENODEV) || errors.Is(err, sys.ESRCH) {
			continue // offline; ended
		}
		if err != nil {
			return explain(fmt.Sprintf("access samples of %s %d", what, id), err)
		}
		ring, err := s.calls.Ring(fd, ringPages)
		if err != nil {
			s.calls.Close(fd)
			return unix.Explain("map", fmt.Sprintf("access samples of %s %d", what, id), "CAP_IPC_LOCK, or a larger /proc/sys/kernel/perf_event_mlock_kb", err)
		}
		s.streams = append(s.streams, stream{fd: fd, ring: ring})
	}
	return nil
}

// explain distinguishes a PMU that cannot sample addresses (mostly a VM without precise
// sampling) from other failures.
func explain(object string, err error) error {
	if errors.Is(err, sys.ENOENT) || errors.Is(err, sys.EOPNOTSUPP) || errors.Is(err, sys.EINVAL) {
		return fmt.Errorf("open %s: %w (%w): this PMU cannot sample addresses", object, err, unix.ErrNotSupported)
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
		total.add(one.stats.settled(s.period))
	}
	return total, err
}

// Start begins to sample, for a caller that has to know when: samples before Collect
// wait in the rings. Collect starts by itself.
func (s *Sampler) Start() error { return s.all("enable", s.calls.Enable) }

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
			if err := s.take(each); err != nil {
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
		s.bytes = one.ring.Take(s.bytes[:0])
		accesses, stats, err := parseRecords(s.accesses[:0], s.bytes)
		errs = append(errs, err)
		one.stats.add(stats)
		for _, a := range accesses {
			each(a)
		}
		s.accesses = accesses
	}
	return errors.Join(errs...)
}

func (s *Sampler) all(verb string, call func(fd int) error) error {
	var errs []error
	for _, one := range s.streams {
		errs = append(errs, unix.Explain(verb, "access samples", "", call(one.fd)))
	}
	return errors.Join(errs...)
}

// Close closes the events.
func (s *Sampler) Close() {
	for _, one := range s.streams {
		_ = one.ring.Close()
		s.calls.Close(one.fd)
	}
	s.streams = nil
}
