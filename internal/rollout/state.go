// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"math"
	"slices"

	"homenode/internal/unit"
)

// Phase is how far a rollout is.
type Phase string

// The phases.
const (
	Before     Phase = "before" // watched, not yet bound
	Widening   Phase = "widening"
	Done       Phase = "done"
	RolledBack Phase = "rolled_back"
)

// Code is the reason of an event.
type Code string

// The codes.
const (
	Starts   Code = "starts"    // the first replicas are bound
	Widens   Code = "widens"    // more harm than the margin is excluded
	Replaces Code = "replaces"  // hosts did not bind, and others take their place in the stage
	Proven   Code = "proven"    // there is a gain
	Complete Code = "complete"  // all are bound, and the gain is proven
	Harm     Code = "harm"      // it is slower
	NoGain   Code = "no_gain"   // none was proven in the time of the last stage that can be compared
	NotSafe  Code = "not_safe"  // harm beyond the margin was not excluded in a stage's time
	Silence  Code = "silence"   // the bound replicas show nothing
	Constant Code = "constant"  // the indicator does not depend on anything
	NewUnit  Code = "new_unit"  // all replicas changed at once by more than any load does
	TooFew   Code = "too_few"   // replicas ended, and what is left cannot be compared
	Veto     Code = "veto"      // its owner said so
	Operator Code = "operator"  // a person said so
	Lost     Code = "lost"      // bound replicas ended more often than others
	NotBound Code = "not_bound" // hosts that were to bind did not
	Away     Code = "away"      // nothing was looked at for longer than orders hold
	TooLong  Code = "too_long"  // it has as many figures as it may
)

// Event is a step of the way, with its evidence.
type Event struct {
	Bin      int       `json:"bin"`
	Code     Code      `json:"code"`
	Stage    int       `json:"stage"`
	Bound    int       `json:"bound_count"` // from now on
	Evidence *Evidence `json:"evidence,omitempty"`
}

// State is a rollout on its way. Whatever ends the program that has it, the next goes on.
type State struct {
	Schema int   `json:"schema"`
	Plan   Plan  `json:"plan"`
	Phase  Phase `json:"phase"`
	Stage  int   `json:"stage"` // index of Plan.Stages; -1 before
	Since  int   `json:"stage_since_bin"`
	Paused bool  `json:"paused"`
	Proven bool  `json:"gain_proven"`
	// Held keeps it from being widened: most of the hosts that were to bind did not.
	Held  bool `json:"held"`
	Looks int  `json:"looks"`
	Next  int  `json:"next_look_bin"`
	// BoundAt is the bin from which each replica is bound, in the order of Plan.Replicas; -1: it is not.
	BoundAt []int `json:"bound_at"`
	// Obeyed says which replicas were seen bound since they are to be; empty: that was never looked at.
	Obeyed []bool `json:"seen_bound,omitempty"`
	// Seen has a logarithm of the indicator for each bin and replica; unknown: the replica showed none.
	Seen   [][]unit.Opt[float64] `json:"seen"`
	Events []Event               `json:"events"`
}

// StateSchema is the version of State.
const StateSchema = 1

// Begin makes the state of a plan.
func Begin(p Plan) (State, error) {
	if err := p.Check(); err != nil {
		return State{}, err
	}
	s := State{Schema: StateSchema, Plan: p, Phase: Before, Stage: -1, BoundAt: make([]int, len(p.Replicas)), Events: []Event{}, Seen: [][]unit.Opt[float64]{}}
	for i := range s.BoundAt {
		s.BoundAt[i] = -1
	}
	return s, nil
}

// Ended says that nothing more will happen.
func (s State) Ended() bool { return s.Phase == Done || s.Phase == RolledBack }

// Bound says which replicas are to be bound now.
func (s State) Bound() []bool {
	all := make([]bool, len(s.BoundAt))
	for i, at := range s.BoundAt {
		all[i] = at >= 0
	}
	return all
}

// BoundCount is how many that are.
func (s State) BoundCount() (n int) {
	for _, at := range s.BoundAt {
		if at >= 0 {
			n++
		}
	}
	return n
}

// Stop ends a rollout for a reason from outside: everything is undone.
func (s State) Stop(why Code) (State, []Event) {
	if s.Phase == RolledBack {
		return s, nil
	}
	return s.back(why, nil)
}

