// SPDX-License-Identifier: Apache-2.0

package brm

import (
	"fmt"
	"time"

	"homenode/internal/unit"
)

// Scope says whose penalty a thread minimises.
type Scope string

// The scopes. The paper's is ScopeSystem: a thread that gains less than it costs the others
// goes elsewhere. But in a sum over N threads, a thread's own effect is one part in N, and
// the moves of the others are noise: with 16 threads it hardly learns. ScopeThread, the
// default, relaxes the sum completely (docs/decisions/0019-brm.md).
const (
	ScopeSystem   Scope = "system"   // the mean over all threads
	ScopeWorkload Scope = "workload" // the mean over its workload's threads
	ScopeThread   Scope = "thread"   // its own
)

// Full says what to do with a thread whose target node has no CPU as free as its present
// one.
type Full string

// The values of Full.
const (
	// FullSwap: swap with a thread that loses less by it than this one gains. If there is
	// none, go where the kernel can make room: there is a thread with less to lose, or this
	// thread's node has more threads than CPUs anyway. Else stay. Threads that explore go.
	FullSwap     Full = "swap"
	FullSwapOnly Full = "swap-only" // without a partner, stay
	FullStay     Full = "stay"
	FullGo       Full = "go" // to the least loaded CPU, whatever its load; the kernel makes room (paper)
)

// Config has the paper's constants, and settings for what it leaves open. Constants of the
// paper are marked; the others are our choice.
type Config struct {
	// Period is the time between windows for Step: 10 ms (paper). Shorter periods cost more
	// than they tell: few requests, cold caches. Above 100 ms HalfLife, Forget, TrialLength
	// and TrialEvery are lengthened: each lasts at least a certain number of periods
	// (atPeriod).
	Period time.Duration `yaml:"period" json:"period_ns"`
	// Seed of the random draws of a State that has none yet.
	Seed uint64 `yaml:"seed" json:"seed"`

	// The penalty.
	Scope Scope `yaml:"scope" json:"scope"`
	// MinRequests is the least number of requests in a period for a penalty; with fewer the
	// last one is kept.
	MinRequests uint64 `yaml:"min_requests" json:"min_requests"`
	// Stale is the greatest age of a thread's penalty in a sum: how far the sum is relaxed.
	Stale time.Duration `yaml:"stale" json:"stale_ns"`

	// Bias and probability, in points of 100.
	InitialProb int `yaml:"initial_prob" json:"initial_prob"`
	ResetProb   int `yaml:"reset_prob" json:"reset_prob"` // after a move
	Rise        int `yaml:"rise" json:"rise"`             // per period that is worse than the best node: 1 (paper)
	Fall        int `yaml:"fall" json:"fall"`             // per period that is not: 1 (paper)
	// Margin is how much better another node must be: 0 (paper). Below the natural
	// variation of a penalty, threads move back and forth between nodes that are alike.
	Margin float64 `yaml:"margin" json:"margin"`
	// MinStall: a thread stays if it waits for less than this share of its cycles, as it
	// has too little to gain.
	MinStall unit.Ratio `yaml:"min_stall" json:"min_stall"`

	// Memory of nodes.
	Smoothing float64       `yaml:"smoothing" json:"smoothing"` // weight of the newest period, (0,1]: 1 (paper)
	Settle    int           `yaml:"settle" json:"settle"`       // periods after a move that do not count, as caches are cold
	Samples   int           `yaml:"samples" json:"samples"`     // periods that count before the next move
	HalfLife  time.Duration `yaml:"half_life" json:"half_life_ns"`
	// Forget is the time after which a node that was not visited is unknown again. It
	// doubles with each visit that finds the node no better, to at most 64-fold.
	Forget time.Duration `yaml:"forget" json:"forget_ns"`
	// Change and ChangePeriods: a thread that is worse than it was by Change, for that many
	// periods in a row, forgets what it knows of other nodes. Other threads that explore,
	// and leave again, are no change.
	Change        float64 `yaml:"change" json:"change"`
	ChangePeriods int     `yaml:"change_periods" json:"change_periods"`

	// Exploration of unknown nodes.
	ExploreChance int           `yaml:"explore_chance" json:"explore_chance"` // of 100, per period
	ExploreEvery  time.Duration `yaml:"explore_every" json:"explore_every_ns"`
	ExploreNodes  int           `yaml:"explore_nodes" json:"explore_nodes"` // number of nearest nodes; 0: all
	// Explorers is the share of candidates that may explore at a time (one always may). The
	// others then still see a machine at rest.
	Explorers unit.Ratio `yaml:"explorers" json:"explorers"`

	// Placement.
	// Hold: threads stay tied to their node where it has a CPU for each. Without it the
	// kernel may move them.
	Hold     bool `yaml:"hold" json:"hold"`
	WhenFull Full `yaml:"when_full" json:"when_full"`
	MaxMoves int  `yaml:"max_moves" json:"max_moves"` // threads per period, a swap counts as two; 0: no limit

	// Which workloads are candidates, where the operator does not say; see infer.go.
	Infer        bool          `yaml:"infer" json:"infer"`
	MinGain      unit.Ratio    `yaml:"min_gain" json:"min_gain"`           // of its cycles, between its nodes; a single move needs half of it
	InferPeriods int           `yaml:"infer_periods" json:"infer_periods"` // in a row, before a verdict
	TrialThreads int           `yaml:"trial_threads" json:"trial_threads"` // that explore in a trial; 0: no trials
	TrialLength  time.Duration `yaml:"trial_length" json:"trial_length_ns"`
	TrialEvery   time.Duration `yaml:"trial_every" json:"trial_every_ns"` // doubling, to at most 64-fold

	// RefusedFor is how long a thread is left alone after its move was refused, doubling, to
	// at most 64-fold.
	RefusedFor time.Duration `yaml:"refused_for" json:"refused_for_ns"`
}

