// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"homenode/internal/experiment"
	"homenode/internal/rollout"
	"homenode/internal/unit"
)

// Setting is what the services are drawn from. It was fixed before the first rollout was tried.
type Setting struct {
	Replicas int     `json:"replica_count"`
	PerHost  int     `json:"replicas_per_host"`
	Level    float64 `json:"level_ratio"`      // standard deviation of the replicas' own levels
	Daily    float64 `json:"daily_ratio"`      // how much the day's load moves all of them
	Noise    float64 `json:"noise_ratio"`      // of each replica in each bin
	Host     float64 `json:"host_noise_ratio"` // of a host in each bin, which all of its replicas have
	Drift    float64 `json:"drift_ratio"`      // of each replica from bin to bin; it comes back with Return
	Return   float64 `json:"return_ratio"`     // share of its drift that it loses in a bin
	Response float64 `json:"response_ratio"`   // how far one replica's effect is from another's, of the effect
	Missing  float64 `json:"missing_ratio"`    // share of figures that are not there
}

// Check refuses what cannot be drawn.
func (s Setting) Check() error {
	if s.Replicas < 12 || s.Replicas > 10_000 || s.PerHost < 1 || s.PerHost > s.Replicas/6 {
		return fmt.Errorf("%d replicas, %d on a host: want 12 to 10000 replicas on 6 hosts or more", s.Replicas, s.PerHost)
	}
	for name, v := range map[string]float64{"level": s.Level, "daily": s.Daily, "noise": s.Noise, "host noise": s.Host, "drift": s.Drift, "return": s.Return, "response": s.Response, "missing": s.Missing} {
		if !(v >= 0 && v <= 10) {
			return fmt.Errorf("%s %v: want 0 to 10", name, v)
		}
	}
	return nil
}

// Usual are replicas that are 10 % apart, as MAO's fleets are said to be.
func Usual() Setting {
	return Setting{Replicas: 100, PerHost: 1, Level: 0.10, Daily: 0.25, Noise: 0.04, Host: 0.02, Drift: 0.005, Return: 0.1, Response: 0.25, Missing: 0.02}
}

// Outcome is how one rollout went.
type Outcome struct {
	Phase rollout.Phase `json:"phase"`
	Code  rollout.Code  `json:"code"` // of its last event
	// Most is the largest share of the replicas that were bound.
	Most float64 `json:"most_bound_ratio"`
	Gain bool    `json:"gain_proven"`
	Bins int     `json:"bins"`
}

// One tries one rollout. effect is what binding does to the indicator, a latency: -0.1 is a tenth less.
func One(s Setting, p rollout.Plan, effect float64, seed uint64) (Outcome, error) {
	r := rand.New(rand.NewPCG(seed, 2525))
	p.Replicas = make([]rollout.Replica, s.Replicas)
	level, drift, response := make([]float64, s.Replicas), make([]float64, s.Replicas), make([]float64, s.Replicas)
	for i := range p.Replicas {
		p.Replicas[i] = rollout.Replica{Host: "host-" + strconv.Itoa(i/s.PerHost), Workload: "/service/" + strconv.Itoa(i)}
		level[i], response[i] = s.Level*r.NormFloat64(), 1+s.Response*r.NormFloat64()
	}
	p.Seed = seed
	start := r.Float64() * 2 * math.Pi
	state, err := rollout.Begin(p)
	if err != nil {
		return Outcome{}, err
	}
	var o Outcome
	for bin := 0; !state.Ended(); bin++ {
		day := s.Daily * math.Sin(start+2*math.Pi*float64(bin)*p.Bin.Hours()/24)
		shown := make([]unit.Opt[float64], s.Replicas)
		host := 0.0
		for i, bound := range state.Bound() {
			if i%s.PerHost == 0 {
				host = s.Host * r.NormFloat64()
			}
			drift[i] = drift[i]*(1-s.Return) + s.Drift*r.NormFloat64()
			x := level[i] + drift[i] + day + host + s.Noise*r.NormFloat64()
			if bound {
				x += math.Log1p(effect) * response[i]
			}
			if r.Float64() >= s.Missing {
				shown[i] = unit.Some(0.02 * math.Exp(x))
			}
		}
		state, _ = state.Step(shown)
		o.Most = max(o.Most, float64(state.BoundCount())/float64(s.Replicas))
		o.Bins = bin + 1
	}
	o.Phase, o.Code, o.Gain = state.Phase, state.Events[len(state.Events)-1].Code, state.Proven
	return o, nil
}

