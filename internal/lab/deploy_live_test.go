// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"homenode/internal/profiling"
	"homenode/internal/report"
)

const (
	setUpDeploy = `mkdir -p /tmp/prof-deploy && cat > /tmp/prof-deploy/agent.yaml <<'F'
period: 200ms
events: perf
state_dir: /tmp/prof-deploy/state
cgroups: ["/prof/*"]
services:
  - {name: shop, match: "/prof/*", target_local_ratio: 0.99}
F`
	tearDownDeploy = `rm -rf /tmp/prof-deploy`
	deployStart    = `homenode deploy start shop --config /tmp/prof-deploy/agent.yaml --repeats 8 --metric file:/tmp/prof-count --counter --warm-up 100ms --for 500ms --rate max`
	deployBack     = `homenode deploy rollback shop --config /tmp/prof-deploy/agent.yaml`
	// whenFree waits until the workload may run anywhere again; the agent is $pid.
	whenFree = `while [ "$(cat /sys/fs/cgroup/prof/a/cpuset.cpus.effective)" != 0-3 ]; do sleep 0.01; kill -0 $pid || exit 1; done`
)

// deploysLive deploys the workload of TestLabExperiment: a kill -9 in the middle is undone; a gain is kept,
// the agent binds it, and unbinds it after a rollback; where binding hurts, nothing stays. With
// HOMENODE_DEPLOY=all an interrupted one is continued, and one is hurt until its end.
func deploysLive(t *testing.T, g *Guest, says func(exit int, script string, words ...string) Result, unchanged func(when string)) {
	t.Helper()
	all, memory := os.Getenv("HOMENODE_DEPLOY") == "all", memoryByNode(t, g)
	mustRun(t, g, "sh", "-c", setUpDeploy)
	t.Cleanup(func() { mustRun(t, g, "sh", "-c", tearDownDeploy) })
	says(0, "homenode deploy plan shop --config /tmp/prof-deploy/agent.yaml --repeats 4 --metric file:/tmp/prof-count --counter --for 500ms", "the agent's policy", "nothing is changed")
	unchanged("plan")

	mustRun(t, g, "sh", "-c", deployStart+` --nodes 0 >/tmp/prof.out 2>&1 & pid=$!; `+whenBound+`; kill -9 $pid; wait $pid; true`)
	says(0, `homenode deploy status --config /tmp/prof-deploy/agent.yaml`, "shop: under way; 0 of 1 replica tried")
	says(2, deployStart+" --nodes 0 --least 0.03", "under way with other settings")
	says(0, "homenode restore --state /tmp/prof-deploy/state", "cpuset.cpus")
	unchanged("kill -9, then homenode restore")
	says(0, deployBack, "it was asked for")
	unchanged("a rollback")
	for n, now := range memoryByNode(t, g) {
		if math.Abs(now-memory[n]) > 0.05*(memory[0]+memory[1]) {
			t.Errorf("after a rollback node %d has %.0f bytes of its memory, before %.0f", n, now, memory[n])
		}
	}
	says(4, deployBack, "nothing is left of its trials")
	if all {
		says(0, deployStart+` --nodes 0 --least 0.03 >/tmp/prof.out 2>&1 & pid=$!; `+whenBound+`; kill $pid; wait $pid; cat /tmp/prof.out; true`, "the same command continues")
		unchanged("SIGTERM")
	}

	r := says(0, deployStart+" --nodes 0 --least 0.03 -o json", `"kept"`, "No agent runs")
	unchanged("kept")
	var got report.DeploymentsReport
	if err := json.Unmarshal([]byte(r.Stdout), &got); err != nil || len(got.Deployments) != 1 {
		t.Fatal(err, r.Stdout)
	}
	d := got.Deployments[0].Deployment
	if d.Phase != profiling.Kept || len(d.Trials) != 1 || d.Trials[0].How.String() != "modelled" || !(d.Trials[0].Gain.CI.Low > 0.03) {
		t.Errorf("%+v", d)
	}
	t.Logf("%q", got.Deployments[0].Sentences)

	// The agent binds what is kept, and only that.
	says(0, `homenode agent --config /tmp/prof-deploy/agent.yaml >/tmp/prof.agent 2>&1 & pid=$!; `+whenBound+`; `+deployBack+` --why "a sale"; `+whenFree+`; kill $pid; wait $pid`, "takes this with its next window", "a sale")
	unchanged("rolled back while an agent runs")
	says(4, deployBack, "rolled back already")

	// Where others use the CPUs of the nodes, binding hurts.
	if all {
		says(3, deployStart+" --nodes 1 --most-loss 0", "binding does harm")
	}
	says(3, deployStart+" --nodes 1 --most-loss 0.1", "binding does harm", "--most-loss is 10%")
	unchanged("rolled back")
	says(0, `homenode deploy forget shop --config /tmp/prof-deploy/agent.yaml; homenode deploy status --config /tmp/prof-deploy/agent.yaml`, "There are no deployments")
}
