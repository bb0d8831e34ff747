// SPDX-License-Identifier: Apache-2.0

package action

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"homenode/internal/golden"
	"homenode/internal/set"
	"homenode/internal/unit"
)

func sample() []Outcome {
	why := Reason{
		Rule: "mao.bind", Workload: "/demo/a", Nodes: set.FromNodes(1),
		Numbers: []Number{
			{Name: "local_access_ratio", Value: unit.Measured(0.25, "perf r01d3"), Limit: unit.Some(0.9), Unit: "ratio"},
			{Name: "quota", Value: unit.UnknownValue[float64]("no limit is set"), Unit: "cpus"},
		},
		Alternatives: []Alternative{
			{Nodes: set.FromNodes(1), Figures: []Figure{{"cost", 0.25}}, Chosen: true},
			{Nodes: set.FromNodes(0), Code: "cpu", Figures: []Figure{{"cpu_needed", 1.6}, {"cpu_left", 0.4}}},
		},
	}
	return []Outcome{
		{Step: Step{Kind: SetCPUs, Workload: "/demo/a", CPUs: set.FromCPUs(2, 3), Reason: why}, Status: Done},
		{
			Step: Step{Kind: MovePages, Workload: "/demo/a", Nodes: set.FromNodes(1), From: set.FromNodes(0, 2), Budget: 64 * unit.MiB,
				Rate: 256 * unit.MiB, MaxStall: 20 * time.Millisecond, PageCache: true, Reason: why},
			Status: InProgress, Detail: "budget used up", Moved: 60 * unit.MiB, Failed: 8192, CPUSeconds: 0.04,
		},
		{
			Step:   Step{Kind: SetCPUs, Workload: "/demo/b", Reason: Reason{Rule: "mao.bind", Workload: "/demo/b"}.Because(Reason{Rule: "migration.sum"})},
			Status: Refused, Why: Reason{Rule: "actuate.no-cpu", Nodes: set.FromNodes(1)}, Stays: true,
		},
	}
}

func TestWireForm(t *testing.T) {
	got, err := json.MarshalIndent(sample(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	golden.Check(t, filepath.Join("testdata", "outcomes.golden.json"), got)
	var back []Outcome
	if err := json.Unmarshal(got, &back); err != nil || !reflect.DeepEqual(back, sample()) {
		t.Errorf("reads back as %+v, %v", back, err)
	}
}

func TestText(t *testing.T) {
	o := sample()
	for _, c := range []struct{ got, want string }{
		{o[0].Step.String(), "set-cpus /demo/a 2-3"},
		{o[1].Step.String(), "move-pages /demo/a from 0,2 to 1, at most 64 MiB"},
		{Step{Kind: Restore, Workload: "/a"}.String(), "restore /a"},
		{Step{Kind: SetMems, Workload: "/a", Nodes: set.FromNodes(1)}.String(), "set-mems /a 1"},
		{Action{Kind: Bind, Workload: "/a", Nodes: set.FromNodes(0, 1), CPUsOnly: true}.String(), "bind /a to nodes 0-1, CPUs only"},
		{Action{Kind: Unbind, Workload: "/a"}.String(), "unbind /a"},
	} {
		if c.got != c.want {
			t.Errorf("got  %s\nwant %s", c.got, c.want)
		}
	}
}

func TestPinSentences(t *testing.T) {
	for text, s := range map[string]Step{
		"pin-thread /vm thread 12 to CPUs 0-3":          {Kind: PinThread, Workload: "/vm", Thread: 12, CPUs: set.FromCPUs(0, 1, 2, 3)},
		"pin-thread /vm thread 12 to CPUs 4, then free": {Kind: PinThread, Workload: "/vm", Thread: 12, CPUs: set.FromCPUs(4), Release: true},
		"pin-thread /vm thread 12 to what it had":       {Kind: PinThread, Workload: "/vm", Thread: 12},
	} {
		if got := s.String(); got != text {
			t.Errorf("got %q, want %q", got, text)
		}
	}
	a := Action{Kind: Pin, Workload: "/vm", Thread: 3, CPUs: set.FromCPUs(1)}
	if got := a.String(); got != "pin /vm thread 3 to CPUs 1" {
		t.Errorf("got %q", got)
	}
	a = Action{Kind: Bind, Workload: "/vm", Nodes: set.FromNodes(1), CPUs: set.FromCPUs(8, 9)}
	if got := a.String(); got != "bind /vm to nodes 1, CPUs 8-9" {
		t.Errorf("got %q", got)
	}
}
