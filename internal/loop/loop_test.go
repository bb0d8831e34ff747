// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"homenode/internal/hub/sensitivity"
	"homenode/internal/model/gain"
	"homenode/internal/render"
	"homenode/internal/rollout"
)

func demo(t *testing.T) Config {
	t.Helper()
	m, err := gain.Open("../model/gain/testdata/gain.json", os.ReadFile)
	if err != nil {
		t.Fatal(err)
	}
	c := Demo(m, t.TempDir())
	c.Hosts = 10
	return c
}

// The whole way, with a small model: rollouts are begun where the model says so and nowhere else,
// the one with the fault is undone, and what was left alone stays as it was.
func TestLoop(t *testing.T) {
	c := demo(t)
	c.Least = 0.01 // a model of few trials has wide intervals
	c.Progress = func(time.Duration, string) {}
	r, err := Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	begun := 0
	for _, o := range r.Services {
		t.Logf("%s %s %.3f: %q proven %v, gain %.3f, blind %.3f", o.Service, o.Verdict, o.Predicted, o.Phase, o.Proven, o.Gain.Or(9), o.Blind.Or(9))
		if rolled := o.Phase != ""; rolled != (o.Verdict == sensitivity.Worth) || rolled != (len(o.Steps) > 0) {
			t.Errorf("%s is %s, and its rollout %q", o.Service, o.Verdict, o.Phase)
		}
		if o.Phase != "" {
			begun++
		}
		if !o.Gain.Known() || !o.Blind.Known() {
			t.Errorf("%s was not compared", o.Service)
		}
		if o.Service == c.Fault.Service && o.Phase == rollout.Done {
			t.Errorf("the fault of %s was bound on all", o.Service)
		}
	}
	if begun == 0 || len(r.Services) != len(c.Services) {
		t.Errorf("%d of %d services were rolled out", begun, len(r.Services))
	}
	for _, row := range r.Rows {
		if row.Source != gain.Simulator || row.GainLatency == nil || row.GainLatencyAgain == nil || row.RMBR == nil || row.CPU == nil || row.MBW == nil || *row.RMBR < 0.1 {
			t.Errorf("a row of training: %+v", row)
		}
	}
	if len(r.Rows) != begun {
		t.Errorf("%d rollouts became %d rows", begun, len(r.Rows))
	}
	if x := blindOf(r, "router-001"); x > -0.1 {
		t.Errorf("bound unconditionally, router-001 gains %v: the demonstration needs one that is hurt", x)
	}
	var page, text bytes.Buffer
	if err := errors.Join(HTML(&page, r), Text(&text, r, render.TextOptions{Width: 100})); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"cache-000", "search-006", "modelled"} {
		if !strings.Contains(page.String(), want) || !strings.Contains(text.String(), want) {
			t.Errorf("no %q on the page, or in the text:\n%s", want, text.String())
		}
	}
}

func blindOf(r Report, service string) float64 {
	for _, o := range r.Services {
		if o.Service == service {
			return o.Blind.Or(9)
		}
	}
	return 9
}

// A run says what it does not show, and what it cannot begin with.
func TestRefuses(t *testing.T) {
	if err := (Report{}).Check(); err == nil || !strings.Contains(err.Error(), "proven gain") {
		t.Errorf("an empty run: %v", err)
	}
	for want, change := range map[string]func(*Config){
		"8 hosts":      func(c *Config) { c.Hosts = 2 },
		`"none"`:       func(c *Config) { c.Services = []string{"none"} },
		"a service":    func(c *Config) { c.Services = nil },
		"no such file": func(c *Config) { c.Dir = "/proc/none" },
	} {
		c := demo(t)
		change(&c)
		if _, err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := Run(ctx, demo(t)); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}
