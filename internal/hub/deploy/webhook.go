// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"text/template"
	"time"

	"homenode/internal/kernel/unix"
	"homenode/internal/rollout"
	"homenode/internal/unit"
)

// Message is what a webhook is sent, as JSON. Text is what its template made of the rest.
type Message struct {
	Text     string            `json:"text"`
	Service  string            `json:"service"`
	By       string            `json:"by"` // who started it
	At       time.Time         `json:"at"`
	Code     rollout.Code      `json:"code"`
	Sentence string            `json:"sentence"`
	Phase    rollout.Phase     `json:"phase"`
	Bound    int               `json:"bound_count"`
	Replicas int               `json:"replica_count"`
	Effect   unit.Opt[float64] `json:"effect_ratio"` // above 0 is worse
	How      unit.Source       `json:"indicator_how"`
}

// UsualMessage is the template where none is configured.
const UsualMessage = "homenode, rollout of {{.Service}}: {{.Sentence}}."

const (
	postLimit  = 10 * time.Second
	mostTries  = 6 // over two hours
	firstRetry = 4 * time.Minute
	mostText   = 16 << 10
	staleAfter = 24 * time.Hour // what could not be told for so long is no news
)

// Webhook tells people what happened to a service.
type Webhook struct {
	to     string
	text   *template.Template
	client *http.Client
}

// NewWebhook refuses an address that would carry names in the clear, and a template that fails.
func NewWebhook(to, text string) (*Webhook, error) {
	u, err := url.Parse(to)
	if err != nil || u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || !unix.ThisHost(u.Hostname())) {
		return nil, errors.New("want an address with https, or with http on this host")
	}
	if text == "" {
		text = UsualMessage
	}
	t, err := template.New("message").Option("missingkey=error").Parse(text)
	if err == nil {
		err = t.Execute(io.Discard, Message{})
	}
	if err != nil {
		return nil, fmt.Errorf("the message: %w", err)
	}
	return &Webhook{to: to, text: t, client: &http.Client{
		Timeout:       postLimit,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// message is what is said of an event.
func (r Rollout) message(i int) Message {
	e := r.State.Events[i]
	m := Message{
		Service: r.Service(), By: r.by(), At: r.Times[i], Code: e.Code, Sentence: r.Sentence(e),
		Phase: r.State.Phase, Bound: e.Bound, Replicas: len(r.State.Plan.Replicas), How: r.How,
	}
	if e.Evidence != nil {
		m.Effect = unit.Some(e.Evidence.Effect)
	}
	return m
}

// post sends one message.
func (w *Webhook) post(ctx context.Context, m Message) error {
	var text strings.Builder
	if err := w.text.Execute(&text, m); err != nil {
		return fmt.Errorf("the message: %w", err)
	}
	m.Text = text.String()[:min(text.Len(), mostText)]
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.to, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := w.client.Do(r)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) { // the address may have a secret in it
			err = u.Err
		}
		return fmt.Errorf("tell the webhook: %w", err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("tell the webhook: it answered with status %d", answer.StatusCode)
	}
	return nil
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
	var m *Message
	err := f.change(ctx, service, func(r Rollout, err error) (*Rollout, error) {
		for len(r.Untold) > 0 && now().Sub(r.Untold[0].At) > staleAfter {
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
	failed := w.post(ctx, *m)
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
