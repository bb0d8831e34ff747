// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"math"
	"time"

	"homenode/internal/unit"
	"homenode/internal/window"
)

// Order is what a bind does first. For a given place of the pages the local access
// ratio is linear in the share of CPU time on each node. So it is best with all CPU
// time where the workload is or with all of it where it goes, never between: with
// in-steps, CPUs are set at one moment, and not a few at a time.
type Order string

// The orders.
const (
	CPUsFirst   Order = "cpus-first"   // CPUs, and the memory follows
	MemoryFirst Order = "memory-first" // the memory, and the CPUs follow
	InSteps     Order = "in-steps"     // memory until CPUs make nothing worse, then CPUs, then the rest
	NotAtAll    Order = "not-at-all"   // every order costs more than it brings
)

// Choice is how the order is chosen.
type Choice string

// The choices.
const (
	ByEstimate      Choice = "by-estimate"
	AlwaysCPUsFirst Choice = "cpus-first" // nothing is estimated, watched or undone
)

const (
	// tolerated is the part by which the local access ratio may fall before a window
	// counts as worse. Less: a window's own noise undoes binds.
	tolerated = 0.05
	// planned is the part by which it may fall in an estimate: half of that, because an
	// estimate is not exact, and a plan up to the limit is undone by any error.
	planned = tolerated / 2
	// priorRate, bytes/s, stands in for the mover until it was measured: an eighth of
	// the default bound, which a loaded host was seen to hold. It is printed, and no
	// harmful decision rests on it: see chosen.
	priorRate = float64(32 * unit.MiB)
	// fewLoads: up to this many counted loads in a window give no ratio; as mao's
	// min_loads.
	fewLoads = 1000
	// longest is the largest estimate: a century means no more to a reader.
	longest = 1000 * time.Hour
)

// Way is a bind on its way: the expectation when it began, and the result. The zero Way
// is that of a bind without an expectation.
type Way struct {
	Order  Order                  `json:"order"`
	Before unit.Value[unit.Ratio] `json:"before_ratio"` // local access ratio; unknown: none is watched
	Source window.LocalSource     `json:"local_source,omitempty"`
	Work   unit.Opt[float64]      `json:"work_per_cycle,omitzero"` // before; see workPerCycle
	End    unit.Ratio             `json:"end_ratio"`               // the ratio that is expected at home
	Bytes  unit.Bytes             `json:"bytes"`                   // to move
	Rate   unit.Value[float64]    `json:"rate_bytes_per_s"`
	Others unit.Bytes             `json:"others_bytes,omitempty"` // of other workloads that may move first
	// Orders are the estimates for cpus-first, memory-first and in-steps. States share
	// it: never change one in place.
	Orders []Estimate `json:"orders,omitempty"`

	// Elapsed is the time since the last window before the bind, by the lengths of
	// windows: setting the clock makes no bind late.
	Elapsed time.Duration `json:"elapsed_ns,omitempty"`
	Moved   unit.Bytes    `json:"moved_bytes,omitempty"`
	Below   time.Duration `json:"below_ns,omitempty"` // of windows in a row that were worse
	Run     int           `json:"run,omitempty"`      // the number of these
	Worst   time.Duration `json:"worst_ns,omitempty"` // the longest such row
	Due     float64       `json:"due_bytes,omitempty"`
	Did     float64       `json:"did_bytes,omitempty"` // of what was due lately; see keepUp
	Late    int           `json:"late,omitempty"`      // windows in a row in which that was too little
	Took    time.Duration `json:"took_ns,omitempty"`   // once over
	Over    bool          `json:"over,omitempty"`
}

// Estimate is the expected result of an order.
type Estimate struct {
	Order Order         `json:"order"`
	Home  time.Duration `json:"home_ns"`  // from the start until all memory is at home
	Below time.Duration `json:"below_ns"` // windows that are worse than before
	Least unit.Ratio    `json:"least"`    // the lowest local access ratio of a window on the way
	// Gain is the increase of the local access ratio over the present one, integrated
	// over the horizon, in seconds; negative: the way costs more than its end brings.
	Gain float64 `json:"gain_s"`
}

// Pace is the measured speed of moving. Each sample halves those before it.
type Pace struct {
	Bytes   float64 `json:"bytes"`
	Seconds float64 `json:"seconds"`
}

func (p Pace) with(bytes unit.Bytes, took time.Duration) Pace {
	return Pace{Bytes: float64(p.Bytes/2) + float64(bytes), Seconds: float64(p.Seconds/2) + took.Seconds()}
}

// rate is unknown until something was measured.
func (p Pace) rate() unit.Opt[float64] { return unit.OptOf(p.Bytes/p.Seconds, p.Seconds > 0) }

// ramp is the local access ratio as memory moves: from no memory at home to all of it.
type ramp struct{ from, to float64 }

func (l ramp) at(x float64) float64 { return l.from + float64((l.to-l.from)*x) }

// reaches is the share of the memory at which a rising ramp reaches v.
func (l ramp) reaches(v float64) float64 {
	if l.from >= v {
		return 0
	}
	return (v - l.from) / (l.to - l.from)
}

// forecast is the basis of all estimates.
type forecast struct {
	cpus    ramp    // all CPU time on the new nodes
	memory  ramp    // CPU time where it is now
	before  float64 // the ratio that must be kept; memory.from is the present one
	wait    float64 // seconds that other workloads' moves may take before its own
	own     float64 // seconds that all of its memory takes
	window  float64 // seconds
	horizon float64 // seconds
}

func (f forecast) all() float64 { return f.wait + f.own }

// floor is the least ratio that is planned.
func (f forecast) floor() float64 { return leastOf(f.before, f.cpus.to, planned) }

