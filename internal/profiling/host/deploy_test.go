// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"homenode/internal/agent"
	"homenode/internal/exit"
	"homenode/internal/experiment"
	"homenode/internal/kernel"
	"homenode/internal/profiling"
	"homenode/internal/unit"
	"homenode/internal/webhook"
)

// deploying is a deployment of a service with two replicas on a made-up host.
type deploying struct {
	DeployOptions
	file  string // the agent's configuration
	tried []Options
}

const deployConfig = `services:
  - {name: shop, match: /shop/*, near: [node 1], latency_file: "/run/shop/{workload}.p99"}
  - {name: bound, match: /bound/*, approved: true}
  - {name: none, match: /none/*}
`

func newDeploying(t *testing.T, config string, answers ...any) *deploying {
	t.Helper()
	d := &deploying{file: filepath.Join(t.TempDir(), "agent.yaml")}
	if err := os.WriteFile(d.file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := agent.ReadConfig(d.file, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d.DeployOptions = DeployOptions{Config: c, Service: "shop", Least: 0.02, Margin: 0.02, Options: Options{For: time.Second, Repeats: 8, MetricText: "file:/run/shop/{workload}.p99", Metric: profiling.Metric{LowerIsBetter: true}}}
	d.list = func([]string) ([]string, error) {
		return []string{"/shop/a", "/other", "/shop/b", "/bound/a"}, nil
	}
	d.try = func(_ context.Context, o Options, _ io.Writer) (profiling.TrialReport, error) {
		if len(d.tried) == len(answers) {
			t.Fatalf("%d trials, and one more", len(answers))
		}
		a := answers[len(d.tried)]
		d.tried = append(d.tried, o)
		switch a := a.(type) {
		case float64:
			r := profiling.TrialReport{Outcome: "complete", How: unit.HowMeasured, Nodes: "1"}
			r.Time = profiling.Gain{Value: unit.Some(a), CI: experiment.Interval{Low: a - 0.015, High: a + 0.015, Coverage: 0.97}}
			return r, nil
		case string:
			return profiling.TrialReport{Outcome: a, Notes: []string{"because"}}, exit.With(exit.Partly, nil)
		default:
			return profiling.TrialReport{Outcome: "unfinished"}, exit.With(exit.Partly, a.(error))
		}
	}
	return d
}

func (d *deploying) run(t *testing.T) (profiling.Deployment, error) {
	t.Helper()
	return Deploy(t.Context(), d.DeployOptions, io.Discard)
}

// approved is what an agent that starts now takes the service for.
func (d *deploying) approved(t *testing.T) bool {
	t.Helper()
	c, err := agent.ReadConfig(d.file, d.Config.StateDir)
	if err != nil || len(c.Unread) > 0 {
		t.Fatal(err, c.Unread)
	}
	d.Config = c
	return c.Services[0].Approved
}

// A service whose replicas gain is approved, and only then; it is approved no more once it is rolled
// back, and can be tried again.
func TestDeployKeeps(t *testing.T) {
	t.Parallel()
	d := newDeploying(t, deployConfig, 0.1, 0.0, 0.1, 0.1)
	got, err := d.run(t)
	if err != nil || got.Phase != profiling.Kept || !d.approved(t) {
		t.Fatalf("%v: %+v", err, got)
	}
	for i, o := range d.tried {
		name := []string{"a", "b"}[i]
		if o.Workload != "/shop/"+name || o.MetricText != "file:/run/shop/"+name+".p99" || !o.Metric.LowerIsBetter || o.Application != "shop" || !slices.Equal(o.Near, []string{"node 1"}) || o.State == d.Config.StateDir || o.DryRun {
			t.Errorf("%+v", o)
		}
	}
	if again, err := d.run(t); err != nil || len(again.Events) != len(got.Events) || len(d.tried) != 2 {
		t.Errorf("a second time: %v: %+v", err, again)
	}
	other := d.DeployOptions
	other.Least = 0.05
	if _, err := Deploy(t.Context(), other, io.Discard); err == nil || !strings.Contains(err.Error(), "is deployed since") {
		t.Errorf("with other settings: %v", err)
	}
	if err := ForgetDeployment(d.DeployOptions); err != nil || d.approved(t) {
		t.Errorf("forgotten: %v", err)
	}
	if got, err = d.run(t); err != nil || got.Phase != profiling.Kept || !d.approved(t) {
		t.Fatalf("%v: %+v", err, got)
	}
	back, _, err := RollBack(t.Context(), d.DeployOptions, "a sale")
	if err != nil || back.Last().Why != "a sale" || d.approved(t) {
		t.Errorf("%v: %+v", err, back)
	}
	if _, _, err := RollBack(t.Context(), d.DeployOptions, ""); exitOf(err) != exit.Nothing {
		t.Errorf("twice: %v", err)
	}
}

func exitOf(err error) int {
	var e exit.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return exit.Failed
}

// A trial that shows no gain, harm, or that it cannot be measured ends it, and nothing is approved.
func TestDeployEnds(t *testing.T) {
	t.Parallel()
	for code, answers := range map[profiling.DeployCode][]any{
		profiling.DeployNoGain:   {0.0},
		profiling.DeployHarm:     {"stopped"},
		profiling.DeployNotSafe:  {0.1, -0.01},
		profiling.DeployConstant: {fmt.Errorf("measure: %w", profiling.ErrConstant)},
		profiling.DeployNewUnit:  {0.1, fmt.Errorf("measure: %w", profiling.ErrJumped)},
		profiling.DeployGone:     {fmt.Errorf("measure: %w", kernel.ErrGone)},
	} {
		d := newDeploying(t, deployConfig, answers...)
		got, err := d.run(t)
		if got.Phase != profiling.RolledBack || got.Last().Code != code || len(d.tried) != len(answers) || d.approved(t) {
			t.Errorf("%s: %v: %+v", code, err, got.Last())
		}
		if _, ok := answers[len(answers)-1].(float64); ok == (err != nil) { // a trial that did not come to its end is an error
			t.Errorf("%s: %v", code, err)
		}
	}
}

// What an interrupt, a kill or an error leaves is continued by the same command, and by no other.
func TestDeployContinues(t *testing.T) {
	t.Parallel()
	d := newDeploying(t, deployConfig, 0.1, fmt.Errorf("stopped: %w", profiling.ErrUnfinished), errors.New("another program has limited it"), 0.1)
	for i := range 2 {
		got, err := d.run(t)
		if err == nil || got.Phase != profiling.Trying || len(got.Trials) != 1 || d.approved(t) {
			t.Fatalf("%d: %v: %+v", i, err, got)
		}
	}
	other := d.DeployOptions
	other.Least = 0.05
	if _, err := Deploy(t.Context(), other, io.Discard); err == nil || !strings.Contains(err.Error(), "under way with other settings") {
		t.Errorf("other settings: %v", err)
	}
	if err := ForgetDeployment(d.DeployOptions); err == nil || !strings.Contains(err.Error(), "under way") {
		t.Errorf("forget: %v", err)
	}
	if plan, all, err := PlanDeployment(t.Context(), DeployOptions{Options: d.Options, Config: d.Config, Service: "shop", Least: 0.02, Margin: 0.02, list: d.list,
		try: func(_ context.Context, o Options, _ io.Writer) (profiling.TrialReport, error) {
			if !o.DryRun || o.Workload != "/shop/b" || o.Rows+o.Saved != "" { // the folder may not be there yet
				t.Errorf("%+v", o)
			}
			return profiling.TrialReport{Outcome: "planned"}, nil
		}}, io.Discard); err != nil || len(all) != 1 || len(plan.Trials) != 1 {
		t.Errorf("plan: %v: %+v", err, all)
	}
	if got, err := d.run(t); err != nil || got.Phase != profiling.Kept || !d.approved(t) {
		t.Errorf("%v: %+v", err, got)
	}
	unlock, err := d.lock(d.ownLock())
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if _, _, err := RollBack(t.Context(), d.DeployOptions, ""); err == nil || !strings.Contains(err.Error(), "at work") {
		t.Errorf("while another is at work: %v", err)
	}
}

// What an operator changes while a service is tried holds from the next replica on, and what was
// tried stays on record.
func TestDeployHeeds(t *testing.T) {
	t.Parallel()
	for why, config := range map[string]string{
		"excludes /shop/b": deployConfig + "excluded: [/shop/b]\n",
		"mode: observe":    deployConfig + "mode: observe\n",
		"other folders":    deployConfig + "deployments: none\n",
		"unknown field":    "unheard: 1\n",
		"has no service":   "",
	} {
		t.Run(why, func(t *testing.T) {
			d := newDeploying(t, deployConfig, 0.1, 0.0)
			write := func(config string) {
				if err := os.WriteFile(d.file, []byte(config), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			d.Read = func() (agent.Config, error) {
				if len(d.tried) == 1 {
					write(config)
				}
				return agent.ReadConfig(d.file, d.Config.StateDir)
			}
			got, err := d.run(t)
			if exitOf(err) != exit.Bad || !strings.Contains(err.Error(), why) || got.Phase != profiling.Trying || len(d.tried) != 1 {
				t.Fatalf("%v: %+v", err, got)
			}
			write(deployConfig)
			d.Read = nil
			if got, err = d.run(t); err != nil || got.Phase != profiling.Kept || len(d.tried) != 2 {
				t.Errorf("mended: %v: %+v", err, got)
			}
		})
	}
}

// Each step is told once it is on record. A webhook that fails holds up nothing, and is told later;
// what is a day old is no news.
func TestDeployTells(t *testing.T) {
	t.Parallel()
	d := newDeploying(t, deployConfig, 0.1, 0.0)
	var told []profiling.DeployCode
	down := false
	d.Tell = func(_ context.Context, x profiling.Deployment, e profiling.DeployEvent) error {
		if d.approved(t) != (x.Phase == profiling.Kept) {
			t.Errorf("%s is told while it is %s, approved: %v", e.Code, x.Phase, d.approved(t))
		}
		if down = !down && e.Code == profiling.DeployProven; down {
			return errors.New("no answer")
		}
		told = append(told, e.Code)
		return nil
	}
	got, err := d.run(t)
	want := []profiling.DeployCode{profiling.DeployStarts, profiling.DeployProven, profiling.DeployWidens, profiling.DeployComplete}
	if err != nil || got.Told != len(got.Events) || !slices.Equal(told, want) {
		t.Fatalf("%v: %d of %d told: %v", err, got.Told, len(got.Events), told)
	}
	d.Tell = func(context.Context, profiling.Deployment, profiling.DeployEvent) error {
		return errors.New("no answer")
	}
	back, notes, err := RollBack(t.Context(), d.DeployOptions, "")
	if err != nil || back.Told != len(back.Events)-1 || len(notes) != 1 || !strings.Contains(notes[0], "no answer") {
		t.Fatalf("%v: %d of %d told, %q", err, back.Told, len(back.Events), notes)
	}
	n := 0
	d.Tell = func(_ context.Context, _ profiling.Deployment, e profiling.DeployEvent) error { n++; return nil }
	if _, _, err := RollBack(t.Context(), d.DeployOptions, ""); exitOf(err) != exit.Nothing || n != 1 {
		t.Errorf("again: %v, told %d", err, n)
	}
	back.Events[len(back.Events)-1].At = now().Add(-2 * webhook.Stale)
	if notes, err := d.record(t.Context(), &back); err != nil || n != 1 || back.Told != len(back.Events) || notes != nil {
		t.Errorf("of two days ago: %v, %q, told %d", err, notes, n)
	}
}

// What is not as it was is no end: the same command and a rollback both go on. What an earlier instance
// of a replica left is tried anew.
func TestDeployNotBack(t *testing.T) {
	t.Parallel()
	notBack := fmt.Errorf("%w: %w: %w", profiling.ErrConstant, errNotBack, errors.New("no answer"))
	earlier := fmt.Errorf("it has an experiment with %w", errEarlier)
	d := newDeploying(t, deployConfig, notBack, earlier, 0.1, 0.1)
	got, err := d.run(t)
	if !errors.Is(err, errNotBack) || got.Phase != profiling.Trying || len(got.Events) != 1 {
		t.Errorf("%v: %+v", err, got)
	}
	saved := d.tried[0].Saved
	if err := os.WriteFile(saved, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := ForgetDeployment(d.DeployOptions); err == nil {
		t.Error("it was forgotten")
	}
	if got, err := d.run(t); err != nil || got.Phase != profiling.Kept {
		t.Errorf("%v: %+v", err, got)
	}
	if left := d.unfinished(); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
}

// Where the first trial could not begin, the same service may be tried with other settings.
func TestDeployOtherSettings(t *testing.T) {
	t.Parallel()
	d := newDeploying(t, deployConfig, errors.New("the metric does not answer"), 0.1, 0.1)
	if _, err := d.run(t); err == nil {
		t.Fatal("no error")
	}
	d.Least = 0.05
	saved := filepath.Join(d.folder(), "x"+unfinished)
	if err := os.WriteFile(saved, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := d.run(t); err == nil || !strings.Contains(err.Error(), "other settings") {
		t.Errorf("what was begun: %v", err)
	}
	if err := os.Remove(saved); err != nil {
		t.Fatal(err)
	}
	if got, err := d.run(t); err != nil || got.Phase != profiling.Kept || len(got.Events) != 5 {
		t.Errorf("%v: %+v", err, got)
	}
}

// A service that others decide about is refused, and so is what cannot be measured.
func TestDeployRefuses(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(d *deploying){
		"has no service":           func(d *deploying) { d.Service = "shops" },
		"approves \"bound\"":       func(d *deploying) { d.Service = "bound" },
		"no workload of this host": func(d *deploying) { d.Service = "none" },
		"--metric is missing":      func(d *deploying) { d.MetricText = "" },
		"counts spinning as work":  func(d *deploying) { d.MetricText, d.Metric = "ipc", profiling.Metric{} },
		"the same number for all":  func(d *deploying) { d.MetricText = "file:/run/shop/p99" },
		"excludes /shop/b":         func(d *deploying) { d.Config.Excluded = []string{"/shop/b"} },
		"approves \"shop\"": func(d *deploying) { // two rules of one service
			d.Config.Services = append(slices.Clone(d.Config.Services), agent.Service{Name: "shop", Match: "/more/*", Approved: true})
		},
		"deployments: none":           func(d *deploying) { d.Config.Deployments = "" },
		"mode: observe":               func(d *deploying) { d.Config.Mode = agent.ModeObserve },
		"this host has a hub":         func(d *deploying) { d.Config.Hub.Address = "hub:8443" },
		"a multiple of 4":             func(d *deploying) { d.Repeats = 6 },
		"--margin":                    func(d *deploying) { d.Margin = 0 },
		"metric \"what\"":             func(d *deploying) { d.MetricText = "what" },
		"that is for a command":       func(d *deploying) { d.MetricText, d.Metric = "time", profiling.Metric{} },
		"could mean more than itself": func(d *deploying) { d.list = func([]string) ([]string, error) { return []string{"/shop/$(x)"}, nil } },
		"cgroups cannot be read today": func(d *deploying) {
			d.list = func([]string) ([]string, error) { return nil, errors.New("cgroups cannot be read today") }
		},
	} {
		d := newDeploying(t, deployConfig)
		change(d)
		if _, err := d.run(t); err == nil || !strings.Contains(err.Error(), want) || exitOf(err) != exit.Bad {
			t.Errorf("want %q: %v", want, err)
		}
		if files, _ := os.ReadDir(newDeploying(t, deployConfig).Config.Deployments); len(files) > 0 {
			t.Errorf("%s: %v was made", want, files)
		}
	}
}

// A file of a deployment that cannot be read approves nothing, and is told.
func TestDeployDamaged(t *testing.T) {
	t.Parallel()
	d := newDeploying(t, deployConfig, 0.1, 0.1)
	if _, err := d.run(t); err != nil {
		t.Fatal(err)
	}
	file := agent.DeploymentFile(d.Config.Deployments, "shop")
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"empty": "", "half": string(good[:len(good)/2]), "another schema": strings.Replace(string(good), `"schema":1`, `"schema":9`, 1), "another service": strings.Replace(string(good), "shop", "shap", 1),
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := agent.ReadConfig(d.file, d.Config.StateDir)
		if err != nil || c.Services[0].Approved || len(c.Unread) == 0 || !strings.Contains(c.Unread[0], file) {
			t.Errorf("%s: %v: %+v, %q", name, err, c.Services[0], c.Unread)
		}
		if _, err := d.run(t); err == nil || exitOf(err) != exit.Bad {
			t.Errorf("%s: start: %v", name, err)
		}
	}
}