// DefaultConfig returns the defaults; decode a file over it.
func DefaultConfig() Config {
	return Config{
		Period: 10 * time.Millisecond, Seed: 1,
		Scope: ScopeThread, MinRequests: 100, Stale: time.Second,
		Rise: 5, Fall: 5, Margin: 0.05, MinStall: 0.05,
		Smoothing: 0.25, Settle: 2, Samples: 3, HalfLife: 10 * time.Second, Forget: 30 * time.Second, Change: 0.25, ChangePeriods: 50,
		ExploreChance: 10, ExploreEvery: 100 * time.Millisecond, ExploreNodes: 8, Explorers: 0.25,
		WhenFull: FullSwap,
		Infer:    true, MinGain: 0.03, InferPeriods: 5, TrialThreads: 2, TrialLength: 2 * time.Second, TrialEvery: 30 * time.Second,
		RefusedFor: time.Second,
	}
}

// Learning takes a number of periods, however long they are: a visit to a node takes Settle
// and Samples of them, and some ten more until a draw starts it. If the durations were
// shorter than that, the thread would forget one node before it has seen another. At 100 ms
// and below the defaults are long enough.
const (
	halfLifePeriods   = 100
	forgetPeriods     = 300
	trialPeriods      = 50
	trialEveryPeriods = 300
)

// atPeriod makes durations long enough for windows of this length.
func (c Config) atPeriod(length time.Duration) Config {
	length = min(max(0, length), longest/forgetPeriods)
	c.HalfLife = max(c.HalfLife, halfLifePeriods*length)
	c.Forget = max(c.Forget, forgetPeriods*length)
	c.TrialLength = max(c.TrialLength, trialPeriods*length)
	c.TrialEvery = max(c.TrialEvery, trialEveryPeriods*length)
	return c
}

// Validate names the setting that is out of range, and its range, in one sentence.
func (c Config) Validate() error {
	switch {
	case c.Scope != ScopeSystem && c.Scope != ScopeWorkload && c.Scope != ScopeThread:
		return fmt.Errorf("brm: scope is %q: it must be system, workload or thread", c.Scope)
	case c.WhenFull != FullSwap && c.WhenFull != FullSwapOnly && c.WhenFull != FullStay && c.WhenFull != FullGo:
		return fmt.Errorf("brm: when_full is %q: it must be swap, swap-only, stay or go", c.WhenFull)
	case !(c.Smoothing > 0 && c.Smoothing <= 1):
		return fmt.Errorf("brm: smoothing is %g: it must be above 0, and 1 at most", c.Smoothing)
	}
	for _, err := range []error{c.durations(), c.points(), c.counts(), c.shares()} {
		if err != nil {
			return err
		}
	}
	return nil
}

func (c Config) durations() error {
	for _, d := range []struct {
		name  string
		value time.Duration
		least time.Duration
	}{
		{"period", c.Period, time.Millisecond}, {"stale", c.Stale, 0}, {"half_life", c.HalfLife, time.Millisecond},
		{"forget", c.Forget, time.Millisecond}, {"explore_every", c.ExploreEvery, 0}, {"trial_length", c.TrialLength, 0},
		{"trial_every", c.TrialEvery, 0}, {"refused_for", c.RefusedFor, 0},
	} {
		if d.value < d.least || d.value > longest {
			return fmt.Errorf("brm: %s is %v: it must be between %v and %v", d.name, d.value, d.least, longest)
		}
	}
	return nil
}

// longest is a duration that can be doubled six times and added up.
const longest = 365 * 24 * time.Hour

func (c Config) points() error {
	for _, p := range []struct {
		name         string
		value, least int
	}{
		{"initial_prob", c.InitialProb, 0}, {"reset_prob", c.ResetProb, 0}, {"rise", c.Rise, 1}, {"fall", c.Fall, 0},
		{"explore_chance", c.ExploreChance, 0},
	} {
		if p.value < p.least || p.value > certain {
			return fmt.Errorf("brm: %s is %d: it must be between %d and %d", p.name, p.value, p.least, certain)
		}
	}
	return nil
}

// certain is a probability of one, in points.
const certain = 100

func (c Config) counts() error {
	for _, n := range []struct {
		name         string
		value, least int
	}{
		{"settle", c.Settle, 0}, {"samples", c.Samples, 1}, {"change_periods", c.ChangePeriods, 1}, {"explore_nodes", c.ExploreNodes, 0}, {"max_moves", c.MaxMoves, 0},
		{"infer_periods", c.InferPeriods, 1}, {"trial_threads", c.TrialThreads, 0},
	} {
		if n.value < n.least || n.value > manyPeriods {
			return fmt.Errorf("brm: %s is %d: it must be between %d and %d", n.name, n.value, n.least, manyPeriods)
		}
	}
	return nil
}

// manyPeriods bounds counters, so that they fit what holds them.
const manyPeriods = 1 << 30

func (c Config) shares() error {
	for _, s := range []struct {
		name  string
		value float64
		most  float64
	}{
		{"margin", c.Margin, 10}, {"change", c.Change, 10}, {"min_stall", float64(c.MinStall), 1},
		{"explorers", float64(c.Explorers), 1}, {"min_gain", float64(c.MinGain), 1},
	} {
		if !(s.value >= 0 && s.value <= s.most) {
			return fmt.Errorf("brm: %s is %g: it must be between 0 and %g", s.name, s.value, s.most)
		}
	}
	return nil
}
