// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"homenode/internal/kernel/perf"
	"homenode/internal/kernel/sampling"
	"homenode/internal/kernel/unix"
	"homenode/internal/machine"
	"homenode/internal/snapshot"
	"homenode/internal/unit"
)

// LiveProbes adds figures of the PMUs beyond counts by workload to a snapshot of the
// running kernel: sampled accesses and the memory controllers.
func (c *SnapshotConfig) LiveProbes() {
	c.Sampler = &samplingProbe{calls: unix.LivePerf{}, root: c.Reader.Root}
	c.Uncore = &controllerProbe{calls: unix.LivePerf{}, root: c.Reader.Root}
}

// controllerProbe counts the memory controllers' work.
type controllerProbe struct {
	calls unix.Sampling
	root  Root
	c     *perf.Controllers // nil: not counting
	why   error             // why there is nothing to count
	sums  []perf.ControllerSums
	nodes int
	err   error // of Stop
}

// Start implements Probe. Nothing to count is no problem: the figures are unknown, with
// the reason.
func (p *controllerProbe) Start(_ context.Context, m machine.Machine) error {
	p.nodes, p.sums, p.err = len(m.Nodes), nil, nil
	p.c, p.why = perf.OpenControllers(p.calls, p.root, m)
	return nil
}

// Stop implements Probe.
func (p *controllerProbe) Stop() {
	if p.c != nil {
		p.sums, p.err = p.c.Read(p.nodes)
		p.c.Close()
	}
}

// Finish implements Probe.
func (p *controllerProbe) Finish(s *snapshot.Snapshot) error {
	if p.why != nil {
		for i := range s.Nodes {
			s.Nodes[i].Traffic = unknownTraffic(p.why.Error())
		}
		return nil
	}
	how := perf.Detect(p.root).How
	for i, sum := range p.sums[:min(len(p.sums), len(s.Nodes))] {
		t := &s.Nodes[i].Traffic
		if sum.Why != nil {
			*t = unknownTraffic(sum.Why.Error())
			continue
		}
		*t = unknownTraffic("its PMU has no event for it")
		t.Reads = unit.UnknownValue[uint64]("no controller of this node")
		if sum.KnownReads {
			t.Reads = unit.ValueOf(sum.Reads, how, p.c.From(perf.ControllerReads))
		}
		if sum.KnownWrites {
			t.Writes = unit.ValueOf(sum.Writes, how, p.c.From(perf.ControllerWrites))
		}
		if sum.KnownAll {
			t.All = unit.ValueOf(sum.All, how, p.c.From(perf.ControllerAll))
			t.Reads = unit.UnknownValue[uint64]("its PMU does not tell reads from writes")
			t.Writes = t.Reads
		}
		if sum.KnownB && sum.Ticks == 0 {
			t.Busy = unit.UnknownValue[unit.Ratio](p.c.From(perf.ControllerBusy) + " stood still")
		}
		if busy, ok := unit.RatioOf(float64(min(sum.BusyTicks, sum.Ticks)), float64(sum.Ticks)).Get(); ok && sum.KnownB {
			t.Busy = unit.ValueOf(busy, how, p.c.From(perf.ControllerBusy))
		}
	}
	return p.err
}

func unknownTraffic(why string) snapshot.Traffic {
	lines := unit.UnknownValue[uint64](why)
	return snapshot.Traffic{Reads: lines, Writes: lines, Busy: unit.UnknownValue[unit.Ratio](why)}
}

const (
	// sampleThreshold is the least latency of a load that is sampled, in cycles: above
	// an LLC hit (some 40–70), below DRAM (200 and more), so that sampled loads left
	// the chip's caches.
	sampleThreshold = 96
	// sampleRate is the target for samples a second, of loads and of stores each; where one
	// event samples both, of slow loads (accesses). A sample costs the sampled program about a
	// microsecond.
	sampleRate = 2000
	// The period is found in a first short look, and bounded: taking one sample makes
	// some thousand stores and hardly a slow load, and must not cause more samples than
	// it is worth.
	firstPeriod, mostPeriod = 10007, 50_000_000
	leastLoads, leastStores = 101, 10007
	firstLook               = 200 * time.Millisecond
	sampleSlice             = 500 * time.Millisecond
)

// samplingProbe samples loads and stores of user programs, each with a period of
// its own.
type samplingProbe struct {
	calls unix.Sampling
	root  Root

	table  sampling.Table
	why    error
	stop   context.CancelFunc
	done   sync.WaitGroup
	mu     sync.Mutex // guards the following fields
	folder *sampling.Folder
	lost   uint64
	kinds  []sampledKind
}

// sampledKind is the result of sampling one kind of access, or both by one event.
type sampledKind struct {
	cfg         sampling.Config
	first, last uint64 // periods; 0: it never sampled
	err         error
}

