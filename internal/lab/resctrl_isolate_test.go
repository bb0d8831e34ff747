// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The agent, on a CPU of its own, knows how the victim does alone, and isolates on its
// default steps. Only its patience is shorter than the default: a round takes it about a
// second of these CPUs.
const isolateConfig = `
period: 2s
events: perf
cgroups: ["/iso/*"]
reserved_cpus: "3"
services:
  - {name: victim, match: "/iso/victim", approved: true, target_local_ratio: 0.99}
mao: {make_room: false, backoff_windows: 1, isolate: {min_past: 4, after: 2, watch: 3}}
`

const setUpIsolate = `
for c in victim loud; do mkdir -p /sys/fs/cgroup/iso/$c; done
echo "+cpuset +cpu +memory" > /sys/fs/cgroup/iso/cgroup.subtree_control
ln -sf /bin/homenode /bin/homenode-agent`

const tearDownIsolate = `killall -9 homenode-load homenode-agent; while pidof homenode-load homenode-agent >/dev/null; do sleep 0.05; done
homenode restore >/dev/null; rm -f /tmp/iso-*; for c in victim loud .; do rmdir /sys/fs/cgroup/iso/$c; done; true`

// inCgroup starts a load in a cgroup, in the background.
func inCgroup(cgroup, args string) string {
	return fmt.Sprintf("(echo 0 > /sys/fs/cgroup%s/cgroup.procs; exec homenode-load %s </dev/null >/dev/null 2>&1) & ", cgroup, args)
}

const startAgent = "taskset 8 env GOMAXPROCS=1 GOGC=off homenode-agent agent --config /etc/iso.yaml </dev/null >/dev/null 2>/tmp/iso-agent.log &"

// A victim whose working set fits the LLC, and a stream that pollutes it: homenode's agent
// finds the polluter by what resctrl counts, and isolates it. The victim regains at least
// 80 % of what it lost, in work per model cycle. Nothing is left at the end, nor after a
// kill.
func TestLabResctrlIsolation(t *testing.T) {
	resctrlThorough(t)
	t.Parallel()
	g := like(t, "sapphire-rapids")
	t.Cleanup(func() { mustRun(t, g, "sh", "-c", tearDownIsolate) })
	withResctrl(t, g, "")
	mustPut(t, g, "/etc/iso.yaml", []byte(isolateConfig))
	mustRun(t, g, "sh", "-c", setUpIsolate)
	untouched := mustRun(t, g, "find", resctrlAt)
	mustRun(t, g, "sh", "-c", startAgent)
	defer func() {
		if t.Failed() {
			t.Logf("agent: %s", mustRun(t, g, "sh", "-c", "tail -n 40 /tmp/iso-agent.log; homenode status; homenode why victim; homenode why loud; true"))
		}
	}()
	bindVictim(t, g)
	mustRun(t, g, "sh", "-c", inCgroup("/iso/victim", "chase --threads 1 --ws 192KiB --bind-cpu 1 --out /tmp/iso-victim.json")+"true")
	mustRun(t, g, "sleep", "6")
	phase(t, g, 1, 20)
	mustRun(t, g, "sh", "-c", inCgroup("/iso/loud", "stream --threads 1 --ws 8MiB --bind-cpu 0 --bind-mem 0")+"true")
	phase(t, g, 2, 0)
	waitFor(t, g, "an isolated polluter", func() bool { return isolated(t, g) != "" })
	phase(t, g, 3, 24) // the second step follows, where the first was not enough
	class := isolated(t, g)
	phase(t, g, 4, 16)
	phase(t, g, 5, 0)
	mustRun(t, g, "sh", "-c", "killall -TERM homenode-load; while pidof homenode-load >/dev/null; do sleep 0.1; done")
	judgeVictim(t, g, class)
	killIsolating(t, g, untouched)
}

// bindVictim has the agent bind the victim's cgroup: a load that is as large as a node's CPUs and
// whose memory is elsewhere is what it binds for.
func bindVictim(t *testing.T, g *Guest) {
	t.Helper()
	mustRun(t, g, "sh", "-c", inCgroup("/iso/victim", "chase --threads 2 --ws 6MiB --shared --thp off --ready /tmp/iso-ready")+"true")
	waitFor(t, g, "a bound victim", func() bool {
		return strings.Contains(mustRun(t, g, "sh", "-c", "homenode status || true"), " bound ")
	})
	mustRun(t, g, "sh", "-c", "killall -9 homenode-load; while pidof homenode-load >/dev/null; do sleep 0.1; done; true")
	if nodes := strings.TrimSpace(mustRun(t, g, "cat", "/sys/fs/cgroup/iso/victim/cpuset.cpus.effective")); nodes != "0-1" {
		t.Fatalf("the victim is bound to CPUs %s, want node 0's: the agent's own CPU is node 1's", nodes)
	}
}

