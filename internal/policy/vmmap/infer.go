// SPDX-License-Identifier: Apache-2.0

package vmmap

import (
	"fmt"
	"math"

	"homenode/internal/machine"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// Infer is how classes are read from counters. Times are in the latency of a hit in the
// last-level cache, on the own node. Defaults were fitted in the simulator (decision 0020).
type Infer struct {
	DRAM   float64 `yaml:"dram" json:"dram"`     // a read from memory next to it
	Remote float64 `yaml:"remote" json:"remote"` // the same at a SLIT distance of 20, × DRAM
	// The references of Slowdowns: lines a cycle that a CPU of the devil brings in, and
	// accesses a cycle of a CPU of the rabbit while all are hits.
	DevilRate  float64 `yaml:"devil_rate" json:"devil_rate"`
	RabbitRate float64 `yaml:"rabbit_rate" json:"rabbit_rate"`
	// Crowd is by how much reads from memory take longer beside the reference devil; beside
	// others in proportion to what they read.
	Crowd float64 `yaml:"crowd" json:"crowd"`
	// Scales correct what the estimates leave out; fitted, see decision 0020. What
	// HurtScale corrects is that not all lines are asked for alike: where the response to
	// cache was seen (Curve) that is known, and it is 1.
	HurtScale   float64 `yaml:"hurt_scale" json:"hurt_scale"`
	HarmScale   float64 `yaml:"harm_scale" json:"harm_scale"`
	RemoteScale float64 `yaml:"remote_scale" json:"remote_scale"`

	Weight  float64 `yaml:"weight" json:"weight"`   // of a new window in the mean; less: slower, steadier
	Windows int     `yaml:"windows" json:"windows"` // until a class is said, and in a row until another is
	// A behaviour has changed when requests an instruction differ from the mean by more
	// than Change, for Changed windows in a row.
	Change  float64 `yaml:"change" json:"change"`
	Changed int     `yaml:"changed" json:"changed"`
}

func defaultInfer() Infer {
	return Infer{
		DRAM: 3, Remote: 1 + machine.SLITExcess, DevilRate: 0.2, RabbitRate: 0.02, Crowd: 0.4,
		HurtScale: 0.65, HarmScale: 1.1, RemoteScale: 0.75,
		Weight: 0.3, Windows: 3, Change: 0.25, Changed: 3,
	}
}

// mostConstant is more than any machine has.
const mostConstant = 1e6

func (f Infer) validate() error {
	for _, p := range []struct {
		name string
		is   float64
	}{
		{"dram", f.DRAM - 1}, {"remote", f.Remote - 1}, {"devil_rate", f.DevilRate}, {"rabbit_rate", f.RabbitRate}, {"crowd", f.Crowd},
		{"hurt_scale", f.HurtScale}, {"harm_scale", f.HarmScale}, {"remote_scale", f.RemoteScale}, {"weight", f.Weight}, {"change", f.Change},
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

// Sample is what one window says of a workload, or the mean of several. Per cycle of a
// CPU unless it says otherwise.
type Sample struct {
	Requests unit.Opt[float64] `json:"requests"` // that left the private caches
	Loads    unit.Opt[float64] `json:"loads"`    // from memory
	Remote   unit.Opt[float64] `json:"remote"`   // share of them from another node
	Far      unit.Opt[float64] `json:"far"`      // how far that is, in local distances beyond the own
	Waits    unit.Opt[float64] `json:"waits"`    // cycles waiting for requests, else for memory at all
	Held     unit.Opt[float64] `json:"held"`     // bytes of a last-level cache, of each that it uses
	// Low and High bound Held where that is not counted (Bounds).
	Low   unit.Opt[float64] `json:"low,omitzero"`
	High  unit.Opt[float64] `json:"high,omitzero"`
	Cache unit.Opt[float64] `json:"cache"` // bytes that such a one has
	// Curve is what hits where more or less is held, of all windows of this behaviour.
	Curve Curve `json:"curve,omitempty"`
	// Intensity is requests an instruction: what changes with behaviour, and with no
	// neighbour and no distance. Where requests are not counted it is unknown.
	Intensity unit.Opt[float64] `json:"intensity"`
}

// mostWaits is cycles of waiting a cycle: 1, and what multiplexing may be off by.
const mostWaits = 1.5

// fewRequests are so many a cycle that a program that waits for none of them has a counter that does
// not work.
const fewRequests = 1e-5

// SampleOf is one window of a workload, that ran there.
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

// mix is the mean of what was and what is new; what is unknown now stays as it was.
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
		Requests: one(s.Requests, now.Requests), Loads: one(s.Loads, now.Loads), Remote: one(s.Remote, now.Remote), Far: one(s.Far, now.Far), Waits: one(s.Waits, now.Waits),
		Held: one(s.Held, now.Held), Low: one(s.Low, now.Low), High: one(s.High, now.High), Cache: one(s.Cache, now.Cache), Curve: s.Curve.withWindow(now, weight), Intensity: one(s.Intensity, now.Intensity),
	}
}

// Estimate is what Slowdowns would be, from counters alone:
//
//  1. Waiting is hits × 1 + reads from memory × DRAM (remote ones × Remote at a distance
//     of 20; more, the farther they are; where it is unknown how far, as if at 20), each
//     divided by how many are under way at once. As all of it was counted, that gives
//     the cycles that one unit of latency costs.
//  2. Remote: if all reads came from distance 20, against all from the own node, both
//     with the reads that are left when it has the cache alone, where that is known.
//  3. Where it was seen with more and with less of the cache, what would hit is between
//     what did (Curve). Else its footprint is what it holds of the cache / its share of
//     hits: of lines that are asked for alike, as many hit as are there. No hits: endless.
//  4. A cache that two use fills in proportion to what each brings in. Beside the
//     reference devil the workload holds what that leaves it; Hurt is hits it has alone
//     that it has not then, and all reads from memory waiting for the devil's.
//  5. Harm is the same with the reference rabbit as the victim.
//
// Unknown what its counters do not tell. Waits and requests tell 1; occupancy 3.
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
	scale := f.HurtScale
	if p.curve != nil {
		scale = 1
	}
	out.Hurt = unit.Some(scale * p.unit * p.requests * longer / quiet)
	misses, reads := f.besideRabbit(p) // 5
	slower := float64(f.DRAM*(1+float64(f.Crowd*min(1, reads/f.DevilRate)))) - 1
	out.Harm = unit.Some(f.HarmScale * misses * slower)
	return out
}

