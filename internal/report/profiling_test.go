// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"path/filepath"
	"testing"
	"time"

	"homenode/internal/golden"
	"homenode/internal/profiling"
	"homenode/internal/render"
	"homenode/internal/unit"
)

// Goldens that people read.
func TestProfilingText(t *testing.T) {
	job := profiling.Job{Workload: "/demo/db", VCPUs: 4, Metric: profiling.Metric{Kind: profiling.File, Arg: "/run/db/ops", Counter: true}, For: 10 * time.Second, Warm: 5 * time.Second, Seed: 1}
	measured := profiling.Report{Outcome: "complete", How: unit.HowMeasured, Job: job, Order: []int{2, 1, 1, 2}, Left: unit.Estimated(0.0, "the measurements so far"), Retest: unit.Some(0.012), Notes: []string{"3 MiB of its memory stayed elsewhere"}, Results: []profiling.Standing{
		{Number: 1, Nodes: "6-7", CPUs: "12-15", Scores: "node=2 interconnect=1", Speed: unit.Some(1234.5), OfBest: unit.Some(1.0), Retest: unit.Some(0.01)},
		{Number: 2, Nodes: "2-5", CPUs: "4,6,8,10", Scores: "node=4 interconnect=6", Speed: unit.Some(1000.0), OfBest: unit.Some(0.81), Retest: unit.Some(0.014)},
	}}
	planned := measured
	planned.Outcome, planned.Retest, planned.Notes = "planned", unit.Opt[float64]{}, nil
	planned.Left = unit.UnknownValue[float64]("the program ends by itself, and did not run yet")
	planned.Job.Workload, planned.Job.Command, planned.Job.Metric = "", []string{"./solver", "a b"}, profiling.Metric{Kind: profiling.Time}
	planned.Results = []profiling.Standing{{Number: 1, Nodes: "6-7", CPUs: "12-15", Scores: "node=2 interconnect=1"}}
	var out bytes.Buffer
	for _, r := range []profiling.Report{measured, planned} {
		if err := Profiled(&out, r, render.TextOptions{Width: 100}); err != nil {
			t.Fatal(err)
		}
		out.WriteString("----\n")
	}
	golden.Check(t, filepath.Join("testdata", "profile.txt"), out.Bytes())

	placed := profiling.Placed{
		Workload: "/demo/db", How: unit.HowMeasured, Source: profiling.Simulator, Confidence: 0.9, Target: 0.9, Chosen: 1, Reached: unit.Some(0.97),
		Costs: []profiling.Cost{{Number: 1, Nodes: "6-7", Bytes: unit.GiB, Time: unit.Estimated(5.4, "rate")}},
		Outlooks: []profiling.Outlook{
			{Number: 1, Nodes: "6-7", Speed: 0.98, Low: 0.98, High: 0.98, Bounded: true, Measured: true, Verdict: profiling.Meets},
			{Number: 2, Nodes: "2-5", Speed: 1, Low: 0.88, High: 1.12, Bounded: true, Verdict: profiling.Unsure},
			{Number: 3, Nodes: "0-1,6-7", Speed: 0.7, Verdict: profiling.Unsure},
		},
	}
	out.Reset()
	for _, outcome := range []string{profiling.Stays, profiling.PutBack, profiling.None, profiling.Failed, profiling.Planned} {
		one := placed
		if one.Outcome = outcome; outcome == profiling.Planned {
			one.Outlooks = nil
		}
		if err := PlacedText(&out, one, render.TextOptions{Width: 100}); err != nil {
			t.Fatal(err)
		}
		out.WriteString("----\n")
	}
	golden.Check(t, filepath.Join("testdata", "placed.txt"), out.Bytes())
}
