// SPDX-License-Identifier: Apache-2.0

package views

import (
	"strings"
	"testing"
	"time"

	"homenode/internal/action"
	"homenode/internal/actuate"
	"homenode/internal/agent"
	"homenode/internal/migration"
	"homenode/internal/render"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// `why` shows the sum that decides about moving memory, each figure with its
// source.
func TestWhyShowsTheSum(t *testing.T) {
	stake := migration.Stake{
		Bytes: 512 * unit.MiB, RemoteRate: unit.Measured(1.2e6, "perf r01d3"), Difference: unit.Measured(58e-9, "profile: latency"),
		Horizon: 10 * time.Minute, PerByte: unit.Estimated(0.65e-9, "0.65 s/GB (MAO)"),
	}
	ws := agent.WorkloadStatus{
		ID: "/a", Stage: actuate.StagePages, Nodes: set.FromNodes(1), Reason: action.Reason{Rule: "it is bound"},
		Pays: unit.Some(migration.Pays(stake)), Moving: true,
	}
	const moving = `/a: it is bound
  binding to nodes 1: stage pages
  its remote memory: 512 MiB; 1,200,000 remote loads/s × 58 ns × 600 s = 41.8 CPU-s saved, 0.349 CPU-s cost: moving
    remote_bytes 512 MiB (measured) from pages by node
    remote_loads 1,200,000 per second (measured) from perf r01d3
    saved_per_load 58 ns (measured) from profile: latency
    horizon 10 min (estimated) from configuration
    cost_per_byte 0.65 ns of CPU time (estimated) from 0.65 s/GB (MAO)
    move_cost 349 ms of CPU time (estimated) from 0.65 s/GB (MAO)
    move_gain 41.8 s of CPU time (measured, limit 349 ms of CPU time) from remote loads/s × seconds saved a load × horizon
`
	var out strings.Builder
	if Why(&out, ws); out.String() != moving {
		t.Errorf("got\n%s\nwant\n%s", out.String(), moving)
	}
	stake.RemoteRate = unit.UnknownValue[float64]("no \x1b[31mevents")
	ws.Stage, ws.Moving, ws.Pays = actuate.StageCPUsOnly, false, unit.Some(migration.Pays(stake))
	out.Reset()
	Why(&out, ws)
	if got := out.String(); strings.Contains(got, "\x1b") || !strings.Contains(got, "cost: not moving: it is unknown whether moving 512 MiB pays: no ") || !strings.Contains(got, "remote_loads unknown (no ") {
		t.Errorf("of unknown loads:\n%s", got)
	}
}

// `why` shows what was expected of a binding under way, the rejected orders, and what it
// took.
func TestWhyShowsTheWay(t *testing.T) {
	ws := agent.WorkloadStatus{ID: "/a", Reason: action.Reason{Rule: "it is bound"}, Way: actuate.Way{
		Order: actuate.InSteps, Before: unit.Measured(unit.Ratio(0.5), "perf"), End: 1, Bytes: unit.GiB,
		Rate: unit.Measured(float64(128*unit.MiB), "its own moves"), Moved: unit.GiB, Took: 12 * time.Second, Over: true,
		Orders: []actuate.Estimate{
			{Order: actuate.CPUsFirst, Home: 10 * time.Second, Below: 4 * time.Second, Least: 0.0625},
			{Order: actuate.MemoryFirst, Home: 10 * time.Second, Least: 0.5},
			{Order: actuate.InSteps, Home: 10 * time.Second, Least: 0.5},
		},
	}}
	const want = `/a: it is bound
  way there: in-steps: 1 GiB to move at 128 MiB/s (measured: its own moves), 10 s expected, windows at least 50.0% local; it took 12 s and moved 1 GiB
    not cpus-first: home in 10 s, windows at least 6.2% local, worse than before for 4 s
    not memory-first: home in 10 s, windows at least 50.0% local, no window worse than before
`
	var out strings.Builder
	if Why(&out, ws); out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

// `why` names the deciding condition: moving would pay, but too little is elsewhere for
// a step; it moves too little; or nothing ends the binding.
func TestWhyNamesWhatDecided(t *testing.T) {
	stake := migration.Stake{
		Bytes: 4 * unit.KiB, Private: 4 * unit.KiB, Enough: 2 * unit.MiB, RemoteRate: unit.Measured(1e3, "perf"), Difference: unit.Measured(100e-9, "profile"),
		Horizon: 10 * time.Minute, PerByte: unit.Estimated(0.65e-9, "0.65 s/GB (MAO)"),
	}
	bound := action.Reason{Rule: "mao.keep.bound", Nodes: set.FromNodes(1), Numbers: []action.Number{
		action.Counted("since", 3, "window"),
		{Name: "cpu_of_binding", Value: unit.Measured(1.0, "x"), Limit: unit.Some(2.0), Unit: "cpus", Decides: true},
		{Name: "node_ahead_of_others", Value: unit.Measured(0.22, "x"), Limit: unit.Some(0.125), Unit: "ratio"},
	}}
	why := func() string {
		var out strings.Builder
		Why(&out, agent.WorkloadStatus{ID: "/a", Stage: actuate.StageBound, Nodes: set.FromNodes(1), Reason: bound, Pays: unit.Some(migration.Pays(stake))})
		return out.String()
	}
	got := why()
	for _, want := range []string{
		"nothing asks for an unbind: it uses 1.00 CPUs, less than the 2.00 that count as all it may use\n",
		"cpu_of_binding 1 CPU (measured, limit 2 CPUs)  <- decides\n", "node_ahead_of_others 22% (measured, limit 12.5%)\n",
		"0.06 CPU-s saved, 2.66e-06 CPU-s cost: not moving: 4 KiB of private memory are elsewhere, and no step is made for 2 MiB or less\n",
		"private_remote_bytes 4 KiB (measured, limit 2 MiB) from pages by node  <- decides\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	stake.RemoteRate = unit.Measured(1e-3, "perf")
	if got := why(); !strings.Contains(got, "not moving: moving 4 KiB would cost 2.66e-06 CPU-s and save 6e-08 in 10 min") || strings.Count(got, "<- decides") != 2 {
		t.Errorf("it does not pay:\n%s", got)
	}
}

// The output says if the period is not kept.
func TestStatusSaysThePeriodThatIsHeld(t *testing.T) {
	for held, want := range map[time.Duration]string{
		21 * time.Second: "7 rounds every 10 s asked for, every 21 s held,", 11 * time.Second: "7 rounds every 10 s, ",
	} {
		var out strings.Builder
		s := agent.Status{Rounds: 7, Period: 10 * time.Second, Window: window.Window{Length: held}}
		if err := Status(&out, s, wide); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%v: %v\n%s", held, err, out.String())
		}
	}
}

// wide is a terminal without wrapped lines.
var wide = render.TextOptions{UTF8: true, Width: 1000}

// Sentences fit a narrow terminal, and one without UTF-8 gets ASCII. An exclusion is shown.
func TestStatusOnANarrowTerminal(t *testing.T) {
	s := agent.Status{Counting: &agent.Counting{Why: "open perf cycles on cpu 0: no such file or directory (not supported)", Remedy: "a PMU: a host of its own, or a VM whose hypervisor passes one through"},
		Workloads: []agent.WorkloadStatus{{ID: "/a"}}, Window: window.Window{Workloads: []window.Workload{{ID: "/a"}}},
		Excluded: []agent.Excluded{{Workload: "/a", Until: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}}}
	var out strings.Builder
	if err := Status(&out, s, render.TextOptions{Width: 60}); err != nil || !strings.Contains(out.String(), "excluded: /a is not bound until 2026-01-02 03:04:05\n") {
		t.Errorf("%v\n%s", err, out.String())
	}
	for line := range strings.Lines(out.String()) {
		if table := strings.HasPrefix(line, "WORKLOAD") || strings.HasPrefix(line, "/a "); !table && len(line) > 61 || strings.ContainsFunc(line, func(r rune) bool { return r > 127 }) {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
}
