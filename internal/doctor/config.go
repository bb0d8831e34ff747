// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"homenode/internal/machine"
	"homenode/internal/profile"
	"homenode/internal/unit"
)

// Config holds every threshold of the rules. Those without another source are ours,
// chosen on the lab's machines; a better one would be recorded in docs/decisions.
type Config struct {
	// Profile is what was measured on this machine. Its latencies take precedence over
	// the firmware's. Nil: not measured.
	Profile *profile.Profile
	// Bottleneck is the share of the busy CPU time whose loss makes NUMA a
	// bottleneck. MAO's gains, called worthwhile for a fleet, were 6.7–9.8 % of
	// CPU (papers, §1). Lower calls noise a bottleneck; higher misses such gains.
	Bottleneck float64
	// Slight is the share below which a loss is not reported: repeats of one load
	// differ by that much. Lower reports noise.
	Slight float64
	// IdleCPUs is CPUs' worth of time below which there is too little to judge. Higher
	// refuses to judge quiet hosts; lower judges the daemons alone.
	IdleCPUs float64
	// Covered is the share of the busy CPU time that must belong to workloads with a
	// known loss before the rest is assumed to lose the same share. Lower extrapolates
	// more.
	Covered float64
	// SLITExcess is the part of the extra latency promised by SLIT that is real:
	// machine.LatencyRatio. Higher makes every cost larger.
	SLITExcess float64

	// RemoteShare is the share of remote reads from which a workload counts as far from
	// its memory: half of what a random placement on two nodes has. Lower reports more;
	// the cost says whether it matters.
	RemoteShare float64
	// MinCPU is CPUs' worth of time below which a workload, process or thread is too
	// small to report.
	MinCPU float64
	// MinMemory is the same for memory.
	MinMemory unit.Bytes
	// HomeShare is the share of a workload's CPU time that makes a node its home.
	// It must be above one half, so that there is one home only.
	HomeShare float64
	// AwayShare is the share of its private memory elsewhere from which a workload
	// counts as displaced. Lower reports stray libraries.
	AwayShare float64

	// NearLow times the low watermarks counts as "full": kswapd works between low and
	// high, which is 1.2 × low with the kernel's defaults (watermark_scale_factor).
	// Higher reports nodes that still have memory.
	NearLow float64
	// CacheShare is the share of a node's memory from which page cache counts as the
	// reason that it is full. Lower blames the cache for what programs took.
	CacheShare float64
	// FallbackPages and FallbackShare: pages per second that were wanted on a node and
	// taken elsewhere, and their share of all pages wanted there. 256 pages are 1
	// MiB/s. Lower reports the few of a node that was full once.
	FallbackPages float64
	FallbackShare float64

	// TouchShare is the share of a process's private memory on one node from which one
	// thread is assumed to have touched it all. Lower finds memory that is merely
	// uneven.
	TouchShare float64
	// SpreadShare is the share of a process's CPU time on other nodes from which its
	// threads count as running elsewhere.
	SpreadShare float64

	// MigrateSecondsPerGiB is CPU time for moving pages: 0.63–0.65 s/GB on one
	// 2.7 GHz core (MAO; papers, §1), as GiB.
	MigrateSecondsPerGiB float64
	// HintFaultSeconds and PTESeconds are CPU time of a hinting fault and of removing a
	// page table entry: 1 µs and 50 ns, the order of a minor fault and of a few cache
	// misses; ours, not measured.
	HintFaultSeconds float64
	PTESeconds       float64
	// ConvergedShare is the share of local hinting faults from which NUMA balancing has
	// converged. From there on its cost is the price of staying converged.
	ConvergedShare float64
	// HintFaults is the number of hinting faults a second below which that share means
	// nothing.
	HintFaults float64
	// FailedShare is the share of failed page moves from which balancing works against
	// a binding.
	FailedShare float64

	// NearFull is the share of the allowed memory from which memory is called tight and
	// running out of it near. Lower warns earlier, and of failures that never come.
	NearFull float64
	// PoolShare: a huge-page pool smaller than this share of the largest is unequal.
	PoolShare float64
	// ReclaimCache is the share of the host's memory that is page cache from which
	// zone reclaim hurts (Documentation/admin-guide/sysctl/vm.rst: leave it off
	// where data is cached).
	ReclaimCache float64

	// IRQRate is interrupts per second below which their placement does not matter.
	IRQRate float64
	// IRQNear: a device is far from its interrupts when its own node serves less than
	// this part of an even spread over the nodes. Above 1 it would report NVMe and
	// multi-queue NICs, which spread on purpose.
	IRQNear float64
	// IRQExtraSeconds is the extra CPU time of an interrupt served on another node:
	// some eight cache lines at 60 ns; ours, not measured.
	IRQExtraSeconds float64

	// Saturated is the share of the time a controller is busy from which reads wait
	// (loaded latency is 1.4 times idle at 78 % of the bandwidth; latency facts). A
	// controller with at most IdleBeside of that counts as idle.
	Saturated  float64
	IdleBeside float64

	// MinSamples is the number of samples that a line needs, and MinPlaceSamples a
	// mapping: with no store among n samples, stores are below 3/n with 95 % confidence
	// (the rule of three).
	MinSamples      uint64
	MinPlaceSamples uint64
	// WrittenShare is the share of a mapping's sampled pages that may be written
	// while the rest counts as read only. Higher finds tables that are updated.
	WrittenShare float64
	// CommonShare is the share of a mapping's loads from places that several threads
	// load from at which it counts as read in common. Lower takes neighbours for
	// sharers.
	CommonShare float64
	// SharedShare is the least part of the loads or stores from which a node counts as
	// a user.
	SharedShare float64

	// GuestRemote is the share of remote reads that a guest with one node cannot have
	// if its topology is true; above a counter's noise.
	GuestRemote float64
	// FreeCPU is the part of a CPU that must be idle on a node for it to have room. A
	// whole CPU is never idle while doctor looks.
	FreeCPU float64
	// WaitShare is the share of the time that a thread waits for its CPU from which the
	// wait is reported; BusyCPU is the load of the CPU where waiting is not known.
	WaitShare float64
	BusyCPU   float64
	// SwapPages is pages per second to and from swap from which swapping is reported.
	SwapPages float64
	// FreeShare is the share of a node's memory that must be free for it to have room.
	FreeShare float64
}