// phase begins one of the loads' phases, and lets some seconds of the guest's pass.
func phase(t *testing.T, g *Guest, n, seconds int) {
	t.Helper()
	mustRun(t, g, "homenode-load", "control", "on", "--phase", fmt.Sprint(n))
	mustRun(t, g, "sleep", fmt.Sprint(seconds))
}

// isolated is the schemata of homenode's control group; "": there is none.
func isolated(t *testing.T, g *Guest) string {
	t.Helper()
	return strings.Join(strings.Fields(mustRun(t, g, "sh", "-c", "cat "+resctrlAt+"/homenode-ctl-*/schemata 2>/dev/null; true")), " ")
}

func judgeVictim(t *testing.T, g *Guest, class string) {
	t.Helper()
	var r struct {
		Phases []struct {
			Phase, Ops uint64
			Start      uint64 `json:"start_cycles"`
			End        uint64 `json:"end_cycles"`
		}
	}
	if err := json.Unmarshal([]byte(mustRun(t, g, "cat", "/tmp/iso-victim.json")), &r); err != nil {
		t.Fatal(err)
	}
	rate := map[uint64]float64{} // operations a thousand cycles
	for _, p := range r.Phases {
		rate[p.Phase] = 1000 * float64(p.Ops) / float64(p.End-p.Start)
	}
	alone, polluted, calm := rate[1], rate[2], rate[4]
	regained := (calm - polluted) / (alone - polluted)
	t.Logf("operations in 1000 model cycles: %.2f alone, %.2f polluted, %.2f isolated (%s): %.0f %% of the loss regained", alone, polluted, calm, class, 100*regained)
	if polluted > 0.8*alone {
		t.Errorf("the polluter costs the victim only %.0f %%: there is nothing to regain", 100*(1-polluted/alone))
	}
	if !(regained >= 0.8) {
		t.Errorf("%.0f %% of the loss regained, want 80", 100*regained)
	}
}

// killIsolating kills the agent while a neighbour is isolated.
func killIsolating(t *testing.T, g *Guest, untouched string) {
	t.Helper()
	if isolated(t, g) == "" {
		t.Error("the isolation ended before the agent")
	}
	mustRun(t, g, "sh", "-c", endAgent)
	if isolated(t, g) == "" {
		t.Error("a kill took the group away")
	}
	mustRun(t, g, "homenode", "restore")
	mustRun(t, g, "sh", "-c", "taskset 8 homenode-agent agent --config /etc/iso.yaml --rounds 1 2>&1")
	if left := mustRun(t, g, "find", resctrlAt); left != untouched {
		t.Errorf("left behind in resctrl:\n%s\nbefore:\n%s", left, untouched)
	}
}

const rotateConfig = `
period: 1s
events: perf
cgroups: ["/turn/*"]
`

// With 5 RMIDs there are two for homenode: four workloads take turns, none more than two at
// a time, each is measured, and what they are measured by is what the model counted.
func TestLabResctrlRotation(t *testing.T) {
	resctrlThorough(t)
	t.Parallel()
	g := like(t, "sapphire-rapids")
	const workloads, most = 4, 5 - 1 - 2
	t.Cleanup(func() {
		mustRun(t, g, "sh", "-c", "killall -9 homenode-load homenode-agent; while pidof homenode-load homenode-agent >/dev/null; do sleep 0.05; done; rmdir /sys/fs/cgroup/turn/* /sys/fs/cgroup/turn; true")
	})
	withResctrl(t, g, "rmids=5")
	mustPut(t, g, "/etc/iso.yaml", []byte(rotateConfig))
	for i := range workloads {
		mustRun(t, g, "sh", "-c", fmt.Sprintf("mkdir -p /sys/fs/cgroup/turn/w%d; ", i)+inCgroup(fmt.Sprintf("/turn/w%d", i), fmt.Sprintf("chase --threads 1 --ws 4MiB --bind-cpu %d --bind-mem 0", i%2))+"true")
	}
	mustRun(t, g, "sh", "-c", "ln -sf /bin/homenode /bin/homenode-agent; "+startAgent)
	seen, worst := map[string]bool{}, 0
	waitFor(t, g, "a group for each workload", func() bool {
		names := strings.Fields(mustRun(t, g, "sh", "-c", "ls "+resctrlAt+"/mon_groups"))
		worst = max(worst, len(names))
		for _, name := range names {
			seen[name] = true
		}
		return len(seen) >= workloads
	})
	t.Logf("groups: %v, at most %d at a time", slices.Collect(func(yield func(string) bool) {
		for name := range seen {
			yield(name)
		}
	}), worst)
	if worst > most {
		t.Errorf("%d groups at a time, want %d at most", worst, most)
	}
	mustRun(t, g, "sh", "-c", "killall homenode-agent; while pidof homenode-agent >/dev/null; do sleep 0.05; done")
	if left := mustRun(t, g, "ls", resctrlAt+"/mon_groups"); left != "" {
		t.Errorf("left behind: %s", left)
	}
}
