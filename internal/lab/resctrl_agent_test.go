// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"strings"
	"testing"
)

// Two loads fill the two CPUs of their node: here that is no reason to unbind the victim, or to
// move the polluter to the other node (make_room), which would help it as well. The counts are
// lower than the defaults, as a window takes the lab long: the past is 8 windows, not 20, and a
// step is judged after 4, not 6; and calm windows are 2 s, not 10. It waits longer before it isolates (8 windows, not 3), so that
// the loss can be measured first.
const isolateByPolicy = `
period: 1s
calm_period: 2s
events: perf
history: none
cgroups: ["/iso/*"]
services:
  - {name: victim, match: "/iso/victim", approved: true}
mao:
  strategy: A
  node_busy: 1
  make_room: false
  isolate: {enabled: true, min_past: 8, after: 8, watch: 4}
actuate: {rate: 64MiB}
`

// What the agent is to bind reads remote memory at first, as a service does that builds its
// tables; later its working set fits the caches, and it reads next to nothing.
const startVictim = `rm -f /tmp/iso-*
` + `%s` + `until [ -e /tmp/iso-warm ]; do sleep 0.1; done
(exec taskset 8 env GOMAXPROCS=1 homenode-agent agent --config /etc/iso.yaml </dev/null >/dev/null 2>/tmp/iso-agent.log) &
until [ "$(cat /sys/fs/cgroup/iso/victim/cpuset.cpus)" = 0-1 ]; do sleep 0.5; pidof homenode-agent >/dev/null || { cat /tmp/iso-agent.log >&2; exit 1; }; done
killall homenode-load
` + `%s` + `until [ -e /tmp/iso-victim ]; do sleep 0.1; done`

// A bound service whose working set fits the LLC does worse beside a stream. The agent finds
// that by itself, limits the stream, and the service regains at least 80 % of what it lost.
// Nothing is left after SIGTERM, nor after kill -9 and `homenode restore`.
func TestLabResctrlAgentIsolates(t *testing.T) {
	resctrlThorough(t)
	t.Parallel()
	g := like(t, "sapphire-rapids")
	t.Cleanup(func() {
		mustRun(t, g, "sh", "-c", "killall -9 homenode-agent; while pidof homenode-agent >/dev/null; do sleep 0.05; done; "+tearDownIsolate)
	})
	withResctrl(t, g, "")
	mustRun(t, g, "sh", "-c", setUpIsolate+"; ln -sf /bin/homenode /bin/homenode-agent")
	mustPut(t, g, "/etc/iso.yaml", []byte(isolateByPolicy))
	untouched := mustRun(t, g, "find", resctrlAt)
	for signal, restore := range map[string]string{"-TERM": "true", "-9": "homenode restore"} {
		t.Run(signal, func(t *testing.T) {
			isolatesByItself(t, g)
			mustRun(t, g, "sh", "-c", fmt.Sprintf("killall %s homenode-agent; while pidof homenode-agent >/dev/null; do sleep 0.05; done", signal))
			if signal == "-9" && isolated(t, g) == "" {
				t.Error("a kill took the group away")
			}
			mustRun(t, g, "sh", "-c", restore)
			if left := mustRun(t, g, "find", resctrlAt); left != untouched {
				t.Errorf("left behind in resctrl:\n%s\nbefore:\n%s", left, untouched)
			}
			if cpus := strings.TrimSpace(mustRun(t, g, "cat", "/sys/fs/cgroup/iso/victim/cpuset.cpus")); cpus != "" {
				t.Errorf("the victim is still bound to CPUs %s", cpus)
			}
			mustRun(t, g, "sh", "-c", "killall -9 homenode-load; while pidof homenode-load >/dev/null; do sleep 0.05; done")
		})
	}
}

func isolatesByItself(t *testing.T, g *Guest) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Log(mustRun(t, g, "sh", "-c", "cat /tmp/iso-agent.log; homenode why /iso/victim; homenode why /iso/loud; homenode status; true"))
		}
	}()
	phase(t, g, 0, 0)
	mustRun(t, g, "sh", "-c", fmt.Sprintf(startVictim,
		inCgroup("/iso/victim", "chase --threads 1 --ws 4MiB --bind-cpu 2 --bind-mem 0 --ready /tmp/iso-warm"),
		inCgroup("/iso/victim", "chase --threads 1 --ws 192KiB --bind-cpu 1 --bind-mem 0 --ready /tmp/iso-victim --out /tmp/iso-victim.json")))
	mustRun(t, g, "sleep", "26") // its past
	phase(t, g, 1, 4)
	phase(t, g, 0, 0)
	mustRun(t, g, "sh", "-c", inCgroup("/iso/loud", "stream --threads 1 --ws 8MiB --bind-cpu 0 --bind-mem 0 --ready /tmp/iso-loud")+"until [ -e /tmp/iso-loud ]; do sleep 0.1; done; sleep 1")
	phase(t, g, 2, 2)
	phase(t, g, 0, 0)
	if class := isolated(t, g); class != "" {
		t.Fatalf("isolated before the loss was measured: %s", class)
	}
	mustRun(t, g, "sh", "-c", "n=0; until ls "+resctrlAt+" | grep -q homenode-ctl || [ $((n+=1)) = 60 ]; do sleep 1; done; sleep 12") // both steps are judged
	phase(t, g, 4, 4)
	phase(t, g, 0, 0)
	class := isolated(t, g)
	t.Log(mustRun(t, g, "sh", "-c", "grep -e isolate -e class /tmp/iso-agent.log; true"))
	mustRun(t, g, "sh", "-c", "kill -TERM $(head -n 1 /sys/fs/cgroup/iso/victim/cgroup.procs); until [ -s /tmp/iso-victim.json ]; do sleep 0.1; done")
	judgeVictim(t, g, class)
	if !strings.Contains(class, "L3:") {
		t.Errorf("the stream's class is %q", class)
	}
}
