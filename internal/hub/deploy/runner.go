// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"homenode/internal/rollout"
	"homenode/internal/schema"
	"homenode/internal/unit"
)

const (
	// tickEvery is how often bins are looked for.
	tickEvery = 10 * time.Second
	// grace is how long after its end a bin is read: agents send each minute.
	grace = 2 * time.Minute
	// askLimit bounds one question.
	askLimit = time.Minute
	// atOnce bounds the bins that are read in one tick for a service.
	atOnce = 200
)

// Runner carries the rollouts of a folder on.
type Runner struct {
	Folder *Folder
	Store  Asker
	// Away is how long hosts follow orders after the last pull. After a longer absence of all hubs, of
	// the store or of the orders, replicas may no longer be bound; nil: an hour.
	Away func() time.Duration
	// Named says whether the file of orders names a service: a person's word, which ends a rollout.
	Named func(service string) (bool, error)
	Now   func() time.Time
	Log   *slog.Logger
}

// Run goes on until the context ends.
func (r *Runner) Run(ctx context.Context) { Every(ctx, tickEvery, r.Log, "rollouts", r.Tick) }

// Every does something now and after each period until the context ends. The same error is logged once.
func Every(ctx context.Context, period time.Duration, log *slog.Logger, what string, do func(context.Context) error) {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	said := ""
	for {
		text := ""
		if err := do(ctx); err != nil && ctx.Err() == nil {
			if text = err.Error(); text != said {
				log.Error(what, "error", err)
			}
		}
		said = text
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Tick takes all bins that have ended. A rollout that cannot go on does not hold up others.
func (r *Runner) Tick(ctx context.Context) error {
	all, err := r.Folder.All()
	problems := []error{err}
	var going []Rollout
	for _, one := range all {
		if one.State.Ended() {
			continue
		}
		named, err := r.Named(one.Service())
		if err != nil { // hosts get no orders now
			return errors.Join(append(problems, err)...)
		}
		if !named {
			going = append(going, one)
		} else {
			problems = append(problems, r.Folder.Ask(ctx, one.Service(), Asked{At: r.Now(), By: "the file of orders", What: "rollback", Why: "it names the service"}))
		}
	}
	if len(going) == 0 {
		return errors.Join(problems...)
	}
	gap, err := r.Folder.alive(ctx, r.Now())
	problems = append(problems, err)
	for _, one := range going {
		problems = append(problems, r.carry(ctx, one, gap > r.away()))
	}
	return errors.Join(problems...)
}

func (r *Runner) away() time.Duration {
	if r.Away != nil {
		return r.Away()
	}
	return time.Hour
}

// carry takes the bins of one rollout that have ended, one by one. All but the last are of the past:
// nothing is decided by them.
func (r *Runner) carry(ctx context.Context, one Rollout, away bool) error {
	due := r.due(one)
	for n := 0; n < atOnce; n++ {
		bin := len(one.State.Seen)
		if one.State.Phase == rollout.Widening && (away || r.Now().Sub(one.At(bin+1)) > r.away()+one.State.Plan.Bin) {
			return r.take(ctx, one.Service(), bin, func(x *Rollout) { x.State, _ = x.State.Stop(rollout.Away) })
		}
		if bin >= due || one.State.Ended() {
			return nil
		}
		ask, stop := context.WithTimeout(ctx, askLimit)
		seen, err := look(ask, r.Store, one.Service(), one.Indicator, one.At(bin), one.At(bin+1))
		stop()
		if err != nil {
			return fmt.Errorf("rollout of %q: %w", one.Service(), err)
		}
		last := bin == due-1
		err = r.take(ctx, one.Service(), bin, func(x *Rollout) { x.step(seen, last, r.Log) })
		if err != nil {
			return err
		}
		if one, err = r.Folder.Get(one.Service()); err != nil {
			return err
		}
	}
	return nil
}

// due is how many bins have ended long enough ago.
func (r *Runner) due(one Rollout) int {
	return max(0, int(r.Now().Add(-grace).Sub(one.Began)/one.State.Plan.Bin))
}

// take changes a rollout that no other program has taken the bin of.
func (r *Runner) take(ctx context.Context, service string, bin int, do func(*Rollout)) error {
	return r.Folder.change(ctx, service, func(x Rollout, err error) (*Rollout, error) {
		if err != nil || len(x.State.Seen) != bin || x.State.Ended() {
			return nil, err
		}
		do(&x)
		x.stamp(r.Now())
		return &x, nil
	})
}

// step gives the bin to the rollout.
func (x *Rollout) step(s seen, decide bool, log *slog.Logger) {
	at := map[rollout.Replica]instance{}
	for _, i := range s.instances {
		at[i.Replica] = i
	}
	shown, bound := make([]unit.Opt[float64], len(x.State.Plan.Replicas)), make([]float64, len(x.State.Plan.Replicas))
	for i, replica := range x.State.Plan.Replicas {
		shown[i], bound[i] = at[replica].figure, at[replica].bound
	}
	x.How = unit.WeakestKnown(x.How, s.how)
	next, observed, wanted := x.State.Observe(bound)
	x.State, x.Observed = next, unit.OptOf(observed, wanted > 0)
	if !decide {
		x.State = x.State.Watch(shown)
		return
	}
	var events []rollout.Event
	x.State, events = x.State.Step(shown)
	for _, e := range events {
		log.Info("rollout", "service", schema.Name(x.Service()), "code", e.Code, "what", x.Sentence(e))
	}
}
