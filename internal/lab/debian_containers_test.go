// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

const containerAgent = `
period: 1s
cgroups: ["%s"]
reserved_cpus: "3"
services:
  - {name: all, match: "/*/*", approved: true, target_local_ratio: 0.99}
mao: {max_binds_per_window: 4, backoff_windows: 1, backoff_cap: 1}
actuate: {max_stall: 1s}
`

// containerLoad has its memory on node 1, because its parent has no other at first. It
// needs two CPUs, and that node has only one that is not reserved.
const containerLoad = "/bin/homenode-load chase --threads 2 --ws 4MiB --shared --thp off --ready /web.ready"

const startContainerAgent = `
(exec homenode agent --config /etc/c.yaml </dev/null >/dev/null 2>/tmp/c.log) &
echo $! > /tmp/c.pid
`

// endContainerAgent ends the agent and waits for its end.
const endContainerAgent = `kill -%s $(cat /tmp/c.pid); while kill -0 $(cat /tmp/c.pid) 2>/dev/null; do sleep 0.1; done`

// programOnNode0 puts the program's file on node 0 before the container starts. The
// mapped part of its 258 pages would move inside the runtime's write, because an agent
// of one container does not move pages that other processes may map too.
const programOnNode0 = "sync; echo 1 > /proc/sys/vm/drop_caches; for f in " + container + "/bin/homenode-load /var/lib/docker/*/*/diff/bin/homenode-load; do [ ! -e $f ] || taskset 1 cat $f > /dev/null; done; "

// runtimeCase is one way to run the container "web".
type runtimeCase struct {
	start, stop, ready string
	narrow, wide       string // CPUs and nodes of the cgroup's parent: of node 1, and all
	cgroup             string // a script that prints it
	setting            string // of the journal
	drift              string // another process sets CPUs 1-3
}

func (c runtimeCase) show(cgroup string) string {
	return "cd /sys/fs/cgroup" + cgroup + " && cat cpuset.cpus.effective cpuset.mems.effective"
}

// Containers of containerd, with its own cgroups and with systemd's, and one of
// Docker.
func TestLabDebianContainers(t *testing.T) {
	t.Parallel()
	g := debianGuest(t)
	mustRun(t, g, "homenode-load", "control", "on")
	defer mustRun(t, g, "homenode-load", "control", "off")
	const kill = "ctr task kill -s KILL web; n=0; while ctr container info web >/dev/null 2>&1 && [ $n -lt 20 ]; do sleep 1; ctr container rm web; n=$((n + 1)); done; rm -f " + container + "/web.ready; true"
	const narrowSlice, wideSlice = "systemctl start web.slice; systemctl set-property --runtime web.slice AllowedMemoryNodes=1", "systemctl set-property --runtime web.slice AllowedMemoryNodes=0-1"
	const update = "runc --root /run/containerd/runc/default update --cpuset-cpus 1-3 web"
	t.Run("containerd", func(t *testing.T) {
		bindContainer(t, g, runtimeCase{
			start: "ctr run -d --rootfs " + container + " web " + containerLoad, stop: kill, ready: container + "/web.ready",
			narrow: "cd /sys/fs/cgroup; mkdir -p default; echo +cpuset > cgroup.subtree_control; echo 1 > default/cpuset.mems", wide: "echo 0-1 > /sys/fs/cgroup/default/cpuset.mems",
			cgroup: "echo /default/web", setting: "container containerd/default/web", drift: update,
		})
	})
	t.Run("containerd with systemd", func(t *testing.T) {
		bindContainer(t, g, runtimeCase{
			start: "ctr run -d --runc-systemd-cgroup --cgroup web.slice:containerd:web --rootfs " + container + " web " + containerLoad, stop: kill, ready: container + "/web.ready",
			narrow: narrowSlice, wide: wideSlice,
			cgroup: "echo /web.slice/containerd-web.scope", setting: "container containerd/default/web",
			drift: "runc --systemd-cgroup --root /run/containerd/runc/default update --cpuset-cpus 1-3 web",
		})
	})
	t.Run("docker", func(t *testing.T) {
		if out := mustRun(t, g, "sh", "-c", "command -v dockerd || true"); out == "" {
			t.Skip("there is no Docker in this guest: it was built before")
		}
		mustRun(t, g, "sh", "-ec", "systemctl start docker; tar -C "+container+" -c . | docker import - load; docker version --format '{{.Server.Version}} {{.Server.APIVersion}}'")
		defer mustRun(t, g, "sh", "-c", "systemctl stop docker docker.socket; true")
		bindContainer(t, g, runtimeCase{
			start: "docker run -d --cgroup-parent web.slice --network none --security-opt seccomp=unconfined --security-opt apparmor=unconfined -v /tmp/web:/out --name web load " + strings.Replace(containerLoad, "/web.ready", "/out/web.ready", 1),
			stop:  "docker rm -f web; rm -rf /tmp/web; true", ready: "/tmp/web/web.ready",
			narrow: narrowSlice, wide: wideSlice,
			cgroup:  "echo /web.slice/docker-$(docker inspect --format '{{.Id}}' web).scope",
			setting: "container docker/", drift: "docker update --cpuset-cpus 1-3 web",
		})
	})
}