// DefaultConfig is what homenode doctor uses.
func DefaultConfig() Config {
	return Config{
		Bottleneck: 0.05, Slight: 0.02, IdleCPUs: 0.1, Covered: 0.8, SLITExcess: machine.SLITExcess,
		RemoteShare: 0.25, MinCPU: 0.05, MinMemory: 16 * unit.MiB, HomeShare: 0.6, AwayShare: 0.2,
		NearLow: 1.5, CacheShare: 0.3, FallbackPages: 256, FallbackShare: 0.01,
		TouchShare: 0.8, SpreadShare: 0.2,
		MigrateSecondsPerGiB: 0.69, HintFaultSeconds: 1e-6, PTESeconds: 50e-9, ConvergedShare: 0.8, HintFaults: 100, FailedShare: 0.1,
		NearFull: 0.95, PoolShare: 0.5, ReclaimCache: 0.2,
		IRQRate: 1000, IRQNear: 0.5, IRQExtraSeconds: 0.5e-6,
		Saturated: 0.7, IdleBeside: 0.5,
		MinSamples: 20, MinPlaceSamples: 100, WrittenShare: 0.01, CommonShare: 0.5, SharedShare: 0.1,
		GuestRemote: 0.02, FreeCPU: 0.75, WaitShare: 0.1, BusyCPU: 0.95, SwapPages: 100, FreeShare: 0.1,
	}
}
