// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

const hotplugConfig = `
period: 200ms
reserved_cpus: "0"
cgroups: ["/plug/*"]
services:
  - {name: plug, match: "/plug/*", approved: true, target_local_ratio: 0.99}
mao: {max_binds_per_window: 2, backoff_windows: 1, backoff_cap: 1}
actuate: {rate: 64MiB}
`

// setUpHotplug starts a workload that runs on node 0, with its memory on node 1; then it may run and
// allocate anywhere. CPU 0 cannot go offline and is reserved: two threads fit only on node 1.
const setUpHotplug = `
base=/sys/fs/cgroup
mkdir -p $base/plug/a
echo "+cpuset +cpu +memory" > $base/plug/cgroup.subtree_control
echo 1 > $base/plug/a/cpuset.mems
echo 0-1 > $base/plug/a/cpuset.cpus
(echo 0 > $base/plug/a/cgroup.procs
 exec homenode-load chase --threads 2 --ws 6MiB --shared --extra 20MiB --thp off --ready /tmp/plug.ready --out /tmp/plug.json) </dev/null >/dev/null 2>&1 &
while [ ! -e /tmp/plug.ready ]; do sleep 0.1; done
echo 0-1 > $base/plug/a/cpuset.mems
echo 0-3 > $base/plug/a/cpuset.cpus
`

const tearDownHotplug = `
for c in 2 3; do echo 1 > /sys/devices/system/cpu/cpu$c/online; done
killall -9 homenode-load homenode-agent; sleep 0.3; homenode-load control off; rm -f /tmp/plug*; rmdir /sys/fs/cgroup/plug/a /sys/fs/cgroup/plug; true`

const snapshotHotplug = `cd /sys/fs/cgroup; cat cgroup.subtree_control plug/cgroup.subtree_control plug/a/cpuset.mems plug/a/cpuset.cpus.effective plug/a/cpuset.mems.effective`

// CPUs of a bound workload's node go offline, all of them in the end, and come back. The
// agent continues, leaves no workload on a node without CPUs, binds again, and puts back
// what was there before.
func TestLabHotplugWhileBound(t *testing.T) {
	t.Parallel()
	if os.Getenv("HOMENODE_HOTPLUG") == "" {
		t.Skip("HOMENODE_HOTPLUG is not set: the tests that share the guest would be without CPUs for two minutes; make test-full sets it")
	}
	g := guest(t, "two", "v2")
	if r, err := g.Run(t.Context(), "sh", "-c", "[ -w /sys/devices/system/cpu/cpu3/online ]"); err != nil || r.Exit != 0 {
		t.Skip("this guest's CPUs cannot go offline")
	}
	t.Logf("memory blocks that could go offline: %s", mustRun(t, g, "sh", "-c", "ls -d /sys/devices/system/memory/memory* 2>/dev/null | wc -l"))
	if err := g.Put(context.Background(), "/etc/plug.yaml", 0o644, []byte(hotplugConfig)); err != nil {
		t.Fatal(err)
	}
	mustRun(t, g, "ln", "-sf", "/bin/homenode", "/bin/homenode-agent")
	mustRun(t, g, "sh", "-c", setUpHotplug)
	defer mustRun(t, g, "sh", "-c", tearDownHotplug)
	mustRun(t, g, "homenode-load", "control", "on")
	before := mustRun(t, g, "sh", "-c", snapshotHotplug)
	mustRun(t, g, "sh", "-c", "homenode-agent agent --config /etc/plug.yaml </dev/null >/dev/null 2>/tmp/plug.log &")
	defer func() {
		if t.Failed() {
			t.Logf("agent: %s", mustRun(t, g, "sh", "-c", "tail -n 60 /tmp/plug.log; homenode status; homenode why a; true"))
		}
	}()
	waitFor(t, g, "bound to node 1", func() bool { return plugged(t, g).bound("1") })
	mustRun(t, g, "sh", "-c", "echo 0 > /sys/devices/system/cpu/cpu3/online")
	waitFor(t, g, "CPU 3 gone from the window", func() bool { s := plugged(t, g); return s.nodeCPUs(1) == "2" && s.bound("1") })
	mustRun(t, g, "sh", "-c", "echo 0 > /sys/devices/system/cpu/cpu2/online")
	waitFor(t, g, "unbound from a node without CPUs", func() bool {
		s := plugged(t, g)
		return s.nodeCPUs(1) == "" && !s.bound("1") && mustRun(t, g, "cat", "/sys/fs/cgroup/plug/a/cpuset.cpus.effective") == "0-1\n"
	})
	if got := mustRun(t, g, "cat", "/sys/fs/cgroup/plug/a/cpuset.mems"); got != "0-1\n" {
		t.Errorf("its mems are %q after the unbind", got)
	}
	mustRun(t, g, "sh", "-c", "for c in 2 3; do echo 1 > /sys/devices/system/cpu/cpu$c/online; done")
	waitFor(t, g, "bound again", func() bool { s := plugged(t, g); return s.nodeCPUs(1) == "2-3" && s.bound("1") })
	// A workload that was bound between the two has its state of that time.
	if got := mustRun(t, g, "cat", "/sys/fs/cgroup/plug/a/cpuset.cpus.effective"); got != "2-3\n" && got != "2\n" {
		t.Errorf("bound again to %q", got)
	}
	mustRun(t, g, "sh", "-c", "killall homenode-agent; while pidof homenode-agent >/dev/null; do sleep 0.05; done")
	if after := mustRun(t, g, "sh", "-c", snapshotHotplug); after != before {
		t.Errorf("left behind:\n%s\nbefore:\n%s", after, before)
	}
}

// plugStatus is the part of `homenode status -o json` that is checked.
type plugStatus struct {
	Window struct {
		Nodes []struct {
			ID   int    `json:"id"`
			CPUs string `json:"cpus"`
		} `json:"nodes"`
	} `json:"window"`
	Workloads []struct {
		Stage string `json:"stage"`
		Nodes string `json:"nodes"`
	} `json:"workloads"`
}

func plugged(t *testing.T, g *Guest) (s plugStatus) {
	t.Helper()
	out := mustRun(t, g, "sh", "-c", "homenode status -o json || true")
	if err := json.Unmarshal([]byte(out), &s); err != nil && strings.TrimSpace(out) != "" {
		t.Logf("status: %v", err)
	}
	return s
}

func (s plugStatus) bound(nodes string) bool {
	return len(s.Workloads) == 1 && s.Workloads[0].Stage == "bound" && s.Workloads[0].Nodes == nodes
}

func (s plugStatus) nodeCPUs(id int) string {
	for _, n := range s.Window.Nodes {
		if n.ID == id {
			return n.CPUs
		}
	}
	return "none"
}