// bindContainer checks that a container is bound through its runtime: CPUs, then pages,
// then nodes, and that the runtime moves next to nothing. SIGTERM restores the
// container's CPUs and nodes; after SIGKILL restore does; a value that another process
// set in between stays.
func bindContainer(t *testing.T, g *Guest, c runtimeCase) {
	start := func() string {
		t.Helper()
		mustRun(t, g, "sh", "-c", c.stop)
		mustRun(t, g, "sh", "-ec", "mkdir -p /tmp/web; "+programOnNode0+c.narrow+"; "+c.start)
		waitFor(t, g, "the container is ready", func() bool { return mustRun(t, g, "sh", "-c", "ls "+c.ready+" 2>/dev/null || true") != "" })
		cg := strings.TrimSpace(mustRun(t, g, "sh", "-c", c.cgroup))
		mustRun(t, g, "sh", "-ec", c.wide)
		return cg
	}
	cg := start()
	defer mustRun(t, g, "sh", "-c", "kill -9 $(cat /tmp/c.pid) 2>/dev/null; homenode restore --config /etc/c.yaml; "+c.stop)
	before := mustRun(t, g, "sh", "-c", c.show(cg))
	first := pagesMigrated(t, g)
	log := bindWeb(t, g, cg, c.setting)
	inside := pagesMigrated(t, g) - first - movedIn(log)/4096
	t.Logf("%d pages moved by us, %d inside the runtime's write", movedIn(log)/4096, inside)
	if movedIn(log) < 3<<20 || inside > 256 {
		t.Errorf("moved %d bytes before its nodes were set, and %d pages inside; the agent's log:\n%s", movedIn(log), inside, log)
	}
	cpus, moved, mems := strings.Index(log, "cpuset.cpus = 0-1"), strings.Index(log, "step=move-pages"), strings.Index(log, "cpuset.mems = 0")
	if cpus < 0 || moved < 0 || mems < cpus || mems < moved { // CPUs or memory first, by the way that was chosen
		t.Errorf("the order is wrong: CPUs at %d, moves at %d, nodes at %d:\n%s", cpus, moved, mems, log)
	}
	if now := mustRun(t, g, "sh", "-c", c.show(cg)); now != "0-1\n0\n" {
		t.Errorf("bound, it may use %q", now)
	}
	mustRun(t, g, "sh", "-c", fmt.Sprintf(endContainerAgent, "TERM"))
	if after := mustRun(t, g, "sh", "-c", c.show(cg)); after != before {
		t.Errorf("after SIGTERM: %q, before: %q\n%s", after, before, mustRun(t, g, "cat", "/tmp/c.log"))
	}

	cg = start()
	bindWeb(t, g, cg, c.setting)
	mustRun(t, g, "sh", "-c", fmt.Sprintf(endContainerAgent, "KILL"))
	if now := mustRun(t, g, "sh", "-c", c.show(cg)); now != "0-1\n0\n" {
		t.Errorf("killed, it left %q", now)
	}
	// The runtime may not answer in time: then the record stays, and it is asked again.
	said := mustRun(t, g, "sh", "-c", "until homenode restore --config /etc/c.yaml; do sleep 1; done")
	if after := mustRun(t, g, "sh", "-c", c.show(cg)); after != before || !strings.Contains(said, `stands for ""`) {
		t.Errorf("after restore: %q, before: %q\n%s", after, before, said)
	}
	leaveDrift(t, g, c, start())
}

func leaveDrift(t *testing.T, g *Guest, c runtimeCase, cg string) {
	t.Helper()
	bindWeb(t, g, cg, c.setting)
	mustRun(t, g, "sh", "-ec", c.drift)
	var log string
	waitFor(t, g, "drift is told", func() bool {
		log = mustRun(t, g, "sh", "-c", "cat /tmp/c.log; homenode why web 2>&1; cat /run/homenode/status.json")
		return strings.Contains(log, "drift")
	})
	time.Sleep(time.Second)
	mustRun(t, g, "sh", "-c", fmt.Sprintf(endContainerAgent, "TERM"))
	if now := mustRun(t, g, "sh", "-c", "cat /sys/fs/cgroup"+cg+"/cpuset.cpus"); now != "1-3\n" {
		t.Errorf("what another process set became %q; the agent's log:\n%s", now, mustRun(t, g, "cat", "/tmp/c.log"))
	}
}

func bindWeb(t *testing.T, g *Guest, cg, setting string) (log string) {
	t.Helper()
	if err := g.Put(t.Context(), "/etc/c.yaml", 0o644, fmt.Appendf(nil, containerAgent, cg)); err != nil {
		t.Fatal(err)
	}
	mustRun(t, g, "sh", "-c", startContainerAgent)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the agent's log:\n%s", mustRun(t, g, "sh", "-c", "tail -n 60 /tmp/c.log; homenode why web 2>&1; true"))
		}
	})
	waitFor(t, g, cg+" is bound", func() bool {
		log = mustRun(t, g, "cat", "/tmp/c.log")
		return strings.Contains(log, setting) && strings.Contains(log, "cpuset.mems = 0")
	})
	return log
}

func pagesMigrated(t *testing.T, g *Guest) (n int) {
	t.Helper()
	fmt.Sscan(mustRun(t, g, "sed", "-n", "s/^pgmigrate_success //p", "/proc/vmstat"), &n)
	return n
}
