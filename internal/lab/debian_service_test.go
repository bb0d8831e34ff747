// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const serviceAgent = `
period: 2s
calm_period: 2s
cgroups: ["/system.slice/lone.service", "/made/*"]
reserved_cpus: "3" # which leaves node 1 too small
api: {group: homenode}
services:
  - {name: all, match: "/*/*", approved: true, target_local_ratio: 0.99}
mao: {max_binds_per_window: 4, backoff_windows: 1, backoff_cap: 1}
actuate: {max_stall: 1s}
`

// startServed starts a unit whose processes are not root's: reading them and moving
// their pages needs capabilities. Its memory is on node 1; after that it has no
// binding.
const startServed = `
systemctl stop lone 2>/dev/null || true
rm -rf /run/served; mkdir -p -m 777 /run/served
chmod 666 /sys/bus/pci/devices/0000:00:02.0/resource2 # the model, which the load asks for its time
systemd-run --quiet --unit lone -p User=nobody -p AllowedMemoryNodes=1 -p AllowedCPUs=0-1 ` + servedLoad + `--threads 2 --ready /run/served/lone
n=0; until [ -e /run/served/lone ]; do n=$((n + 1)); [ $n -lt 600 ]; sleep 0.2; done
systemctl set-property --runtime lone.service AllowedMemoryNodes=0-1 AllowedCPUs=0-3
systemctl set-property --runtime lone.service AllowedMemoryNodes= AllowedCPUs=
`

// startMade adds a cgroup without a manager, also of another user. Its memory is on
// node 0, where the unit leaves it no CPU.
const startMade = `
cd /sys/fs/cgroup; mkdir -p made
echo +cpuset > cgroup.subtree_control
echo "+cpuset +cpu +memory" > made/cgroup.subtree_control
mkdir -p made/a
echo 0 > made/a/cpuset.mems
(echo 0 > made/a/cgroup.procs; exec setpriv --reuid nobody --regid nogroup --clear-groups ` + servedLoad + `--threads 1 --ready /run/served/made) </dev/null >/dev/null 2>&1 &
n=0; until [ -e /run/served/made ]; do n=$((n + 1)); [ $n -lt 600 ]; sleep 0.2; done
echo 0-1 > made/a/cpuset.mems
`

const servedLoad = "homenode-load chase --ws 4MiB --shared --thp off "

const endServed = `systemctl stop homenode; systemctl stop lone; echo 1 > /sys/fs/cgroup/made/a/cgroup.kill
n=0; until rmdir /sys/fs/cgroup/made/a || [ $n -ge 20 ]; do n=$((n + 1)); sleep 1; done; rmdir /sys/fs/cgroup/made; rm -rf /run/served /etc/homenode; true`

// showServed prints what is set for the unit, that systemd has nothing left over for it,
// and what the cgroup may use.
const showServed = `systemctl show -p AllowedCPUs,AllowedMemoryNodes,NeedDaemonReload lone.service
cd /sys/fs/cgroup/made/a 2>/dev/null && cat cpuset.cpus.effective cpuset.mems.effective || true`

const servedLog = "journalctl -u homenode --no-pager -o cat"

// toServe puts what deploy/ has, and a configuration, where a package would, and switches the
// model on.
func toServe(t *testing.T, g *Guest) {
	t.Helper()
	for from, to := range map[string]string{"systemd/homenode.service": "/etc/systemd/system/homenode.service", "sysusers.d/homenode.conf": "/etc/sysusers.d/homenode.conf", "sysctl.d/homenode.conf": "/etc/sysctl.d/homenode.conf"} {
		data, err := os.ReadFile(filepath.Join(root, "deploy", from))
		if err != nil {
			t.Fatal(err)
		}
		mustPut(t, g, to, data)
	}
	mustPut(t, g, "/etc/homenode/agent.yaml", []byte(serviceAgent))
	mustRun(t, g, "homenode-load", "control", "on")
}

// The unit of deploy/ under a systemd. The agent becomes ready, has the four capabilities
// and no others, counts, binds a unit and a cgroup of processes that are not root's, and
// moves their pages. Members of its group may read its API, and no other user may. It
// reloads its configuration, but not a bad one. After a kill it restores the settings and
// starts again. At its end everything is as it was.
func TestLabDebianService(t *testing.T) {
	t.Parallel()
	g := debianGuest(t)
	toServe(t, g)
	defer mustRun(t, g, "homenode-load", "control", "off")
	defer mustRun(t, g, "sh", "-c", endServed)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the agent's log:\n%s", mustRun(t, g, "sh", "-c", servedLog+" | tail -n 60; systemctl status homenode; true"))
		}
	})
	mustRun(t, g, "sh", "-ec", startServed+"systemd-sysusers; sysctl -q -p /etc/sysctl.d/homenode.conf; systemctl daemon-reload")
	before := mustRun(t, g, "sh", "-c", showServed) + "0-3\n0-1\n"
	mustRun(t, g, "systemctl", "start", "homenode") // Type=notify: it is ready
	waitFor(t, g, "the unit is bound", func() bool { return strings.HasPrefix(mustRun(t, g, "sh", "-c", showServed), lonelyBound) })
	mustRun(t, g, "sh", "-ec", startMade)
	servedBound(t, g)
	log := mustRun(t, g, "sh", "-c", servedLog)
	if servedCounted(t, log); movedIn(log) < 6<<20 {
		t.Errorf("it moved %d bytes; its log:\n%s", movedIn(log), log)
	}
	servedPowers(t, g)
	servedReload(t, g)
	servedKilled(t, g)

	mustRun(t, g, "systemctl", "stop", "homenode")
	if after := mustRun(t, g, "sh", "-c", showServed); after != before {
		t.Errorf("after its end:\n%s\nbefore:\n%s", after, before)
	}
	if failed := mustRun(t, g, "sh", "-c", "systemctl is-failed homenode || true"); strings.TrimSpace(failed) != "inactive" {
		t.Errorf("after its end the unit is %s", failed)
	}
}

// servedKilled: the restore of ExecStopPost puts back what a kill leaves. Then the agent
// is started again, and binds again.
func servedKilled(t *testing.T, g *Guest) {
	t.Helper()

	state := func() []string {
		return strings.Fields(mustRun(t, g, "sh", "-c", "for p in MainPID ActiveState; do systemctl show -p $p --value homenode; done"))
	}
	first := state()
	mustRun(t, g, "systemctl", "kill", "-s", "KILL", "homenode")
	waitFor(t, g, "it is started again", func() bool {
		now := state()
		return len(now) == 2 && now[1] == "active" && now[0] != first[0]
	})
	servedBound(t, g)
	log := mustRun(t, g, "sh", "-c", servedLog)
	_, log, killed := strings.Cut(log, "code=killed, status=9/KILL")
	if !killed || !strings.Contains(log, "unit lone.service AllowedCPUs: put-back: ") || !strings.Contains(log, "unit lone.service AllowedMemoryNodes: put-back: ") || !strings.Contains(log, "/made/a cpuset.cpus: ") {
		t.Errorf("ExecStopPost did not put all back; the log since:\n%s", log)
	}
	if strings.Contains(log, "left by an earlier homenode: put back\"") || !strings.Contains(log, "step=set-mems") {
		t.Errorf("after its restart it had settings to put back, or bound nothing; the log since:\n%s", log)
	}
	servedCounted(t, log)
}

func mustPut(t *testing.T, g *Guest, path string, data []byte) {
	t.Helper()
	mustRun(t, g, "mkdir", "-p", filepath.Dir(path))
	if err := g.Put(t.Context(), path, 0o644, data); err != nil {
		t.Fatal(err)
	}
}

const lonelyBound = "AllowedCPUs=0-1\nAllowedMemoryNodes=0\n"

// servedBound waits until the unit is on node 0 and the cgroup on the remaining CPUs of
// node 1.
func servedBound(t *testing.T, g *Guest) {
	t.Helper()
	waitFor(t, g, "the unit and the cgroup are bound", func() bool {
		now := mustRun(t, g, "sh", "-c", showServed)
		return strings.HasPrefix(now, lonelyBound) && strings.HasSuffix(now, "\n2\n1\n")
	})
}

// servedCounted: the agent counted by BPF, in one of 16 ticks, and had every
// permission.
func servedCounted(t *testing.T, log string) {
	t.Helper()
	if !strings.Contains(log, "events=lab") || !strings.Contains(log, "(lab), in one of 16 ticks") || strings.Contains(log, "not permitted") {
		t.Errorf("it did not count, or not by BPF; its log:\n%s", log)
	}
}

// servedPowers: capabilities 19, 23, 38 and 39 (include/uapi/linux/capability.h).
func servedPowers(t *testing.T, g *Guest) {
	t.Helper()
	const want = "CapEff:\t000000c000880000\nCapBnd:\t000000c000880000\nCapAmb:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n"
	if got := mustRun(t, g, "sh", "-c", "grep -E '^(CapEff|CapBnd|CapAmb|NoNewPrivs|Seccomp):' /proc/$(systemctl show -p MainPID --value homenode)/status"); got != want {
		t.Errorf("it has\n%swant\n%s", got, want)
	}
	if got := mustRun(t, g, "stat", "-c", "%A %U %G", "/run/homenode/api.sock"); got != "srw-rw---- root homenode\n" {
		t.Errorf("its socket is %s", got)
	}
	for group, want := range map[string]string{"homenode": "0\n", "nogroup": "2\n"} {
		got := mustRun(t, g, "sh", "-c", "setpriv --reuid nobody --regid "+group+" --clear-groups homenode status >/dev/null 2>&1; echo $?")
		if got != want {
			t.Errorf("homenode status as one of group %s: exit code %s", group, got)
		}
	}
}

func servedReload(t *testing.T, g *Guest) {
	t.Helper()
	mustPut(t, g, "/etc/homenode/agent.yaml", []byte(strings.ReplaceAll(serviceAgent, "period: 2s", "period: 3s")))
	mustRun(t, g, "systemctl", "reload", "homenode")
	waitFor(t, g, "it has reloaded", func() bool {
		return strings.Contains(mustRun(t, g, "sh", "-c", servedLog), "msg=reload ")
	})
	mustPut(t, g, "/etc/homenode/agent.yaml", []byte("period: never\n"))
	if said := mustRun(t, g, "sh", "-c", "homenode reload 2>&1; echo $?"); !strings.HasSuffix(said, "\n2\n") {
		t.Errorf("a bad configuration: %s", said)
	}
	mustPut(t, g, "/etc/homenode/agent.yaml", []byte(serviceAgent))
	time.Sleep(time.Second)
	if now := mustRun(t, g, "systemctl", "is-active", "homenode"); now != "active\n" {
		t.Errorf("after a bad configuration it is %s", now)
	}
}
