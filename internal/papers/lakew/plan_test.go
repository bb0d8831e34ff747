// SPDX-License-Identifier: Apache-2.0

package lakew

import (
	"context"
	"slices"
	"testing"
	"time"

	"homenode/internal/policy/vmmap"
	"homenode/internal/sim/arena"
	"homenode/internal/sim/runner"
)

// With few VMs and two policies, the paper's ordering holds with margins.
func TestQuickLook(t *testing.T) {
	p := Plan(false)
	p.Policies, p.Seeds = []string{runner.None, runner.SMIPC}, p.Seeds[:2]
	r, err := arena.Run(context.Background(), p, 2, func(float64) {})
	if err != nil {
		t.Fatal(err)
	}
	groups := groupsOf(r, r.Machines[0].Name)
	for _, seed := range p.Seeds {
		if f := leastFactor(groups, runner.SMIPC, runner.None, []uint64{seed}); !(f > 1.2) {
			t.Errorf("seed %d: %.3g times as fast as Linux alone, want more than 1.2", seed, f)
		}
	}
	for _, g := range groups {
		was, _ := g.mean(runner.None, local)
		now, ok := g.mean(runner.SMIPC, local)
		if ok && now < was+0.2 {
			t.Errorf("%s in %s VMs: %.2f of its reads are local, %.2f with Linux alone", g.app, g.size, now, was)
		}
	}
	for _, c := range r.Cells {
		if moved := c.MovedB > 1<<30; moved != (c.Policy == runner.SMIPC) {
			t.Errorf("%s, seed %d: %.3g bytes moved", c.Policy, c.Seed, c.MovedB)
		}
	}
}

// Memory costs more the farther it is, and costs a program that computes less than it costs
// others.
func TestCurve(t *testing.T) {
	m := torus()
	curve, err := Curve(m, Applications...)
	if err != nil {
		t.Fatal(err)
	}
	last := map[string]Point{}
	for _, p := range curve {
		if was := last[p.App]; p.Lost < was.Lost-1e-3 || p.Distance <= was.Distance {
			t.Errorf("%s loses %.3f at %d, and %.3f at %d", p.App, p.Lost, p.Distance, was.Lost, was.Distance)
		}
		last[p.App] = p
	}
	for _, app := range Applications[1:] {
		if near := last["mpegaudio"]; last[app].Lost < 2*near.Lost || last[app].Distance != 200 {
			t.Errorf("%s loses %.3f at %d, mpegaudio %.3f", app, last[app].Lost, last[app].Distance, near.Lost)
		}
	}
	if _, err := Curve(m, "stream"); err != nil {
		t.Error(err)
	}
	m.Host.Nodes = m.Host.Nodes[:0]
	if _, err := Curve(m, "stream"); err == nil {
		t.Error("a curve without a node")
	}
}

// Once its memory is home, counters show whether an application is sensitive to remote
// memory. Each application gets a class.
func TestClasses(t *testing.T) {
	all, err := Classes(torus(), Applications...)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range all {
		if g.Homed.Class == vmmap.Unknown || g.Homed.Sensitive != g.Truth.Sensitive || g.Truth.Class == vmmap.Unknown {
			t.Errorf("%s: is %s %v, taken for %s %v", g.App, g.Truth.Class, g.Truth.Sensitive, g.Homed.Class, g.Homed.Sensitive)
		}
	}
}

// The figures that the paper leaves open and that decision 0025 names.
func TestPlans(t *testing.T) {
	full := Plan(true)
	if len(full.Mixes) != 2 || full.Against != runner.None || !slices.Contains(full.Policies, runner.SMMPI) || len(full.Seeds) < leastRuns {
		t.Errorf("%+v", full)
	}
	for _, m := range full.Mixes {
		if len(m.Specs(&full.Machines[0], 1)) != 20 || m.Lasts < m.Warmup+2*time.Minute || !m.Fits(&full.Machines[0]) {
			t.Errorf("%+v", m)
		}
	}
	if full.Machines[0].System.Nodes[0].Cycles == 0 || full.Machines[0].System.Links[0].Cycles == 0 {
		t.Error("a controller or a link of the paper's machine has no bound")
	}
}
