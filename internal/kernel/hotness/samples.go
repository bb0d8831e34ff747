// SPDX-License-Identifier: Apache-2.0

package hotness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"homenode/internal/kernel/sampling"
	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
)

// samples uses PMU samples of loads and stores, all levels: a page that the caches serve
// is in use, too.
//
//  1. Sample the threads of the processes, listed again for each slice of time: a thread
//     that lives shorter than that is missed. For very many threads, sample all CPUs
//     instead, and drop what is not of the processes. That also samples this process,
//     which makes some thousand accesses to take in a sample. The same where the kernel
//     samples no single threads (AMD before Linux 6.2).
//  2. A first short slice, with a period that is rather too long, finds the period; then
//     each slice finds that of the next. All samples count.
//  3. A page with enough samples is hot.
type samples struct {
	*search
	table sampling.Table

	of map[int]bool // processes

	mu       sync.Mutex // of what follows
	hits     map[page]hit
	total    uint64
	accesses uint64 // that the samples stand for
	full     bool
}

// hit is how often a page was sampled, and how many accesses that stands for: a sample stands
// for as many as its period, and loads and stores have periods of their own.
type hit struct {
	samples  uint32
	accesses uint64
}

type page struct {
	pid  int
	addr uint64
}

const (
	// Wanted samples of each kind of access, a second: for each CPU, and at least of all
	// together. A sample costs the sampled thread about a microsecond, and 10,000 samples
	// find 98 of 100 pages where 2,500 pages are used alike.
	cpuRate, leastRate = 1000, 10_000
	firstPeriod        = 10007
	leastPeriod        = 101 // bounds what sampling costs by 1 % of accesses
	mostPeriod         = 50_000_000
	firstSlice, slice  = 200 * time.Millisecond, 500 * time.Millisecond
	// maxThreads are sampled one by one: each has two events of 68 KiB (one of 260 KiB with
	// SPE), and 50 µs to open them for each slice.
	maxThreads = 128
	// leastOfCPUs is the least period when whole CPUs are sampled. A shorter one would
	// cost more than the samples are worth, and taking samples would itself be sampled.
	leastOfCPUs = 10007
	// maxPages are remembered, some 60 bytes each; hits of further ones are dropped.
	maxPages = 1 << 22
	// unseenShare of accesses to pages that no sample hit is reported.
	unseenShare = 0.1
)

func (s *samples) available() (err error) {
	s.table, err = sampling.Detect(s.root)
	return err
}

func (s *samples) find(ctx context.Context) (unit.Source, error) {
	s.hits, s.of = map[page]hit{}, map[int]bool{}
	for _, pid := range s.pids {
		s.of[pid] = true
	}
	stats, err := s.sampleAll(ctx) // 1
	if err != nil {
		return 0, err
	}
	s.judge() // 3
	s.tell(stats)
	return s.table.How, nil
}

// whom returns what is sampled in the next slice.
type whom func() (sampling.Target, []int, error)

func (s *samples) sampleAll(ctx context.Context) (sampling.Stats, error) {
	threads := func() (sampling.Target, []int, error) {
		tids, err := s.threads()
		return sampling.Target{TIDs: tids}, nil, err
	}
	tids, err := s.threads()
	if err != nil {
		return sampling.Stats{}, err
	}
	if len(tids) <= maxThreads {
		stats, err := s.sample(ctx, leastPeriod, threads)
		if !s.table.Loads.Ops || !errors.Is(err, unix.ErrNotSupported) {
			return stats, err
		}
	}
	cpus, err := s.cpus()
	if err != nil {
		return sampling.Stats{}, err
	}
	stats, err := s.sample(ctx, leastOfCPUs, func() (sampling.Target, []int, error) { return sampling.Target{}, cpus, nil })
	if errors.Is(err, unix.ErrNotPermitted) {
		return s.sample(ctx, leastPeriod, threads)
	}
	return stats, err
}

func (s *samples) cpus() ([]int, error) {
	cpus, err := s.buf.CPUs(s.root, unix.OnlineCPUs)
	if err != nil {
		return nil, err
	}
	return cpus.IDs(), nil
}

// threads are the present threads of the processes.
func (s *samples) threads() ([]int, error) {
	var all []int
	for _, pid := range s.pids {
		tids, err := unix.IDs(s.proc(pid, "task"))
		if err = unix.Explain("list", s.proc(pid, "task"), "", err); errors.Is(err, unix.ErrGone) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, tids...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("sample memory accesses: every process has ended (%w)", unix.ErrGone)
	}
	return all, nil
}

