// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

const setUpIsolate = `
for c in victim loud; do mkdir -p /sys/fs/cgroup/iso/$c; done
echo "+cpuset +cpu +memory" > /sys/fs/cgroup/iso/cgroup.subtree_control
ln -sf /bin/homenode-lab /bin/homenode-lab-x`

const tearDownIsolate = `killall -9 homenode-load homenode-lab-x; while pidof homenode-load homenode-lab-x >/dev/null; do sleep 0.05; done
homenode restore >/dev/null; rm -f /tmp/iso-*; for c in victim loud .; do rmdir /sys/fs/cgroup/iso/$c; done; true`

// inCgroup starts a load in a cgroup, in the background.
func inCgroup(cgroup, args string) string {
	return fmt.Sprintf("(echo 0 > /sys/fs/cgroup%s/cgroup.procs; exec homenode-load %s </dev/null >/dev/null 2>&1) & ", cgroup, args)
}

const isolateLoud = `rm -f /tmp/iso-on; taskset 8 homenode-lab-x isolate --workload /iso/loud --cache 0.25 --bandwidth 0.4 --ready /tmp/iso-on </dev/null >/tmp/iso-log 2>&1 &
until [ -e /tmp/iso-on ]; do kill -0 $! || { cat /tmp/iso-log >&2; exit 1; }; sleep 0.1; done`

