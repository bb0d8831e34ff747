// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"homenode/internal/unit"
	"homenode/internal/webhook"
)

const (
	mostTries  = 6 // over two hours
	firstRetry = 4 * time.Minute
)

// Webhook tells people what happened to a service.
type Webhook struct{ *webhook.Hook }

// message is what is said of an event.
func (r Rollout) message(i int) webhook.Message {
	e := r.State.Events[i]
	m := webhook.Message{
		Service: r.Service(), By: r.by(), At: r.Times[i], Code: string(e.Code), Sentence: r.Sentence(e),
		Phase: string(r.State.Phase), Bound: e.Bound, Replicas: len(r.State.Plan.Replicas), How: r.How,
	}
	if e.Evidence != nil {
		m.Effect = unit.Some(e.Evidence.Effect)
	}
	return m
}

// Run tells what was not told yet, until the context ends. It is apart from the runner: a webhook
// that hangs holds up nothing.
func (w *Webhook) Run(ctx context.Context, f *Folder, now func() time.Time, log *slog.Logger) {
	Every(ctx, tickEvery, log, "webhook", func(ctx context.Context) error { return w.Tick(ctx, f, now) })
}

// Tick tells of each rollout the oldest event that was not told.
func (w *Webhook) Tick(ctx context.Context, f *Folder, now func() time.Time) error {
	all, _ := f.All() // the runner says what cannot be read
	var problems []error
	for _, r := range all {
		if len(r.Untold) > 0 && !r.Told.Next.After(now()) {
			problems = append(problems, w.tell(ctx, f, r.Service(), now))
		}
	}
	return errors.Join(problems...)
}

// tell claims an event, sends it, and writes down how that went. A program that ends between leaves
// the claim, after which another try follows: an event may be told twice, and is not lost.
func (w *Webhook) tell(ctx context.Context, f *Folder, service string, now func() time.Time) error {
	var m *webhook.Message
	err := f.change(ctx, service, func(r Rollout, err error) (*Rollout, error) {
		for len(r.Untold) > 0 && now().Sub(r.Untold[0].At) > webhook.Stale {
			r.Untold = r.Untold[1:]
			r.Told = Told{Count: r.Told.Count, GivenUp: r.Told.GivenUp + 1, Problem: "it could not be told for a day"}
		}
		if err != nil || len(r.Untold) == 0 || r.Told.Next.After(now()) {
			return &r, err
		}
		m = &r.Untold[0]
		r.Told.Next = now().Add(firstRetry << r.Told.Tries)
		r.Told.Tries++
		return &r, nil
	})
	if err != nil || m == nil {
		return err
	}
	failed := w.Post(ctx, *m)
	err = f.change(ctx, service, func(r Rollout, err error) (*Rollout, error) {
		if err != nil || len(r.Untold) == 0 || r.Untold[0] != *m {
			return nil, err
		}
		switch {
		case failed == nil:
			r.Untold = r.Untold[1:]
			r.Told = Told{Count: r.Told.Count + 1, GivenUp: r.Told.GivenUp}
		case r.Told.Tries >= mostTries:
			r.Untold = r.Untold[1:]
			r.Told = Told{Count: r.Told.Count, GivenUp: r.Told.GivenUp + 1, Problem: failed.Error()}
		default:
			r.Told.Problem = failed.Error()
		}
		return &r, nil
	})
	return errors.Join(failed, err)
}
