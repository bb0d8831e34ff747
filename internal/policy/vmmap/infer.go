// SPDX-License-Identifier: Apache-2.0

package vmmap

import (
	"fmt"
	"math"

	"homenode/internal/machine"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// Infer has the constants by which classes are inferred from counters. Times are in units
// of a hit in the last-level cache, on the own node. Defaults were fitted in the simulator
// (decision 0020).
type Infer struct {
	DRAM   float64 `yaml:"dram" json:"dram"`     // a read from local memory
	Remote float64 `yaml:"remote" json:"remote"` // the same at a SLIT distance of 20, × DRAM
	// The references of Slowdowns: lines per cycle that a CPU of the devil brings in, and
	// accesses per cycle of a CPU of the rabbit while all are hits.
	DevilRate  float64 `yaml:"devil_rate" json:"devil_rate"`
	RabbitRate float64 `yaml:"rabbit_rate" json:"rabbit_rate"`
	// Crowd is how much longer reads from memory take beside the reference devil. Beside
	// other workloads it is in proportion to what they read.
	Crowd float64 `yaml:"crowd" json:"crowd"`
	// Scales correct what the estimates leave out; fitted, see decision 0020.
	HarmScale   float64 `yaml:"harm_scale" json:"harm_scale"`
	RemoteScale float64 `yaml:"remote_scale" json:"remote_scale"`

	Weight  float64 `yaml:"weight" json:"weight"`   // weight of a new window in the mean; less: slower, steadier
	Windows int     `yaml:"windows" json:"windows"` // windows until a class is given, and in a row until another is
	// A behaviour has changed when requests per instruction differ from the mean by more
	// than Change, for Changed windows in a row.
	Change  float64 `yaml:"change" json:"change"`
	Changed int     `yaml:"changed" json:"changed"`
}

func defaultInfer() Infer {
	return Infer{
		DRAM: 3, Remote: 1 + machine.SLITExcess, DevilRate: 0.2, RabbitRate: 0.02, Crowd: 0.4,
		HarmScale: 1.1, RemoteScale: 0.75,
		Weight: 0.3, Windows: 3, Change: 0.25, Changed: 3,
	}
}

// mostConstant is larger than on any machine.
const mostConstant = 1e6

func (f Infer) validate() error {
	for _, p := range []struct {
		name string
		is   float64
	}{
		{"dram", f.DRAM - 1}, {"remote", f.Remote - 1}, {"devil_rate", f.DevilRate}, {"rabbit_rate", f.RabbitRate}, {"crowd", f.Crowd},
		{"harm_scale", f.HarmScale}, {"remote_scale", f.RemoteScale}, {"weight", f.Weight}, {"change", f.Change},
	} {
		if !(p.is > 0 && p.is < mostConstant) {
			return fmt.Errorf("animal: infer.%s: it must be a positive number below a million; dram and remote above 1", p.name)
		}
	}
	if f.Weight > 1 || f.Windows < 1 || f.Changed < 1 {
		return fmt.Errorf("animal: infer.weight is %v, windows %d, changed %d: want 1 at most, at least 1, and at least 1", f.Weight, f.Windows, f.Changed)
	}
	return nil
}

// Sample is what one window says about a workload, or the mean of several. Figures are per
// cycle of a CPU unless the line says otherwise.
type Sample struct {
	Requests unit.Opt[float64] `json:"requests"` // that left the private caches
	Loads    unit.Opt[float64] `json:"loads"`    // from memory
	// Traffic is lines moved between caches and memory, reads and writes, where resctrl
	// counts them.
	Traffic unit.Opt[float64] `json:"traffic,omitzero"`
	Remote  unit.Opt[float64] `json:"remote"` // share of loads from another node
	Far     unit.Opt[float64] `json:"far"`    // its distance, in local distances beyond the own node
	Waits   unit.Opt[float64] `json:"waits"`  // cycles that it waits for requests, else for any memory
	Held    unit.Opt[float64] `json:"held"`   // bytes that it holds of each last-level cache that it uses
	// Low and High bound Held where that is not counted (Bounds).
	Low   unit.Opt[float64] `json:"low,omitzero"`
	High  unit.Opt[float64] `json:"high,omitzero"`
	Cache unit.Opt[float64] `json:"cache"` // size of such a cache, in bytes
	// Curve is the hits at more and less occupancy, over all windows of this behaviour.
	Curve Curve `json:"curve,omitempty"`
	// Intensity is requests per instruction. It changes with behaviour, but not with
	// neighbours or distance. It is unknown where requests are not counted.
	Intensity unit.Opt[float64] `json:"intensity"`
}

// mostWaits is the largest plausible cycles of waiting per cycle: 1, and the error of
// multiplexing.
const mostWaits = 1.5

// fewRequests: a program with this many requests per cycle that waits for none of them has
// a counter that does not work.
const fewRequests = 1e-5

// SampleOf is one window of a workload that ran at a site.
func SampleOf(w *window.Workload, at Site) Sample {
	cycles, ok := w.Cycles.Get()
	if !ok || cycles == 0 {
		return Sample{}
	}
	rate := func(v unit.Value[uint64]) unit.Opt[float64] {
		n, ok := v.Get()
		return unit.OptOf(float64(n)/float64(cycles), ok)
	}
	s := Sample{Requests: rate(w.UncoreRequests), Far: at.Far}
	for _, v := range []unit.Value[uint64]{w.UncoreWaits, w.StallCycles} {
		waits, ok := rate(v).Get()
		if works := waits <= mostWaits && (waits > 0 || s.Requests.Or(0) < fewRequests); ok && works {
			s.Waits = unit.Some(waits)
			break
		}
	}
	if loads, ok := w.Loads(); ok {
		lines, _ := linesOf(w)
		s.Loads = unit.Some(lines / float64(cycles))
		s.Remote = unit.Some(float64(w.RemoteLoads.Or(0)) / max(1, loads))
	}
	if bytes, ok := w.Traffic.Get(); ok {
		s.Traffic = unit.Some(float64(bytes) / lineBytes / float64(cycles))
	}
	if held, ok := w.LLC.Get(); ok {
		caches, ok := at.Caches.Get()
		s.Held = unit.OptOf(float64(held)/caches, ok)
	}
	if size, ok := at.Cache.Get(); ok && size > 0 {
		s.Cache = unit.Some(float64(size))
	}
	if n, ok := w.Instructions.Get(); ok && n > 0 {
		a, ok := w.UncoreRequests.Get()
		s.Intensity = unit.OptOf(float64(a)/float64(n), ok)
	}
	return s
}

// mix is the mean of old and new figures. A figure that is unknown now stays as it was.
func (s Sample) mix(now Sample, weight float64) Sample {
	if size, ok := now.Cache.Get(); ok && size != s.Cache.Or(size) {
		s.Curve = nil // shares of another cache
	}
	one := func(was, is unit.Opt[float64]) unit.Opt[float64] {
		a, ok := was.Get()
		b, ok2 := is.Get()
		switch {
		case !ok2:
			return was
		case !ok:
			return is
		}
		return unit.Some(a + float64(weight*(b-a)))
	}
	return Sample{
		Requests: one(s.Requests, now.Requests), Loads: one(s.Loads, now.Loads), Traffic: one(s.Traffic, now.Traffic), Remote: one(s.Remote, now.Remote), Far: one(s.Far, now.Far), Waits: one(s.Waits, now.Waits),
		Held: one(s.Held, now.Held), Low: one(s.Low, now.Low), High: one(s.High, now.High), Cache: one(s.Cache, now.Cache), Curve: s.Curve.withWindow(now, weight), Intensity: one(s.Intensity, now.Intensity),
	}
}

// Estimate computes Slowdowns of a program that was seen with little and with much of a
// cache (Sample.Squeezed), from counters alone. Of any other it gives Remote only: what a
// program holds of a cache that nothing takes from it says nothing about its need (Solo).
//
//  1. Waiting is hits × 1 + reads from memory × DRAM (remote reads × Remote at a distance
//     of 20, more the farther they are; 20 is assumed where the distance is unknown), each
//     divided by how many are under way at once. As all of it was counted, this gives the
//     cycles that one unit of latency costs.
//  2. Remote: all reads from distance 20 against all reads from the own node. Both use the
//     reads that remain when it has the cache alone, where that is known.
//  3. Hits lie between those observed with more and with less of the cache (Curve).
//  4. A cache that two workloads use fills in proportion to what each brings in. Beside
//     the reference devil the workload holds what the devil leaves. Hurt is the hits that it
//     loses by this, and the longer wait of its reads from memory because of the devil's.
//  5. Harm is the same with the reference rabbit as the victim.
//
// A figure is unknown if its counters are missing: waits and requests give 1, occupancy, or
// bounds of it that are close, gives 3.
func (f Infer) Estimate(s Sample) Slowdowns {
	p, ok := f.program(s) // 1
	if !ok {
		return Slowdowns{}
	}
	if !p.shares {
		return Slowdowns{Remote: f.remote(p, p.loads, p.local)}
	}
	alone := p.hitsWith(p.cache)
	quiet := max(least, p.local-float64(p.unit*p.requests*(f.DRAM-1)*(alone-p.hits)))
	out := Slowdowns{Remote: f.remote(p, p.requests*(1-alone), quiet)}
	beside := p.hitsWith(f.besideDevil(p)) // 4
	longer := float64((f.DRAM-1)*max(0, alone-beside)) + float64(f.DRAM*f.Crowd*(1-beside))
	out.Hurt = unit.Some(p.unit * p.requests * longer / quiet)
	misses, reads := f.besideRabbit(p) // 5
	slower := float64(f.DRAM*(1+float64(f.Crowd*min(1, reads/f.DevilRate)))) - 1
	out.Harm = unit.Some(f.HarmScale * misses * slower)
	return out
}

// Lost is the share of its time that a program would save with the whole cache to itself
// and all of its memory on its own node, as far as its counters show.
func (f Infer) Lost(s Sample) unit.Opt[float64] {
	p, ok := f.program(s)
	if !ok {
		return unit.None[float64]()
	}
	now := p.local
	if p.shares {
		now -= float64(p.unit * p.requests * (f.DRAM - 1) * (p.hitsWith(p.cache) - p.hits))
	}
	return unit.Some(min(1, max(0, 1-now)))
}

// remote is number 2: loads remote reads, relative to a time with all of them near.
func (f Infer) remote(p program, loads, time float64) unit.Opt[float64] {
	return unit.Some(f.RemoteScale * p.unit * loads * f.DRAM * (f.Remote - 1) / time)
}

// least keeps quotients finite.
const least = 1e-9

// program is a sample in the terms of Estimate, per cycle.
type program struct {
	requests, loads, hits float64 // hits as a share of requests
	unit                  float64 // cycles that a unit of latency costs
	local                 float64 // cycles that it would take with all reads from its own node
	shares                bool    // whether the following fields are known
	cache, footprint      float64
	curve                 Curve
}

// program is numbers 1 and 3 of Estimate. More loads than requests are prefetches that the
// requests do not include; requests are then taken to be as many.
func (f Infer) program(s Sample) (program, bool) {
	waits, ok := s.Waits.Get()
	loads, ok2 := s.Loads.Get()
	if !ok || !ok2 {
		return program{}, false
	}
	requests, counted := s.Requests.Get()
	p := program{requests: max(requests, loads), loads: loads}
	remote := float64(loads * s.Remote.Or(0))
	longer := float64((f.Remote - 1) * s.Far.Or(1)) // extra time of a remote read, × DRAM
	memory := float64((loads-remote)*f.DRAM) + float64(remote*f.DRAM*(1+longer))
	if all := p.requests - loads + memory; all > 0 {
		p.unit = waits / all
	}
	p.local = max(least, 1-float64(p.unit*remote*f.DRAM*longer))
	if p.requests > 0 {
		p.hits = 1 - loads/p.requests
	}
	cache, ok := s.Cache.Get()
	if p.shares = ok && counted && s.Squeezed(); p.shares { // 3
		p.cache, p.curve = cache, s.Curve
		p.footprint = float64(cache * p.curve.whole())
	}
	return p, true
}

// hitsWith is the share of hits with this many bytes of cache.
func (p program) hitsWith(held float64) float64 { return p.curve.at(held / p.cache) }

// brings is the lines that it brings in at this occupancy, with all of its memory on its
// own node.
func (p program) brings(held float64) float64 {
	return float64(p.requests * (1 - p.hitsWith(held)) / p.local)
}

// besideDevil is the program's occupancy of a cache that the reference devil uses, too.
func (f Infer) besideDevil(p program) float64 {
	return p.fill(func(held float64) float64 {
		return float64(p.brings(held)*(p.cache-held)) - float64(f.DevilRate*held)
	})
}

// besideRabbit is the share of the reference rabbit's accesses that miss, and what the
// program reads from memory meanwhile.
func (f Infer) besideRabbit(p program) (misses, reads float64) {
	need := float64(p.cache / 2)
	missing := func(held float64) float64 { return max(0, 1-(p.cache-held)/need) }
	held := min(p.cache-need, p.footprint)
	if p.footprint > need {
		held = p.fill(func(held float64) float64 {
			return float64(p.brings(held)*(p.cache-held)) - float64(f.RabbitRate*missing(held)*held)
		})
	}
	return missing(held), p.brings(held)
}

// fill is the equilibrium of a share of the cache. more is its growth: what it brings in,
// less what the other evicts. It falls as the share grows.
func (p program) fill(grows func(held float64) float64) float64 {
	low, high := 0.0, min(p.cache, p.footprint)
	for range 40 {
		if mid := float64((low + high) / 2); grows(mid) > 0 {
			low = mid
		} else {
			high = mid
		}
	}
	return float64((low + high) / 2)
}

// Verdict is the inferred class, and how sure it is. HurtRange and HarmRange are intervals
// of the slowdowns where Solo says them.
type Verdict struct {
	Class     Class             `json:"class"`
	Sensitive unit.Opt[bool]    `json:"sensitive"`
	Slowdowns Slowdowns         `json:"slowdowns"` // estimated; the basis of the class
	HurtRange unit.Opt[Range]   `json:"hurt_range,omitzero"`
	HarmRange unit.Opt[Range]   `json:"harm_range,omitzero"`
	Certain   unit.Opt[float64] `json:"certain"` // 0 … 1: distance from another class
	Windows   int               `json:"windows"` // number of windows behind it
}

// verdict judges a mean of windows.
func (f Infer) verdict(s Sample, windows int) Verdict {
	v := f.judge(s)
	v.Windows = windows
	return v
}

// judge is by Estimate where the program was seen squeezed, else by Solo.
func (f Infer) judge(s Sample) Verdict {
	v := Verdict{Slowdowns: f.Estimate(s)}
	if !s.Squeezed() {
		return f.alone(s, v)
	}
	v.Class, v.Sensitive = ClassOf(v.Slowdowns)
	hurt, ok := v.Slowdowns.Hurt.Get()
	harm, ok2 := v.Slowdowns.Harm.Get()
	if !ok || !ok2 {
		return v
	}
	v.Certain = unit.Some(apart(max(hurt, harm), HurtLimit))
	if v.Class != Sheep {
		v.Certain = unit.Some(min(v.Certain.Or(0), apart(hurt, harm)))
	}
	return v
}

// alone is the verdict on a program that was never seen squeezed.
func (f Infer) alone(s Sample, v Verdict) Verdict {
	solo := DefaultSolo()
	if hurt, harm, ok := solo.Expect(s, f.DRAM); ok {
		v.Slowdowns.Hurt, v.Slowdowns.Harm = unit.Some(hurt.Expected), unit.Some(harm.Expected)
		v.HurtRange, v.HarmRange = unit.Some(hurt), unit.Some(harm)
	}
	_, v.Sensitive = ClassOf(v.Slowdowns)
	v.Class, v.Certain, _ = solo.Class(s, f.DRAM)
	return v
}

// apart is 0 for equal figures, and goes to 1 as one is many times the other.
func apart(a, b float64) float64 {
	return math.Abs(a-b) / max(a+b, least)
}