// Lost is the share of its time that a program would not need with the whole cache to
// itself and all of its memory on its own node, as far as its counters tell.
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

// remote is number 2: so many reads, of a time with all of them near.
func (f Infer) remote(p program, loads, time float64) unit.Opt[float64] {
	return unit.Some(f.RemoteScale * p.unit * loads * f.DRAM * (f.Remote - 1) / time)
}

// least keeps quotients finite.
const least = 1e-9

// program is a sample in the terms of Estimate, per cycle.
type program struct {
	requests, loads, hits float64 // hits as a share of requests
	unit                  float64 // cycles that a unit of latency costs
	local                 float64 // cycles it would take with all reads from its own node
	shares                bool    // what follows is known
	cache, footprint      float64
	curve                 Curve // of two points and more
}

// program is numbers 1 and 3 of Estimate. Loads beyond the requests are prefetches that
// were not counted there: requests then are as many.
func (f Infer) program(s Sample) (program, bool) {
	waits, ok := s.Waits.Get()
	loads, ok2 := s.Loads.Get()
	if !ok || !ok2 {
		return program{}, false
	}
	requests, counted := s.Requests.Get()
	p := program{requests: max(requests, loads), loads: loads}
	remote := float64(loads * s.Remote.Or(0))
	longer := float64((f.Remote - 1) * s.Far.Or(1)) // of a read that is remote, × DRAM
	memory := float64((loads-remote)*f.DRAM) + float64(remote*f.DRAM*(1+longer))
	if all := p.requests - loads + memory; all > 0 {
		p.unit = waits / all
	}
	p.local = max(least, 1-float64(p.unit*remote*f.DRAM*longer))
	if p.requests > 0 {
		p.hits = 1 - loads/p.requests
	}
	held, ok := s.Held.Get()
	cache, ok2 := s.Cache.Get()
	if p.shares = ok && ok2 && counted; p.shares {
		p.cache, p.footprint = cache, math.Inf(1)
		if p.hits > 0 {
			p.footprint = max(held, least) / p.hits
		}
		if s.Curve.tells() {
			p.curve = s.Curve
			p.footprint = float64(cache * p.curve.whole())
		}
	}
	return p, true
}

// hitsWith so many bytes of cache.
func (p program) hitsWith(held float64) float64 {
	if p.curve != nil {
		return p.curve.at(held / p.cache)
	}
	if p.footprint <= held {
		return 1
	}
	return held / p.footprint
}

// brings is the lines that it brings in, holding so many bytes, with all of its memory on
// its own node.
func (p program) brings(held float64) float64 {
	return float64(p.requests * (1 - p.hitsWith(held)) / p.local)
}

// besideDevil is what the program holds of a cache that the reference devil uses, too.
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

// fill is where a share of the cache stays: more grows by what it brings in, less what
// the other does. grows falls with what it holds.
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

// Verdict is what a workload is taken for, and how sure that is.
type Verdict struct {
	Class     Class             `json:"class"`
	Sensitive unit.Opt[bool]    `json:"sensitive"`
	Slowdowns Slowdowns         `json:"slowdowns"` // estimated; what it comes from
	Certain   unit.Opt[float64] `json:"certain"`   // 0 … 1: how far from where it would be another class
	Windows   int               `json:"windows"`   // that it comes from
}

// verdict of a mean of windows.
func (f Infer) verdict(s Sample, windows int) Verdict {
	v := f.judged(s)
	v.Windows = windows
	return v
}

// judge is the verdict of what it holds of a cache, if that is known.
func (f Infer) judge(s Sample) Verdict {
	v := Verdict{Slowdowns: f.Estimate(s)}
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

// apart is 0 for equals, and goes to 1 as one is many times the other.
func apart(a, b float64) float64 {
	return math.Abs(a-b) / max(a+b, least)
}
