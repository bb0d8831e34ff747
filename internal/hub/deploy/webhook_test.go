// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"homenode/internal/rollout"
	"homenode/internal/webhook"
)

// Each step is told once, in order, with the configured text.
func TestWebhook(t *testing.T) {
	t.Parallel()
	var got []webhook.Message
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var m webhook.Message
		body, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(body, &m); err != nil || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %v", body, err)
		}
		got = append(got, m)
	}))
	defer server.Close()
	hook, err := webhook.New(server.URL, "{{.By}}: {{.Service}} {{.Code}}")
	if err != nil {
		t.Fatal(err)
	}
	x := try(t, 40, -0.15)
	x.start(t)
	r := x.run(t, 1000)
	for range len(r.State.Events) + 3 {
		if err := (&Webhook{hook}).Tick(t.Context(), x.Folder, x.Now); err != nil {
			t.Fatal(err)
		}
	}
	if len(got) != len(r.State.Events) {
		t.Fatalf("told %d times of %d steps", len(got), len(r.State.Events))
	}
	for i, m := range got {
		if m.Code != string(r.State.Events[i].Code) || m.Text != "test: shop "+m.Code || m.Sentence == "" {
			t.Errorf("%d: %+v", i, m)
		}
	}
	if got[0].Code != string(rollout.Starts) || got[len(got)-1].Code != string(rollout.Complete) {
		t.Errorf("from %s to %s", got[0].Code, got[len(got)-1].Code)
	}
}

// A webhook that refuses, hangs or is not there is tried again, ever more seldom, then given up: that
// is recorded, and the rollout went on meanwhile.
func TestWebhookThatFails(t *testing.T) {
	t.Parallel()
	hanging := make(chan struct{})
	for name, answer := range map[string]http.HandlerFunc{
		"refuses": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) },
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://192.0.2.1/", http.StatusFound)
		},
		"hangs": func(_ http.ResponseWriter, _ *http.Request) { <-hanging },
		"ends":  func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		server := httptest.NewServer(answer)
		hook, err := webhook.New(server.URL+"/secret", "")
		if err != nil {
			t.Fatal(err)
		}
		hook.Client.Timeout = 50 * time.Millisecond
		x := try(t, 12, -0.15)
		x.start(t)
		x.ask("rollback")
		for range mostTries {
			if err := (&Webhook{hook}).Tick(t.Context(), x.Folder, x.Now); err == nil || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: %v", name, err)
			}
			if err := (&Webhook{hook}).Tick(t.Context(), x.Folder, x.Now); err != nil {
				t.Errorf("%s: tried again at once: %v", name, err)
			}
			x.now = x.now.Add(3 * time.Hour)
		}
		if r := x.get(t); r.Told.Count != 0 || len(r.Untold) != 0 || r.Told.GivenUp != 1 || r.Told.Problem == "" {
			t.Errorf("%s: %+v", name, r.Told)
		}
		defer server.Close()
	}
	close(hanging)
}

// A program that ended after it claimed a step, and before it wrote down that it was told, tells again.
func TestToldAgainAfterACrash(t *testing.T) {
	t.Parallel()
	n := 0
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { n++ }))
	defer server.Close()
	hook, err := webhook.New(server.URL, "")
	if err != nil {
		t.Fatal(err)
	}
	x := try(t, 12, 0)
	x.start(t)
	x.ask("rollback")
	err = x.Folder.change(t.Context(), "shop", func(r Rollout, err error) (*Rollout, error) {
		r.Told.Tries, r.Told.Next = 1, x.now.Add(firstRetry)
		return &r, err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := (&Webhook{hook}).Tick(t.Context(), x.Folder, x.Now); err != nil || n != 0 {
		t.Errorf("while it is claimed: told %d times, %v", n, err)
	}
	x.now = x.now.Add(firstRetry)
	if err := (&Webhook{hook}).Tick(t.Context(), x.Folder, x.Now); err != nil || n != 1 || x.get(t).Told.Count != 1 {
		t.Errorf("told %d times, %+v, %v", n, x.get(t).Told, err)
	}
}
