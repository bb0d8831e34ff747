// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"path/filepath"
	"testing"
	"time"

	"homenode/internal/experiment"
	"homenode/internal/golden"
	"homenode/internal/profiling"
	"homenode/internal/render"
	"homenode/internal/unit"
)

// Each way that a deployment may end, and its plan, as a person reads it.
func TestDeploymentsText(t *testing.T) {
	at := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	begin := func(replicas ...string) profiling.Deployment {
		d, err := profiling.BeginDeployment(profiling.Deployment{Service: "shop", Least: 0.02, Margin: 0.02, Replicas: replicas, Job: profiling.Job{Metric: profiling.Metric{Kind: profiling.IPC}}}, at, nil)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	trial := func(workload string, low, high float64) profiling.DeployTrial {
		return profiling.DeployTrial{Workload: workload, At: at.Add(4 * time.Minute), How: unit.HowMeasured, Nodes: "1",
			Gain: profiling.Gain{Value: unit.Some((low + high) / 2), CI: experiment.Interval{Low: low, High: high, Coverage: 0.961}}}
	}
	kept := begin("/shop/a", "/shop/b").Take(trial("/shop/a", 0.04, 0.14)).Take(trial("/shop/b", -0.01, 0.03))
	all := []profiling.Deployment{
		begin("/shop/a"), kept, kept.Stop(profiling.DeployOperator, "a sale\x1b[31m", at.Add(time.Hour)), begin("/shop/a").Take(trial("/shop/a", -0.14, -0.04)),
		begin("/shop/a").Take(profiling.DeployTrial{Workload: "/shop/a", At: at, How: unit.HowMeasured, Nodes: "0-1"}),
		begin("/shop/a", "/shop/b").Take(trial("/shop/a", 0.04, 0.14)).Take(trial("/shop/b", -0.05, 0.03)), begin("/shop/a").Stop(profiling.DeployGone, "measure unbound: it has ended", at),
	}
	var out bytes.Buffer
	if err := Deployments(&out, NewDeploymentsReport(all, "No running agent was told."), render.TextOptions{Width: 100}); err != nil {
		t.Fatal(err)
	}
	out.WriteString("----\n")
	if err := Deployments(&out, NewDeploymentsReport(nil), render.TextOptions{Width: 100}); err != nil {
		t.Fatal(err)
	}
	out.WriteString("----\n")
	job := profiling.Job{Workload: "/shop/a"}
	known := profiling.TrialReport{Job: job, Nodes: "1", Why: "the agent's policy", Left: unit.Estimated(240.0, "rate")}
	unknown := known
	unknown.Left = unit.UnknownValue[float64]("nothing was moved yet")
	for _, plans := range [][]profiling.TrialReport{{known, known}, {known, unknown}} {
		if err := DeploymentPlanned(&out, NewDeploymentPlan(all[0], plans), render.TextOptions{Width: 100}); err != nil {
			t.Fatal(err)
		}
		out.WriteString("----\n")
	}
	golden.Check(t, filepath.Join("testdata", "deployments.txt"), out.Bytes())
}