// A victim whose working set fits the LLC, and a stream that pollutes it: isolated by
// homenode's own applier, at the tightest of the policy's default steps, the victim regains at
// least 80 % of what it lost, in work per model cycle. Nothing is left at the end, nor after a
// kill.
func TestLabResctrlIsolation(t *testing.T) {
	resctrlThorough(t)
	t.Parallel()
	g := like(t, "sapphire-rapids")
	t.Cleanup(func() { mustRun(t, g, "sh", "-c", tearDownIsolate) })
	withResctrl(t, g, "")
	mustRun(t, g, "sh", "-c", setUpIsolate)
	untouched := mustRun(t, g, "find", resctrlAt)
	mustRun(t, g, "sh", "-c", inCgroup("/iso/victim", "chase --threads 1 --ws 192KiB --bind-cpu 1 --bind-mem 0 --ready /tmp/iso-victim --out /tmp/iso-victim.json")+"until [ -e /tmp/iso-victim ]; do sleep 0.1; done")
	phase(t, g, 1, 4)
	phase(t, g, 0, 0)
	mustRun(t, g, "sh", "-c", inCgroup("/iso/loud", "stream --threads 1 --ws 8MiB --bind-cpu 0 --bind-mem 0 --ready /tmp/iso-loud")+"until [ -e /tmp/iso-loud ]; do sleep 0.1; done; sleep 1")
	phase(t, g, 2, 4)
	phase(t, g, 0, 0)
	mustRun(t, g, "sh", "-c", isolateLoud)
	class := isolated(t, g)
	mustRun(t, g, "sleep", "1")
	phase(t, g, 4, 4)
	phase(t, g, 0, 0)
	mustRun(t, g, "sh", "-c", "killall -TERM homenode-load; while pidof homenode-load >/dev/null; do sleep 0.1; done; true")
	judgeVictim(t, g, class)
	endIsolating(t, g, untouched)
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

// endIsolating ends the applier by SIGTERM and, isolating again, by SIGKILL.
func endIsolating(t *testing.T, g *Guest, untouched string) {
	t.Helper()
	const end = "killall %s homenode-lab-x; while pidof homenode-lab-x >/dev/null; do sleep 0.05; done"
	mustRun(t, g, "sh", "-c", fmt.Sprintf(end, "-TERM"))
	if left := mustRun(t, g, "find", resctrlAt); left != untouched {
		t.Errorf("left behind in resctrl after SIGTERM:\n%s\nbefore:\n%s", left, untouched)
	}
	mustRun(t, g, "sh", "-c", inCgroup("/iso/loud", "hold --ws 64KiB")+isolateLoud)
	mustRun(t, g, "sh", "-c", fmt.Sprintf(end, "-9"))
	if isolated(t, g) == "" {
		t.Error("a kill took the group away")
	}
	mustRun(t, g, "homenode", "restore")
	if left := mustRun(t, g, "find", resctrlAt); left != untouched {
		t.Errorf("left behind in resctrl after a kill and restore:\n%s\nbefore:\n%s", left, untouched)
	}
}

const rotateConfig = `
period: 1s
events: perf
cgroups: ["/turn/*"]
`

// With 5 RMIDs there are two for homenode: four workloads take turns, no more than two at a
// time, and each is measured by its own group's counters.
func TestLabResctrlRotation(t *testing.T) {
	resctrlThorough(t)
	t.Parallel()
	g := like(t, "sapphire-rapids")
	const workloads, most = 4, 5 - 1 - 2
	t.Cleanup(func() {
		mustRun(t, g, "sh", "-c", "killall -9 homenode-load homenode-agent; while pidof homenode-load homenode-agent >/dev/null; do sleep 0.05; done; rmdir /sys/fs/cgroup/turn/* /sys/fs/cgroup/turn; true")
	})
	withResctrl(t, g, "rmids=5")
	mustPut(t, g, "/etc/turn.yaml", []byte(rotateConfig))
	for i := range workloads {
		mustRun(t, g, "sh", "-c", fmt.Sprintf("mkdir -p /sys/fs/cgroup/turn/w%d; ", i)+inCgroup(fmt.Sprintf("/turn/w%d", i), fmt.Sprintf("chase --threads 1 --ws 4MiB --bind-cpu %d --bind-mem 0", i%2))+"true")
	}
	mustRun(t, g, "sh", "-c", "ln -sf /bin/homenode /bin/homenode-agent; taskset 8 env GOMAXPROCS=1 GOGC=off homenode-agent agent --config /etc/turn.yaml </dev/null >/dev/null 2>/tmp/turn.log &")
	seen, measured, worst := map[string]bool{}, map[string]bool{}, 0
	waitFor(t, g, "a group for each workload, and traffic measured by it", func() bool {
		names := strings.Fields(mustRun(t, g, "sh", "-c", "ls "+resctrlAt+"/mon_groups"))
		worst = max(worst, len(names))
		for _, name := range names {
			seen[name] = true
		}
		measuredNow(t, g, measured)
		return len(seen) >= workloads && len(measured) >= workloads
	})
	t.Logf("groups: %v, at most %d at a time; measured: %v", slices.Sorted(maps.Keys(seen)), worst, slices.Sorted(maps.Keys(measured)))
	if worst > most {
		t.Errorf("%d groups at a time, want %d at most", worst, most)
	}
	mustRun(t, g, "sh", "-c", "killall homenode-agent; while pidof homenode-agent >/dev/null; do sleep 0.05; done")
	if left := mustRun(t, g, "ls", resctrlAt+"/mon_groups"); left != "" {
		t.Errorf("left behind: %s", left)
	}
}

// measuredNow adds the workloads whose traffic the agent's last window has from resctrl's own
// counters.
func measuredNow(t *testing.T, g *Guest, measured map[string]bool) {
	t.Helper()
	var s struct {
		Window struct {
			Workloads []struct {
				ID      string
				Traffic struct{ How, From string } `json:"traffic_bytes"`
			}
		}
	}
	text := mustRun(t, g, "sh", "-c", "homenode status -o json 2>/dev/null; true")
	if json.Unmarshal([]byte(text), &s) != nil { // before its first window
		return
	}
	for _, w := range s.Window.Workloads {
		if w.Traffic.How == "measured" && strings.Contains(w.Traffic.From, "mbm_total_bytes") {
			measured[w.ID] = true
		}
	}
}