// Result is what many rollouts of one effect came to.
type Result struct {
	Effect     float64 `json:"effect_ratio"`
	Rollouts   int     `json:"rollout_count"`
	RolledBack float64 `json:"rolled_back_ratio"`
	BeforeHalf float64 `json:"rolled_back_before_half_ratio"` // and fewer than half of the replicas were ever bound
	CalledGain float64 `json:"called_gain_ratio"`
	Completed  float64 `json:"completed_ratio"`
	MedianBins float64 `json:"median_bins"`
	// Codes are the reasons of the ends, by how often.
	Codes map[rollout.Code]int `json:"codes"`
}

// Target is one of what rollouts must hold.
type Target struct {
	Effect float64 `json:"effect_ratio"`
	Name   string  `json:"name"`
	Value  float64 `json:"value_ratio"`
	Limit  float64 `json:"limit_ratio"`
	Met    bool    `json:"met"`
}

// Trials are rollouts of several effects.
type Trials struct {
	Schema  int         `json:"schema"`
	How     unit.Source `json:"how"`
	Setting Setting     `json:"setting"`
	Seed    uint64      `json:"seed"`
	Results []Result    `json:"results"`
	Targets []Target    `json:"targets"`
}

// Missed says that a target is not met.
func (t Trials) Missed() bool {
	return slices.ContainsFunc(t.Targets, func(x Target) bool { return !x.Met })
}

// TrialsSchema is the version of Trials.
const TrialsSchema = 1

// TryAll tries many rollouts of each effect. tell is told how many of all are done.
func TryAll(ctx context.Context, s Setting, p rollout.Plan, effects []float64, many int, seed uint64, tell func(done, all int)) (Trials, error) {
	t := Trials{Schema: TrialsSchema, How: unit.HowModelled, Setting: s, Seed: seed, Results: []Result{}, Targets: []Target{}}
	for i, effect := range effects {
		r, err := Try(ctx, s, p, effect, many, seed, func(done int) { tell(i*many+done, len(effects)*many) })
		if err != nil {
			return t, err
		}
		t.Results = append(t.Results, r)
		t.Targets = append(t.Targets, r.targets()...)
	}
	return t, nil
}

// targets are those of a regression of 3 % and more, of no effect, and of a gain of a tenth and more.
func (r Result) targets() []Target {
	switch {
	case r.Effect >= 0.03:
		return []Target{{r.Effect, "rolled back before half of the replicas", r.BeforeHalf, 0.99, r.BeforeHalf >= 0.99}}
	case r.Effect == 0:
		return []Target{{r.Effect, "called a gain, at most", r.CalledGain, 0.05, r.CalledGain <= 0.05}}
	case r.Effect <= -0.1:
		return []Target{{r.Effect, "completed", r.Completed, 0.95, r.Completed >= 0.95}}
	}
	return nil
}

// Try tries many, with seeds from seed on.
func Try(ctx context.Context, s Setting, p rollout.Plan, effect float64, many int, seed uint64, tell func(done int)) (Result, error) {
	r := Result{Effect: effect, Rollouts: many, Codes: map[rollout.Code]int{}}
	var bins []float64
	var back, early, gain, complete int
	for i := range many {
		if err := ctx.Err(); err != nil {
			return r, err
		}
		o, err := One(s, p, effect, seed+uint64(i))
		if err != nil {
			return r, err
		}
		if o.Phase == rollout.Done {
			complete++
		} else if back++; o.Most < 0.5 {
			early++
		}
		if o.Gain {
			gain++
		}
		r.Codes[o.Code]++
		bins = append(bins, float64(o.Bins))
		tell(i + 1)
	}
	of := func(n int) float64 { return float64(n) / float64(many) }
	r.RolledBack, r.BeforeHalf, r.CalledGain, r.Completed = of(back), of(early), of(gain), of(complete)
	r.MedianBins, _ = experiment.Median(bins)
	return r, nil
}