// Observe takes for which share of the next bin each replica was seen bound, before Step takes its
// indicator, and says how many of those that should be were for most of it.
//
//  1. A replica that should be bound and never was, not for a moment, is not compared: its host's own
//     rules forbid it, say. What it shows is no effect of binding, and one among few would hide what the
//     others show.
//  2. Where less than half of those that should be are bound, the rollout is held.
func (s State) Observe(bound []float64) (next State, observed, wanted int) {
	s.Obeyed = slices.Clone(s.Obeyed)
	if s.Obeyed == nil {
		s.Obeyed = make([]bool, len(s.BoundAt))
	}
	for i, at := range s.BoundAt {
		if s.Obeyed[i] = at >= 0 && (s.Obeyed[i] || bound[i] > 0); at < 0 || at+s.Plan.Washout > len(s.Seen) {
			continue
		}
		wanted++
		if bound[i] > 0.5 {
			observed++
		}
	}
	s.Held = 2*observed < wanted
	return s, observed, wanted
}

// apart says that a replica is bound by its orders alone.
func (s State) apart(replica int) bool {
	at := s.BoundAt[replica]
	return at >= 0 && at+s.Plan.Washout <= len(s.Seen) && len(s.Obeyed) > 0 && !s.Obeyed[replica]
}

// Step takes the indicator of every replica in the next bin, unknown where it showed none, and
// decides. The state that it was given stays as it is.
//
//  1. Figures that cannot be are unknown.
//  2. Where nothing can be judged any more, everything is undone: silence, too few replicas, an
//     indicator that is constant or has another unit.
//  3. Harm that is shown ends the rollout, also while it is paused. So do bound replicas that end more
//     often than others: those that are left would look well. Looks come ever more seldom in a stage, each
//     a quarter of its time after the one before: the means that are looked at change as slowly.
//  4. A stage that has lasted long enough is widened once more harm than the margin is excluded, unless
//     bound replicas seem to end more often; the last one that leaves replicas to compare with, once the
//     gain is proven, and still seen, too.
//  5. A stage that is not widened, and in which hosts do not bind, has others in their place.
//  6. A stage that has lasted too long ends the rollout, by what a look shows then.
func (s State) Step(shown []unit.Opt[float64]) (State, []Event) {
	if s.Ended() || len(shown) != len(s.Plan.Replicas) {
		return s, nil
	}
	s = s.clone()
	s.Seen = append(s.Seen, logs(shown)) // 1
	if why := s.broken(); why != "" {    // 2
		return s.back(why, nil)
	}
	if len(s.Seen)*len(shown) > mostFigures {
		return s.back(TooLong, nil)
	}
	switch {
	case s.Phase == Before && len(s.Seen) >= s.Plan.Before && !s.Paused:
		return s.widen(Starts, nil)
	case s.Phase == Before:
		return s, nil
	case s.last(): // nothing is left to compare with
		return s.finish()
	}
	if len(s.Seen) < s.Next {
		return s, nil
	}
	s.Next = len(s.Seen) + max(1, min(len(s.Seen)-s.Since, s.Plan.Longest)/4)
	if end := s.Since + s.Plan.Longest; s.Next > end && len(s.Seen) < end {
		s.Next = end
	}
	bound, others := s.effects()
	e, ok := judge(bound, others, s.Looks+1)
	if !ok {
		return s.late(nil)
	}
	s.Looks++
	var events []Event
	lost := s.lost()
	switch { // 3
	case e.AtLeast > 0:
		return s.back(Harm, &e)
	case lost < harmRate*share(s.Looks):
		return s.back(Lost, &e)
	}
	if !s.Proven && e.GainOver > 0 {
		s.Proven = true
		events = s.note(Proven, &e)
	}
	judged := s.Stage == len(s.Plan.Stages)-2
	good := e.AtMost < s.Plan.Margin && lost > fewLost && (!judged || s.Proven && e.Effect < 0)
	if good && len(s.Seen)-s.Since >= s.Plan.Least && !s.Paused && !s.Held { // 4
		next, more := s.widen(Widens, &e)
		return next, append(events, more...)
	}
	next, more := s.late(&e)
	return next, append(events, more...)
}

// Watch takes a bin and decides nothing: one that was not looked at in time, so that a decision
// about it would be one about the past.
func (s State) Watch(shown []unit.Opt[float64]) State {
	if s.Ended() || len(shown) != len(s.Plan.Replicas) {
		return s
	}
	s = s.clone()
	s.Seen = append(s.Seen, logs(shown))
	return s
}

// Resume ends a pause: the next bin is looked at.
func (s State) Resume() State {
	s.Paused = false
	s.Next = min(s.Next, len(s.Seen)+1)
	return s
}

