// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"homenode/internal/unit"
)

// PilotWarmup and PilotRepeats are the values with which a pilot runs every
// arm.
const (
	PilotWarmup  = 60.0 // model-seconds
	PilotRepeats = 2    // the fewest that have a spread
)

// Pilot is the result of runs with a long warm-up: how long the mix's warm-up has
// to be, and how many repeats fit in the time. It runs before a comparison, and
// uses no arm's throughput except for its variation.
type Pilot struct {
	Mix    Mix // with the pilot's warm-up and repeats
	Arms   []PilotArm
	Guests int           // at a time
	Budget time.Duration // for a comparison, on the host of the pilot

	Warmup  unit.Opt[float64] // warm-up to commit, model-seconds; unknown: no arm was steady
	Repeats int               // repeats to commit
	Took    time.Duration     // time that a comparison with these would take here
	Fits    bool              // it fits in the budget
}

// PilotArm is one arm of a pilot.
type PilotArm struct {
	Arm    string
	Steady unit.Opt[float64] // model-seconds after which its local access ratio is steady; unknown: never in the pilot
	Local  [][]float64       // the ratio, a list for each repeat, every checkEvery
	Spread unit.Opt[float64] // the widest of its sensitive services, (max − min) / median
	host   hostCost
}

// hostCost is the host's time of runs: for each model-second, and around the
// runs.
type hostCost struct{ perModelSecond, around float64 }

// triedRepeats are the numbers that a pilot chooses from: the largest that
// fits.
var triedRepeats = []int{5, 3, 2}

// NewPilot judges the runs of a pilot.
func NewPilot(m Mix, arms []string, runs []RunResult, guests int, budget time.Duration) Pilot {
	p := Pilot{Mix: m, Guests: guests, Budget: budget}
	for _, arm := range arms {
		of := slices.DeleteFunc(slices.Clone(runs), func(r RunResult) bool { return r.Arm != arm })
		p.Arms = append(p.Arms, pilotArm(m, arm, of))
	}
	p.Warmup = p.longest()
	p.Repeats, p.Took = p.repeats(p.Warmup.Or(m.Warmup))
	p.Fits = p.Took <= budget
	return p
}

func pilotArm(m Mix, arm string, runs []RunResult) PilotArm {
	a := PilotArm{Arm: arm}
	steady, all := 0.0, len(runs) > 0
	for _, r := range runs {
		at, ok := steadyFrom(r.WarmupRatios)
		steady, all = max(steady, at), all && ok
		a.Local = append(a.Local, r.WarmupRatios)
		a.host.around += r.HostAround / float64(len(runs))
		a.host.perModelSecond += (r.HostSeconds - r.HostAround) / (m.Warmup + m.Measure) / float64(len(runs))
	}
	a.Steady = unit.OptOf(steady, all)
	a.Spread = widest(m, runs)
	return a
}

// steadyFrom is the time after which a ratio stays at its final value.
//
//  1. The final value is the mean of the last third.
//  2. Three checks in a row count as one: their mean.
//  3. The ratio is steady from the first check after which no such mean is farther from the
//     final value than steadyWithin. In the last third that is not a finding.
func steadyFrom(ratios []float64) (at float64, ok bool) {
	third := len(ratios) / 3
	if third < steadyOver {
		return 0, false
	}
	end := mean(ratios[len(ratios)-third:]) // 1
	from := 0
	for i := 0; i+steadyOver <= len(ratios); i++ {
		if math.Abs(mean(ratios[i:i+steadyOver])-end) > steadyWithin { // 2
			from = i + 1
		}
	}
	return float64(from+1) * checkEvery, from < len(ratios)-third // 3
}

func mean(values []float64) (m float64) {
	for _, v := range values {
		m += v / float64(len(values))
	}
	return m
}

// widest is the widest spread of an arm's sensitive services.
func widest(m Mix, runs []RunResult) unit.Opt[float64] {
	if len(runs) < 2 {
		return unit.None[float64]()
	}
	spread := 0.0
	for i, w := range m.Workloads {
		if w.Kind == Sensitive {
			spread = max(spread, serviceOf(w, runs, i).Spread.RelativeSpread())
		}
	}
	return unit.Some(spread)
}

// longest is the longest warm-up that an arm needs, in whole checks. Arms that
// were never steady are ignored: no warm-up that there is time for would be
// enough.
func (p Pilot) longest() unit.Opt[float64] {
	longest, any := 0.0, false
	for _, a := range p.Arms {
		if at, ok := a.Steady.Get(); ok {
			longest, any = max(longest, at), true
		}
	}
	return unit.OptOf(longest, any)
}

// repeats is the largest number that fits in the budget, and at least two.
func (p Pilot) repeats(warmup float64) (n int, took time.Duration) {
	round := 0.0
	for _, a := range p.Arms {
		round += a.host.around + a.host.perModelSecond*(warmup+p.Mix.Measure)
	}
	for _, n = range triedRepeats {
		if took = time.Duration(float64(n) * round / float64(max(1, p.Guests)) * float64(time.Second)); took <= p.Budget {
			break
		}
	}
	return n, took
}

// String is the readable form, with the values to commit.
func (p Pilot) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "Pilot of mix %s: every arm %d times, %.0f model-seconds of warm-up.\n\n", p.Mix.Name, p.Mix.Repeats, p.Mix.Warmup)
	for _, a := range p.Arms {
		fmt.Fprintf(&out, "%s: %s; spread of its sensitive services %s; %.1f s of the host per model-second\n",
			Title(a.Arm), steadyWords(a, p.Mix), percentOr(a.Spread), a.host.perModelSecond)
		for i, ratios := range a.Local {
			fmt.Fprintf(&out, "  repeat %d, local access ratio every %.0f model-s: %s\n", i+1, checkEvery, ratioList(ratios))
		}
	}
	return out.String() + "\n" + p.advice()
}

func steadyWords(a PilotArm, m Mix) string {
	if at, ok := a.Steady.Get(); ok {
		return fmt.Sprintf("steady from %.0f model-s on", at)
	}
	return fmt.Sprintf("not steady in %.0f model-s", m.Warmup)
}

func percentOr(o unit.Opt[float64]) string {
	v, ok := o.Get()
	if !ok {
		return "unknown"
	}
	return fmt.Sprintf("%.1f %%", 100*v)
}

func ratioList(ratios []float64) string {
	var words []string
	for _, r := range ratios {
		words = append(words, fmt.Sprintf("%.2f", r))
	}
	return strings.Join(words, " ")
}

// advice is what to commit, and the objections to it.
func (p Pilot) advice() string {
	warmup, ok := p.Warmup.Get()
	if !ok {
		return "Nothing to commit: no arm was steady. Run a longer pilot: --warmup.\n"
	}
	text := fmt.Sprintf("To commit, for all arms:\n\n  warmup_model_seconds: %.0f\n  repeats: %d\n\nA comparison then takes about %s here",
		warmup, p.Repeats, p.Took.Round(time.Minute))
	if p.Fits {
		text += ".\n"
	} else {
		text += fmt.Sprintf(", which is more than the budget of %s.\n", p.Budget)
	}
	var restless []string
	for _, a := range p.Arms {
		if !a.Steady.Known() {
			restless = append(restless, Title(a.Arm))
		}
	}
	if len(restless) > 0 {
		text += fmt.Sprintf("Not steady at the end of that warm-up: %s. 'make bench-peers' measures peers after %.0f model-s.\n",
			strings.Join(restless, "; "), PeersWarmup)
	}
	return text
}

// PeersWarmup is the warm-up of peers once per release, in model-seconds.
const PeersWarmup = 120.0