// sample samples loads and stores in parallel, each with a period of its own where the PMU can.
// One of them is enough; a failure of the other is reported.
func (s *samples) sample(ctx context.Context, least uint64, who whom) (all sampling.Stats, err error) {
	kinds := s.table.Kinds(3)
	stats, errs := make([]sampling.Stats, len(kinds)), make([]error, len(kinds))
	var done sync.WaitGroup
	for i, cfg := range kinds {
		cfg.UserOnly = true
		done.Go(func() { stats[i], errs[i] = s.sampleKind(ctx, cfg, least, who) })
	}
	done.Wait()
	if !slices.Contains(errs, nil) {
		return sampling.Stats{}, errors.Join(errs...)
	}
	for i, cfg := range kinds {
		name := "Stores"
		if cfg.Loads {
			name = "Loads"
		}
		if errs[i] != nil {
			s.note("%s were not sampled: %v.", name, errs[i])
		}
		all.Lost, all.Throttled = all.Lost+stats[i].Lost, all.Throttled+stats[i].Throttled
	}
	return all, nil
}

func (s *samples) sampleKind(ctx context.Context, cfg sampling.Config, least uint64, who whom) (all sampling.Stats, err error) {
	cfg.Period = s.cfg.Period
	if cfg.Period == 0 {
		cfg.Period = firstPeriod
	}
	began := time.Now()
	for d := min(firstSlice, s.cfg.For/4); d > 0 && ctx.Err() == nil; d = min(slice, s.cfg.For-time.Since(began)) {
		target, cpus, err := who()
		var stats sampling.Stats
		if err == nil {
			stats, err = s.collect(ctx, cfg, target, cpus, d)
		}
		if errors.Is(err, unix.ErrGone) { // all have ended: earlier samples count
			return all, nil
		}
		if err != nil {
			return sampling.Stats{}, err
		}
		if s.cfg.Period == 0 { // 2
			cfg.Period = periodFor(stats.Qualified, d, len(cpus), least)
		}
		all.Qualified += stats.Qualified
		all.Lost += stats.Lost
		all.Throttled += stats.Throttled
	}
	return all, nil
}

// periodFor is the period that brings enough samples of so many accesses. It is odd:
// programs like powers of two, and would be sampled at the same places again.
func periodFor(qualified uint64, search time.Duration, cpus int, least uint64) uint64 {
	rate := float64(qualified) / search.Seconds()
	want := float64(max(leastRate, cpus*cpuRate))
	return min(max(uint64(rate/want), least), mostPeriod) | 1
}

func (s *samples) collect(ctx context.Context, cfg sampling.Config, target sampling.Target, cpus []int, d time.Duration) (sampling.Stats, error) {
	sampler, err := sampling.Open(s.cfg.Calls, cfg, target, cpus)
	if err != nil {
		return sampling.Stats{}, err
	}
	defer sampler.Close()
	period := cfg.Table.Period(cfg.Period)
	return sampler.Collect(ctx, d, func(a sampling.Access) { s.take(a, period) })
}

// take counts a sample of one of the processes for its page.
func (s *samples) take(a sampling.Access, period uint64) {
	if a.Addr == 0 || a.Kernel || !s.of[a.PID] {
		return
	}
	p := page{a.PID, a.Addr &^ uint64(unix.PageSize()-1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total++
	s.accesses += period
	h, known := s.hits[p]
	if !known && len(s.hits) == maxPages {
		s.full = true
		return
	}
	s.hits[p] = hit{h.samples + 1, h.accesses + period}
}

func (s *samples) judge() {
	least := uint32(max(1, s.cfg.Least))
	for p, h := range s.hits {
		if h.samples >= least {
			s.addSpan(p.pid, span{p.addr, p.addr + uint64(unix.PageSize())})
		}
	}
}

// tell adds notes on how reliable the result is. The share of accesses that went to pages
// without a sample is about that of pages with one sample (Good, The population
// frequencies of species, 1953; Turing's estimate). It is a share of accesses, not of
// samples: those of a few stores, all to the stack, would hide how few loads were sampled.
func (s *samples) tell(stats sampling.Stats) {
	if s.total == 0 {
		s.note("No access of the processes was sampled: they hardly ran, or hardly used memory.")
		return
	}
	once := uint64(0)
	for _, h := range s.hits {
		if h.samples == 1 {
			once += h.accesses
		}
	}
	if share, ok := unit.RatioOf(float64(once), float64(s.accesses)).Get(); ok && share > unseenShare {
		s.note("%d samples are few for %d pages: about %v of the accesses went to pages that no sample hit, which count as cold; look for longer.", s.total, len(s.hits), share)
	}
	if stats.Lost > s.total/10 || stats.Throttled > 0 {
		s.note("%d samples were lost, and the kernel stopped sampling %d times.", stats.Lost, stats.Throttled)
	}
	if s.full {
		s.note("More than %d pages were sampled: the rest counts as cold.", maxPages)
	}
}
