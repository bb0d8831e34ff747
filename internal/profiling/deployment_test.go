// SPDX-License-Identifier: Apache-2.0

package profiling

import (
	"strings"
	"testing"
	"time"

	"homenode/internal/experiment"
	"homenode/internal/unit"
)

var deployed = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func deployment(t *testing.T, replicas ...string) Deployment {
	t.Helper()
	d, err := BeginDeployment(Deployment{Service: "shop", Least: 0.02, Margin: 0.02, Replicas: replicas}, deployed, nil)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func trialFrom(low, high float64) DeployTrial {
	return DeployTrial{At: deployed, Gain: Gain{Value: unit.Some((low + high) / 2), CI: experiment.Interval{Low: low, High: high, Coverage: 0.97}}}
}

// What a service's replicas show decides whether it is kept, and each way to the end has its code.
func TestDeployment(t *testing.T) {
	t.Parallel()
	few := trialFrom(0.1, 0.2)
	few.Gain.CI.Coverage = 0.9
	for name, c := range map[string]struct {
		trials []DeployTrial
		phase  DeployPhase
		code   DeployCode
	}{
		"under way":                      {[]DeployTrial{trialFrom(0.03, 0.1)}, Trying, DeployProven},
		"all gain":                       {[]DeployTrial{trialFrom(0.03, 0.1), trialFrom(0.03, 0.1)}, Kept, DeployComplete},
		"another gains little":           {[]DeployTrial{trialFrom(0.03, 0.1), trialFrom(-0.01, 0.02)}, Kept, DeployComplete},
		"another may be hurt":            {[]DeployTrial{trialFrom(0.03, 0.1), trialFrom(-0.03, 0.1)}, RolledBack, DeployNotSafe},
		"another is hurt":                {[]DeployTrial{trialFrom(0.03, 0.1), trialFrom(-0.03, -0.001)}, RolledBack, DeployHarm},
		"the first is hurt":              {[]DeployTrial{trialFrom(-0.1, -0.03)}, RolledBack, DeployHarm},
		"the first gains too little":     {[]DeployTrial{trialFrom(0.019, 0.1)}, RolledBack, DeployNoGain},
		"the first shows nothing":        {[]DeployTrial{{At: deployed}}, RolledBack, DeployNoGain},
		"another shows nothing":          {[]DeployTrial{trialFrom(0.03, 0.1), {At: deployed}}, RolledBack, DeployNotSafe},
		"an interval of too few repeats": {[]DeployTrial{few}, RolledBack, DeployNoGain},
	} {
		t.Run(name, func(t *testing.T) {
			d := deployment(t, "/a", "/b")
			for _, x := range c.trials {
				var ok bool
				if x.Workload, ok = d.Next(); !ok {
					t.Fatal("it has no replica left")
				}
				before := len(d.Events)
				next := d.Take(x)
				if len(d.Events) != before || len(next.Trials) != len(d.Trials)+1 {
					t.Error("the state that was given changed, or the trial was not kept")
				}
				d = next
			}
			if d.Phase != c.phase || d.Last().Code != c.code {
				t.Errorf("%s, %s; want %s, %s", d.Phase, d.Last().Code, c.phase, c.code)
			}
			data, err := d.Encode()
			if err != nil {
				t.Fatal(err)
			}
			back, err := DecodeDeployment(data)
			if err != nil || back.Phase != d.Phase || len(back.Events) != len(d.Events) {
				t.Errorf("%v: %+v", err, back)
			}
			if _, ok := d.Stop(DeployOperator, "", deployed).Next(); ok {
				t.Error("one that was rolled back goes on")
			}
		})
	}
}

// What no deployment comes to is refused, and so is what cannot be carried out.
func TestDeploymentRefuses(t *testing.T) {
	t.Parallel()
	good := deployment(t, "/a").Take(DeployTrial{Workload: "/a", At: deployed, Gain: trialFrom(0.1, 0.2).Gain})
	for want, change := range map[string]func(*Deployment){
		"no name":            func(d *Deployment) { d.Service = "" },
		"no workload":        func(d *Deployment) { d.Replicas = nil },
		"at most 100":        func(d *Deployment) { d.Replicas = make([]string, 101) },
		"--least":            func(d *Deployment) { d.Least = -0.1 },
		"--margin":           func(d *Deployment) { d.Margin = 0 },
		"fit each other":     func(d *Deployment) { d.Trials[0].Workload = "/b" },
		"not fit each other": func(d *Deployment) { d.Phase = "forgotten" },
		"do not fit each":    func(d *Deployment) { d.Trials = nil }, // kept without a trial
		"its parts":          func(d *Deployment) { d.Events = nil },
	} {
		d := good.clone()
		d.Trials = append([]DeployTrial{}, d.Trials...)
		change(&d)
		if err := d.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	for _, text := range []string{"", "{}", "null", "[]", `{"schema":2}`, `{"schema":1,"service":"shop","phase":"kept","workload_ids":["/a"],"replica_trials":[],"deploy_steps":[{}]}`} {
		if d, err := DecodeDeployment([]byte(text)); err == nil {
			t.Errorf("%s: %+v", text, d)
		}
	}
	nan := trialFrom(0.1, 0.2)
	zero := 0.0
	nan.Gain.CI.Low, nan.Workload = zero/zero, "/a"
	if d := deployment(t, "/a").Take(nan); d.Phase == Kept {
		t.Error("an interval that is no number was taken for a gain")
	}
}

// Steps of earlier deployments stay on record, within a bound.
func TestDeploymentAgain(t *testing.T) {
	t.Parallel()
	d := deployment(t, "/a")
	for range 2 * mostEvents {
		next, err := BeginDeployment(d, deployed, d.Stop(DeployOperator, "", deployed).Events)
		if err != nil {
			t.Fatal(err)
		}
		d = next
	}
	if n := len(d.Events); n < mostEvents/2 || n > mostEvents || d.Phase != Trying || len(d.Trials) != 0 {
		t.Errorf("%d steps, %s", n, d.Phase)
	}
}

// A workload's name does not become part of a command or a query unless it means itself there.
func TestForWorkload(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"web-1", "postgresql@15-main.service", "cri-containerd-0a.scope", "a:b_c"} {
		if got, err := ForWorkload("command:cat /run/{workload}/p99 {workload}", "/a/"+name); err != nil || got != "command:cat /run/"+name+"/p99 "+name {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for _, name := range []string{"a b", "$(reboot)", "a;b", `a"b`, "a`b`", `a\x2db`, "-rf", "..", "{workload}", "a\nb", "ü", "\xff"} {
		if got, err := ForWorkload("command:cat {workload}", "/a/"+name); err == nil {
			t.Errorf("%q: %q", name, got)
		}
		if got, err := ForWorkload("ipc", "/a/"+name); err != nil || got != "ipc" {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
}
