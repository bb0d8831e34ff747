// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"fmt"
	"time"

	"homenode/internal/rollout"
	"homenode/internal/unit"
	"homenode/internal/webhook"
)

// Indicator is what replicas are compared by.
type Indicator string

// The indicators, each a column of store.Instances.
const (
	Latency Indicator = "latency" // as the service says: lower is better
	IPC     Indicator = "ipc"     // instructions per cycle: higher is better, but a loop that spins has many
	CPUs    Indicator = "cpus"    // CPU time: lower is better, where the load is the same for all replicas
)

// Indicators are all of them.
var Indicators = []Indicator{Latency, IPC, CPUs}

// column says which figure an indicator is, which column says how it is known, and its direction.
func (i Indicator) column() (figure, how string, lowerIsBetter bool) {
	switch i {
	case IPC:
		return "ipc", "cycles_how", false
	case CPUs:
		return "cpus", "cpu_how", true
	}
	return "latency_s", "latency_how", true
}

// Schema is the version of Rollout.
const Schema = 1

// Rollout is the rollout of one service, as its file has it.
type Rollout struct {
	Schema    int           `json:"schema"`
	Indicator Indicator     `json:"indicator"`
	How       unit.Source   `json:"indicator_how"` // how the figures were known that it was shown: the weakest
	Began     time.Time     `json:"began"`         // when its first bin begins
	State     rollout.State `json:"state"`
	// Asked is what people asked for, oldest first.
	Asked []Asked `json:"asked"`
	// Vetoed keeps the service from being tried again.
	Vetoed bool `json:"vetoed"`
	// Observed is how many of the replicas that should be bound were, in the last bin.
	Observed unit.Opt[int] `json:"observed_bound_count"`
	// Times are when each event of the state happened.
	Times []time.Time `json:"event_times"`
	// Untold are what the webhook was not told yet, oldest first, and Told how that goes.
	Untold []webhook.Message `json:"untold"`
	Told   Told              `json:"told"`
	// Earlier are rollouts of the same service that have ended, oldest first.
	Earlier []Earlier `json:"earlier"`
}

// Asked is what a person asked for.
type Asked struct {
	At   time.Time `json:"at"`
	By   string    `json:"by"`
	What string    `json:"what"`
	Why  string    `json:"why"`
}

// Told says what the webhook was told.
type Told struct {
	Count   int       `json:"told_count"`
	GivenUp int       `json:"given_up_count"`
	Tries   int       `json:"try_count"` // of the oldest that was not told
	Next    time.Time `json:"next_try"`
	Problem string    `json:"problem"` // of the last try; "": none
}

// Earlier is how an earlier rollout ended.
type Earlier struct {
	Began time.Time     `json:"began"`
	Ended time.Time     `json:"ended"`
	Phase rollout.Phase `json:"phase"`
	Code  rollout.Code  `json:"code"`
}

// by is who started it.
func (r Rollout) by() string {
	for i := len(r.Asked) - 1; i >= 0; i-- {
		if r.Asked[i].What == "start" {
			return r.Asked[i].By
		}
	}
	return ""
}

// Service is whose rollout it is.
func (r Rollout) Service() string { return r.State.Plan.Service }

// At is when a bin begins.
func (r Rollout) At(bin int) time.Time {
	return r.Began.Add(time.Duration(bin) * r.State.Plan.Bin)
}

// most bounds what grows with requests and with time.
const (
	mostAsked   = 1000
	mostEarlier = 20
	mostUntold  = 100
)

// stamp says when events happened that have no time yet, and has them told.
func (r *Rollout) stamp(now time.Time) {
	for i := len(r.Times); i < len(r.State.Events); i++ {
		r.Times = append(r.Times, now.UTC().Truncate(time.Second))
		r.Untold = append(r.Untold, r.message(i))
	}
	r.Untold = r.Untold[max(0, len(r.Untold)-mostUntold):]
}

// ask does what a person asks for.
func (r *Rollout) ask(a Asked) error {
	was := r.State.Paused
	switch a.What {
	case "pause", "resume":
		if r.State.Ended() {
			return fmt.Errorf("the rollout of %q has ended (%s)", r.Service(), r.State.Phase)
		}
		if r.State.Paused = a.What == "pause"; r.State.Paused == was {
			return fmt.Errorf("the rollout of %q is %s already", r.Service(), map[bool]string{true: "paused", false: "going on"}[was])
		}
	case "rollback", "veto":
		code := rollout.Operator
		if a.What == "veto" {
			r.Vetoed, code = true, rollout.Veto
		} else if r.State.Phase == rollout.RolledBack {
			return fmt.Errorf("the rollout of %q is rolled back already", r.Service())
		}
		r.State, _ = r.State.Stop(code)
	default:
		return fmt.Errorf("a rollout cannot %q", a.What)
	}
	if a.What == "resume" {
		r.State = r.State.Resume()
	}
	r.note(a)
	r.stamp(a.At)
	return nil
}

func (r *Rollout) note(a Asked) {
	r.Asked = append(r.Asked, a)
	r.Asked = r.Asked[max(0, len(r.Asked)-mostAsked):]
}

// ended is the rollout as one of the earlier ones.
func (r Rollout) ended() []Earlier {
	e := Earlier{Began: r.Began, Phase: r.State.Phase}
	if n := len(r.State.Events); n > 0 {
		e.Code, e.Ended = r.State.Events[n-1].Code, r.Times[n-1]
	}
	all := append(r.Earlier[:len(r.Earlier):len(r.Earlier)], e)
	return all[max(0, len(all)-mostEarlier):]
}

// Order says whether a host may bind a service.
type Order struct {
	Service  string
	Approved bool
}

// approved says on which hosts the service is bound: all, or these.
func (r Rollout) approved() (all bool, hosts map[string]bool) {
	if r.State.Phase == rollout.Done {
		return true, nil
	}
	hosts = map[string]bool{}
	for i, bound := range r.State.Bound() {
		if bound {
			hosts[r.State.Plan.Replicas[i].Host] = true
		}
	}
	return false, hosts
}