// Evidence is what can be seen now. Nothing is decided by it, so it is no look.
func (s State) Evidence() (Evidence, bool) {
	if s.Phase != Widening || s.last() {
		return Evidence{}, false
	}
	bound, others := s.effects()
	return judge(bound, others, max(s.Looks, 1))
}

// late is numbers 5 and 6.
func (s State) late(e *Evidence) (State, []Event) {
	switch {
	case s.Paused:
		return s, nil
	case len(s.Seen)-s.Since < s.Plan.Longest:
		return s.replace()
	case s.Held:
		return s.back(NotBound, e)
	case e != nil && e.AtMost < s.Plan.Margin && s.lost() > fewLost:
		return s.back(NoGain, e)
	}
	return s.back(NotSafe, e)
}

// replace binds others in place of those that do not bind.
func (s State) replace() (State, []Event) {
	more := s.missing()
	if s.Held || len(more) == 0 {
		return s, nil
	}
	for _, i := range more {
		s.BoundAt[i] = len(s.Seen)
	}
	s.Next = len(s.Seen) + s.Plan.Washout + 1
	return s, s.note(Replaces, nil)
}

// missing are the replicas of the next hosts of the order, until as many bind as the stage should have, on
// two hosts or more. Hosts to compare with stay.
func (s State) missing() (more []int) {
	order := s.Plan.Order()
	want, left := s.Plan.bound(order, s.Stage), map[string]bool{}
	binding := map[string]bool{}
	for _, i := range order {
		if host := s.Plan.Replicas[i].Host; s.BoundAt[i] < 0 {
			left[host] = true
		} else if !s.apart(i) {
			binding[host] = true
			want--
		}
	}
	for k := 0; k < len(order) && (want > 0 || len(binding) < 2) && len(left) > leastLeft; {
		host := s.Plan.Replicas[order[k]].Host
		for ; k < len(order) && s.Plan.Replicas[order[k]].Host == host; k++ {
			if left[host] {
				more = append(more, order[k])
				binding[host] = true
				want--
			}
		}
		delete(left, host)
	}
	return more
}

func (s State) last() bool { return s.Stage == len(s.Plan.Stages)-1 }

// finish ends it when the last stage was long enough for silence to show.
func (s State) finish() (State, []Event) {
	if len(s.Seen)-s.Since < max(s.Plan.Least, s.Plan.Silent) {
		return s, nil
	}
	s.Phase = Done
	events := s.note(Complete, nil)
	s.Seen = nil
	return s, events
}

func (s *State) note(code Code, e *Evidence) []Event {
	one := Event{Bin: len(s.Seen), Code: code, Stage: s.Stage, Bound: s.BoundCount(), Evidence: e}
	s.Events = append(s.Events, one)
	return []Event{one}
}

func (s State) widen(code Code, e *Evidence) (State, []Event) {
	s.Phase = Widening
	s.Stage++
	s.Since, s.Next = len(s.Seen), len(s.Seen)+s.Plan.Washout+1
	order := s.Plan.Order()
	for _, i := range order[:s.Plan.bound(order, s.Stage)] {
		if s.BoundAt[i] < 0 {
			s.BoundAt[i] = len(s.Seen)
		}
	}
	for _, i := range s.missing() {
		s.BoundAt[i] = len(s.Seen)
	}
	return s, s.note(code, e)
}

func (s State) back(code Code, e *Evidence) (State, []Event) {
	s = s.clone()
	s.Phase = RolledBack
	for i := range s.BoundAt {
		s.BoundAt[i] = -1
	}
	events := s.note(code, e)
	s.Seen = nil // nothing is decided any more
	return s, events
}

func (s State) clone() State {
	s.BoundAt = slices.Clone(s.BoundAt)
	s.Seen = slices.Clip(s.Seen)
	s.Events = slices.Clip(s.Events)
	return s
}

func logs(shown []unit.Opt[float64]) []unit.Opt[float64] {
	all := make([]unit.Opt[float64], len(shown))
	for i, v := range shown {
		if x, ok := v.Get(); ok && x > 0 && !math.IsInf(x, 0) {
			all[i] = unit.Some(math.Log(x))
		}
	}
	return all
}

// String is the state in a line.
func (s State) String() string {
	return fmt.Sprintf("%s: %s, stage %d of %d", s.Plan.Service, s.Phase, s.Stage+1, len(s.Plan.Stages))
}
