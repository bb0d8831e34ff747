// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"os"
	"strings"
	"testing"

	"homenode/internal/trial"
	"homenode/internal/unit"
)

const mixFile = "../../../lab/mixes/first-light.yaml"

func TestDecodeMix(t *testing.T) {
	data, err := os.ReadFile(mixFile)
	if err != nil {
		t.Fatal(err)
	}
	m, err := ParseMix(data, mixFile)
	if err != nil {
		t.Fatal(err)
	}
	if m.Repeats != 3 || len(m.Workloads) != 5 || m.Warmup.AtMost.Seconds() != 24 {
		t.Errorf("%+v", m)
	}
	text := string(data)
	for change, want := range map[[2]string]string{
		{"repeats: 3", "repeats: 0"}:              "repeats",
		{"repeats: 3", "colour: red"}:             "colour",
		{"kind: hog", "kind: dog"}:                `"dog"`,
		{"name: search", "name: feed"}:            "unique name",
		{"at_most: 24s", "at_most: 1s"}:           "at_most",
		{"load: spin --threads 1", "load: \" \""}: "load",
	} {
		if _, err := ParseMix([]byte(strings.Replace(text, change[0], change[1], 1)), "mix.yaml"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", change, err)
		}
	}
}

func TestDecisionSteady(t *testing.T) {
	for _, c := range []struct {
		ratios []float64
		want   bool
	}{
		{[]float64{0.9, 0.9}, false},
		{[]float64{0.2, 0.90, 0.91, 0.915}, true},
		{[]float64{0.90, 0.91, 0.93}, false},
		{[]float64{0.9, 0.9, 0.9, 0.5}, false},
	} {
		if got := trial.Steady(c.ratios, steadyOver, 0.02); got != c.want {
			t.Errorf("%v: %v", c.ratios, got)
		}
	}
}

func TestDecisionTooSlow(t *testing.T) {
	m := Mix{ModelSeconds: 8, MinRate: 0.3}
	for _, c := range []struct {
		r  RunResult
		ok bool
	}{
		{RunResult{ModelSeconds: 8.01, SlowestRate: 0.5}, true},
		{RunResult{ModelSeconds: 8.01, SlowestRate: 0.29}, false},
		{RunResult{ModelSeconds: 5, SlowestRate: 0.5}, false},
	} {
		if why := tooSlow(c.r, m); (why == "") != c.ok {
			t.Errorf("%+v: %q", c.r, why)
		}
	}
}

// run makes one result: throughput of the one service and its local share.
func run(arm string, repeat int, ops, local, spin float64, acted bool) RunResult {
	return RunResult{Arm: arm, Repeat: repeat, Acted: acted, Services: []ServiceResult{
		{Name: "svc", Kind: Sensitive, WorkPerModelS: ops, LocalLoads: unit.Some(local), RemoteLoads: unit.Some(1 - local)},
		{Name: "spin", Kind: Insensitive, WorkPerModelS: spin},
	}}
}

func TestDecisionJudge(t *testing.T) {
	mix := Mix{Name: "m", Repeats: 2, Workloads: []Workload{{Name: "svc", Kind: Sensitive}, {Name: "spin", Kind: Insensitive}}}
	base := []RunResult{
		run(ArmLinux, 0, 100, 0.4, 50, true), run(ArmLinux, 1, 110, 0.5, 51, true),
		run(ArmBalancing, 0, 90, 0.6, 50, true), run(ArmBalancing, 1, 90, 0.6, 50, true),
		run(ArmNumad, 0, 400, 0.99, 50, false), run(ArmNumad, 1, 400, 0.99, 50, false), // never acted: no peer
		run(ArmByHand, 0, 200, 1, 50, true), run(ArmByHand, 1, 200, 1, 50, true),
	}
	for _, c := range []struct {
		about string
		ours  []RunResult
		met   []bool // local, remote, peers, ceiling, spinner
	}{
		{"all met", []RunResult{run(ArmHomenode, 0, 195, 0.97, 50, true), run(ArmHomenode, 1, 197, 0.98, 50, true)}, []bool{true, true, true, true, true}},
		{"slow spinner", []RunResult{run(ArmHomenode, 0, 195, 0.97, 30, true), run(ArmHomenode, 1, 197, 0.98, 30, true)}, []bool{true, true, true, true, false}},
		{"remote", []RunResult{run(ArmHomenode, 0, 195, 0.7, 50, true), run(ArmHomenode, 1, 197, 0.7, 50, true)}, []bool{false, false, true, true, true}},
		{"slow", []RunResult{run(ArmHomenode, 0, 105, 0.97, 50, true), run(ArmHomenode, 1, 105, 0.97, 50, true)}, []bool{true, true, false, false, true}},
	} {
		targets := gather(Options{Mix: mix, Arms: Arms}, append(base, c.ours...)).Targets
		if len(targets) != len(c.met) {
			t.Fatalf("%s: %d targets", c.about, len(targets))
		}
		for i, want := range c.met {
			if targets[i].Met != want {
				t.Errorf("%s: %+v", c.about, targets[i])
			}
		}
	}
	c := gather(Options{Mix: mix, Arms: Arms}, base)
	if numad, _ := c.Arm(ArmNumad); numad.Applicable || numad.Why == "" {
		t.Errorf("an arm that never acted is a peer: %+v", numad)
	}
	if len(c.Targets) != 0 {
		t.Error("targets were judged without homenode's arm")
	}
}