// Start implements Probe.
func (p *samplingProbe) Start(ctx context.Context, m machine.Machine) error {
	if p.table, p.why = sampling.Detect(p.root); p.why != nil {
		return nil
	}
	at := nodePlaces(m)
	p.folder = sampling.NewFolder(sampling.LiveSpaces(p.root), len(m.Nodes), func(cpu int) int {
		if n, ok := m.NodeOf(cpu); ok && n < len(at) {
			return at[n]
		}
		return -1
	})
	p.lost, p.kinds = 0, nil
	ctx, p.stop = context.WithCancel(ctx)
	for _, cfg := range p.table.Kinds(sampleThreshold) {
		cfg.UserOnly = true
		p.kinds = append(p.kinds, sampledKind{cfg: cfg})
	}
	for i := range p.kinds {
		kind := &p.kinds[i]
		p.done.Go(func() { kind.err = p.sample(ctx, kind.cfg, kind, m.OnlineCPUs().IDs()) })
	}
	return nil
}

// sample looks briefly to find the period, then samples until it is stopped.
//
// A load that starts later would be oversampled: the period is then raised, and never
// lowered again. Samples from before a raise stand for fewer accesses; only
// snapshot.Samples.From shows that.
func (p *samplingProbe) sample(ctx context.Context, cfg sampling.Config, kind *sampledKind, cpus []int) error {
	cfg.Period = firstPeriod
	stats, err := p.collect(ctx, cfg, cpus, firstLook, func(sampling.Access) {})
	if err != nil {
		return err
	}
	least := uint64(leastStores)
	if cfg.Loads {
		least = leastLoads
	}
	cfg.Period = periodFor(accesses(cfg, stats), firstLook, least)
	kind.first = p.table.Period(cfg.Period)
	self := os.Getpid()
	for ctx.Err() == nil {
		kind.last = p.table.Period(cfg.Period)
		stats, err := p.collect(ctx, cfg, cpus, sampleSlice, func(a sampling.Access) {
			if a.PID == self {
				return
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			p.folder.Add(a)
		})
		p.mu.Lock()
		p.lost += stats.Lost
		p.mu.Unlock()
		if err != nil {
			return err
		}
		cfg.Period = max(cfg.Period, periodFor(accesses(cfg, stats), sampleSlice, least))
	}
	return nil
}

// accesses is by what the period is chosen. Where one event samples operations of all kinds, slow
// loads are a small part: they decide, as long as all samples are at most 25 times as many.
func accesses(cfg sampling.Config, stats sampling.Stats) uint64 {
	if !cfg.Table.Loads.Ops {
		return stats.Qualified
	}
	return cfg.Table.Period(cfg.Period) * max(stats.Loads, stats.Samples/25)
}

// periodFor is the period that would have given sampleRate samples a second of this
// many qualifying accesses.
func periodFor(qualified uint64, look time.Duration, least uint64) uint64 {
	rate := float64(qualified) / look.Seconds()
	return min(max(uint64(rate/sampleRate), least), mostPeriod)
}

func (p *samplingProbe) collect(ctx context.Context, cfg sampling.Config, cpus []int, d time.Duration, each func(sampling.Access)) (sampling.Stats, error) {
	s, err := sampling.Open(p.calls, cfg, sampling.Target{}, cpus)
	if err != nil {
		return sampling.Stats{}, err
	}
	defer s.Close()
	stats, err := s.Collect(ctx, d, each)
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return stats, err
}

// Stop implements Probe.
func (p *samplingProbe) Stop() {
	if p.why == nil {
		p.stop()
		p.done.Wait()
	}
}

// Finish implements Probe. The samples of one kind of access are kept when the other
// cannot be sampled: that is then a problem, not a failure.
func (p *samplingProbe) Finish(s *snapshot.Snapshot) error {
	if p.why != nil {
		s.Samples = snapshot.Samples{Why: p.why.Error()}
		return nil
	}
	var errs []error
	var texts []string
	failed := true
	for _, k := range p.kinds {
		errs, texts, failed = append(errs, k.err), append(texts, k.text()), failed && k.err != nil
	}
	err := errors.Join(errs...)
	if failed {
		s.Samples = snapshot.Samples{Why: err.Error()}
		return err
	}
	from := fmt.Sprintf("perf samples (%s): %s", p.table.Name, strings.Join(texts, ", "))
	s.Samples = p.folder.Samples(p.table.How, from, p.lost)
	workload := map[int]string{}
	for _, g := range s.Groups {
		for _, pid := range g.PIDs {
			workload[pid] = g.ID
		}
	}
	for i := range s.Samples.Places {
		s.Samples.Places[i].Workload = workload[s.Samples.Places[i].PID]
	}
	for i := range s.Samples.Lines {
		l := &s.Samples.Lines[i]
		l.Workload = workload[l.PID]
		for u := range l.Users {
			l.Users[u].Workload = workload[l.Users[u].PID]
		}
	}
	return err
}

// text is the number of accesses per sample, and what they are.
func (k sampledKind) text() string {
	access, least := "store", ""
	if k.cfg.Loads {
		access, least = "load", fmt.Sprintf(" of at least %d cycles", k.cfg.LatencyThreshold)
	}
	if k.first == 0 && k.err != nil {
		return "no " + access + least
	}
	if k.cfg.Loads && k.cfg.Stores {
		access, least = "operation", ": loads"+least+", and stores"
	}
	text := fmt.Sprintf("one %s in %d", access, k.first)
	if k.last > k.first {
		text += fmt.Sprintf(" (later in %d)", k.last)
	}
	return text + least
}