// leastOf is the ratio that is less than before by that part. If a workload is bound to
// a place where less will be local, that is for other reasons; then the ratio at its
// end is the limit.
func leastOf(before, end, by float64) float64 { return float64(min(before, end) * (1 - by)) }

// crossing is the share of the memory at home from which CPUs are better off there, too.
func (f forecast) crossing() float64 {
	ahead := f.memory.from - f.cpus.from
	if ahead <= 0 {
		return 0
	}
	gains := (f.cpus.to - f.cpus.from) - (f.memory.to - f.memory.from)
	if gains <= ahead {
		return 1
	}
	return ahead / gains
}

// orders are the three estimates:
//
//  1. CPUs first: the ratio is the share of the memory at home, from the start.
//  2. Memory first: it goes from the present ratio to that of the CPUs that happen to
//     be there when all memory is at home.
//  3. In steps: 2 up to the crossing, 1 from there on.
func (f forecast) orders() []Estimate {
	x := f.crossing()
	return []Estimate{
		f.estimate(CPUsFirst, f.belowCPUs(), f.meanCPUs(), f.gain(0)),
		f.estimate(MemoryFirst, f.belowMemory(1), f.leastMemory(1), f.gain(1)),
		f.estimate(InSteps, f.belowMemory(x), f.leastMemory(x), f.gain(x)),
	}
}

func (f forecast) estimate(o Order, below, least, gain float64) Estimate {
	return Estimate{Order: o, Home: f.windows(f.all()), Below: f.windows(below), Least: unit.Ratio(max(0, min(1, least))), Gain: gain}
}

// windows rounds up to whole windows, the unit of observation.
func (f forecast) windows(seconds float64) time.Duration {
	s := math.Ceil(seconds/f.window-1e-9) * f.window
	if !(s < longest.Seconds()) {
		return longest
	}
	return time.Duration(math.Round(s * 1e9))
}

// meanCPUs is the ratio of the first window with CPUs first, the lowest. A window is
// observed as its mean: if the memory follows within one, that need not be worse at
// all.
func (f forecast) meanCPUs() float64 {
	waits := min(f.window, f.wait) // of the first window
	moves := min(f.window-waits, f.own)
	mean := float64(f.cpus.from*(waits/f.window)) + float64(f.cpus.to*(1-(waits+moves)/f.window))
	if moves > 0 {
		mean += float64((f.cpus.from + f.cpus.at(moves/f.own)) / 2 * (moves / f.window))
	}
	return mean
}

// belowCPUs is how long windows are worse with CPUs first.
func (f forecast) belowCPUs() float64 {
	if f.meanCPUs() >= f.floor() {
		return 0
	}
	return f.wait + float64(f.own*f.cpus.reaches(f.floor()))
}

// leastMemory is the lowest ratio if CPUs come when x of the memory is home.
func (f forecast) leastMemory(x float64) float64 {
	switch x {
	case 0:
		return f.cpus.from
	case 1:
		return min(f.memory.from, f.memory.to)
	}
	return min(f.memory.from, f.memory.at(x), f.cpus.at(x))
}

// belowMemory is how long windows are worse if CPUs come when x of the memory is home.
func (f forecast) belowMemory(x float64) float64 {
	floor, from := f.floor(), x
	switch {
	case f.memory.from < floor:
		from = 0
	case f.memory.at(x) < floor:
		from = (f.memory.from - floor) / (f.memory.from - f.memory.to)
	}
	to := max(x, min(1, f.cpus.reaches(floor)))
	if from >= to {
		return 0
	}
	return float64(f.own*(to-from)) + f.window // CPUs come with the next window
}

// gain is Estimate.Gain if CPUs come when x of the memory is home.
func (f forecast) gain(x float64) float64 {
	now := f.memory.from
	memory := float64((now+f.memory.at(x))/2) - now
	cpus := float64((f.cpus.at(x)+f.cpus.to)/2) - now
	waits := 0.0
	if x == 0 {
		waits = f.cpus.from - now
	}
	return float64(f.wait*waits) + float64(f.own*(float64(x*memory)+float64((1-x)*cpus))) + float64((f.cpus.to-now)*(f.horizon-f.all()))
}

// chosen is the order to take. It does not rely on two things: a mover that was not
// measured, and a move that must wait until it pays. If CPUs first is no worse only
// when the memory follows fast, memory goes first, which measures the mover; and no
// bind is refused for being slow. A workload that is bound to a place where little more
// is local is bound for other reasons, and is not refused for this one.
func (f forecast) chosen(orders []Estimate, measured, waits bool) Order {
	cpus, memory, steps := orders[0], orders[1], orders[2]
	switch {
	case f.cpus.from >= f.floor() || measured && !waits && cpus.Below == 0:
		return CPUsFirst
	case measured && f.cpus.to*(1-tolerated) > f.before && max(cpus.Gain, memory.Gain, steps.Gain) <= 0:
		return NotAtAll
	case f.windows(f.wait+float64(f.own*f.crossing())) == memory.Home:
		return MemoryFirst
	}
	return InSteps
}

// ready says that CPUs are as well off at home now as where they are.
func (f forecast) ready() bool { return f.cpus.from >= f.memory.from }

// estimate is that of the chosen order; memory-first's if none was chosen.
func (w *Way) estimate() Estimate {
	for _, e := range w.Orders {
		if e.Order == w.Order {
			return e
		}
	}
	return Estimate{Order: w.Order}
}

// allowed is how long windows may be worse: as expected, and one window more, because
// the figures of a single window vary.
func (w *Way) allowed() time.Duration { return w.estimate().Below }

// measured says that its estimate rests on measured moves.
func (w *Way) measured() bool { return w.Rate.How == unit.HowMeasured }
