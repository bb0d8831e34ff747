// SPDX-License-Identifier: Apache-2.0

// Package webhook tells people what happened to a service that is rolled out, by a POST to an address
// that they name.
package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"text/template"
	"time"

	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
)

// Message is what is sent, as JSON. Text is what the template made of the rest.
type Message struct {
	Text     string            `json:"text"`
	Service  string            `json:"service"`
	By       string            `json:"by"` // who started it; of one host: its name
	At       time.Time         `json:"at"`
	Code     string            `json:"code"`
	Sentence string            `json:"sentence"`
	Phase    string            `json:"phase"`
	Bound    int               `json:"bound_count"`
	Replicas int               `json:"replica_count"`
	Effect   unit.Opt[float64] `json:"effect_ratio"` // above 0 is worse
	How      unit.Source       `json:"indicator_how"`
}

// UsualText is the template where none is given.
const UsualText = "homenode, rollout of {{.Service}}: {{.Sentence}}."

// Stale is the age from which an event that could not be told is no news.
const Stale = 24 * time.Hour

const (
	postLimit = 10 * time.Second
	mostText  = 16 << 10
)

// Hook is an address, and a template.
type Hook struct {
	to     string
	text   *template.Template
	Client *http.Client
}

// New refuses an address that would carry names in the clear, and a template that fails. No text is
// the usual one.
func New(to, text string) (*Hook, error) {
	u, err := url.Parse(to)
	if err != nil || u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || !unix.ThisHost(u.Hostname())) {
		return nil, errors.New("want an address with https, or with http on this host")
	}
	if text == "" {
		text = UsualText
	}
	t, err := template.New("message").Option("missingkey=error").Parse(text)
	if err == nil {
		err = t.Execute(io.Discard, Message{})
	}
	if err != nil {
		return nil, fmt.Errorf("the message: %w", err)
	}
	return &Hook{to: to, text: t, Client: &http.Client{
		Timeout:       postLimit,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Post sends one message, within ten seconds. Redirects are refused, and no error has the address,
// which may have a secret in it.
func (h *Hook) Post(ctx context.Context, m Message) error {
	var text strings.Builder
	if err := h.text.Execute(&text, m); err != nil {
		return fmt.Errorf("the message: %w", err)
	}
	m.Text = text.String()[:min(text.Len(), mostText)]
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.to, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := h.Client.Do(r)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
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
