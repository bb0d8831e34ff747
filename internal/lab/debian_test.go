// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// debianGuest boots Debian, once for all tests. `make test` has no image and does
// without; `make test-full` builds one and sets HOMENODE_DEBIAN=1.
func debianGuest(t *testing.T) *Guest {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: no lab boot")
	}
	if os.Getenv("HOMENODE_DEBIAN") != "1" {
		t.Skip("HOMENODE_DEBIAN is not 1: the Debian guest is tried by 'make test-full'")
	}
	o := labOptionsFor(t, "two", "v2")
	o.Guest = Debian
	o.IdleRate = 1 // its disk is the host's: eight times as fast, 0.6 s of a busy disk are 5 s, and systemd did not answer in time
	if _, err := os.Stat(o.Assets.Debian); err != nil && os.Getenv("CI") == "true" {
		t.Fatalf("the Debian guest is not built ('make lab-debian'): %v", err)
	} else if err != nil {
		t.Skipf("the Debian guest is not built ('make lab-debian'): %v", err)
	}
	return shared(t, Debian, o)
}

// A whole system: nothing failed, one cgroup hierarchy, and its disk as it was built.
func TestLabDebianSystem(t *testing.T) {
	t.Parallel()
	g := debianGuest(t)
	for _, c := range []struct{ script, want string }{
		{"cat /proc/1/comm", "systemd"},
		{"systemctl is-system-running --wait; systemctl list-units --failed --plain --no-legend", "running"},
		{"systemctl is-active containerd", "active"},
		{"stat -f -c %T /sys/fs/cgroup", "cgroup2fs"},
		{"cat /proc/sys/kernel/numa_balancing", "0"},
		{"cat /sys/block/vda/size; cat /sys/block/vdb/size", fmt.Sprintf("%d\n%d", resultDiskBytes/512, scratchDiskBytes/512)},
		{"homenode topo >/dev/null && dd if=/dev/zero of=/written bs=1M count=8 2>/dev/null && sync && echo fine", "fine"},
	} {
		if got := strings.TrimSpace(mustRun(t, g, "sh", "-c", c.script)); got != c.want {
			t.Errorf("%s: got %q, want %q", c.script, got, c.want)
		}
	}
	talk(t, g)
	disk, err := os.Open(labOptionsFor(t, "two", "v2").Assets.Debian)
	if err != nil {
		t.Fatal(err)
	}
	defer disk.Close()
	// ext4's superblock: s_mnt_count, how often it was mounted, at 1024 + 52
	var count [2]byte
	if _, err := disk.ReadAt(count[:], 1024+52); err != nil || count != [2]byte{} {
		t.Errorf("the image was written: it counts %v mounts, %v", count, err)
	}
}

// The guest's clock passes ten minutes, when QEMU cleans the cache of the disk's snapshot: a
// timer of QEMU's own on the virtual clock. Earlier tests may have taken that long already.
func TestLabDebianTenMinutes(t *testing.T) {
	t.Parallel()
	g := debianGuest(t)
	if err := g.setIdleRate(testIdleRate); err != nil {
		t.Fatal(err)
	}
	defer g.setIdleRate(1)
	for {
		up := strings.Fields(mustRun(t, g, "cat", "/proc/uptime"))
		seconds, err := strconv.ParseFloat(up[0], 64)
		if err != nil {
			t.Fatal(err)
		}
		if seconds > 610 {
			return
		}
		mustRun(t, g, "sleep", "50")
	}
}

// The model and its counters are those of the busybox guest.
func TestLabDebianCounts(t *testing.T) {
	t.Parallel()
	g := debianGuest(t)
	mustRun(t, g, "homenode-load", "control", "on")
	defer mustRun(t, g, "homenode-load", "control", "off")
	for node, event := range []string{"local-loads", "remote-loads"} {
		r := runLoad(t, g, "chase", "--threads", "1", "--ws", "4MiB", "--ops", fmt.Sprint(countedOps),
			"--bind-cpu", "0", "--bind-mem", fmt.Sprint(node), "--perf", "loads,"+event)
		within(t, fmt.Sprintf("memory on node %d: loads", node), r.Perf["loads"], countedOps, 0.001)
		within(t, fmt.Sprintf("memory on node %d: %s", node, event), r.Perf[event], countedOps, 0.001)
	}
}

type seenWorkload struct {
	ID      string                  `json:"id"`
	Owner   string                  `json:"owner"`
	Local   struct{ Value *uint64 } `json:"local_loads"`
	Remote  struct{ Value *uint64 } `json:"remote_loads"`
	Binding struct {
		CPUs       string `json:"cpus"`
		Mems       string `json:"mems"`
		PinnedMems bool   `json:"pinned_mems"`
	} `json:"binding"`
}

// localRatio is -1 where it was not counted.
func (w seenWorkload) localRatio() float64 {
	if w.Local.Value == nil || w.Remote.Value == nil || *w.Local.Value+*w.Remote.Value == 0 {
		return -1
	}
	return float64(*w.Local.Value) / float64(*w.Local.Value+*w.Remote.Value)
}

// statOf is the report of homenode stat on every workload.
func statOf(t *testing.T, g *Guest) map[string]seenWorkload {
	t.Helper()
	var got struct {
		Window struct{ Workloads []seenWorkload }
	}
	// JSON over the port is not meant for reading by eye, but users script with it.
	out := mustRun(t, g, "homenode", "stat", "--interval", "2s", "--count", "1", "-o", "json")
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v\n%.400s", err, out)
	}
	seen := map[string]seenWorkload{}
	for _, w := range got.Window.Workloads {
		seen[w.ID] = w
	}
	return seen
}

const (
	container  = "/usr/lib/homenode/container"
	debianLoad = "homenode-load chase --threads 1 --ws 4MiB "
)

// ownedReady are the files by which startOwned's loads report that they are at work;
// the containers' root is a folder of the guest.
const ownedReady = "/run/bound.ready " + container + "/own.ready " + container + "/lent.ready"

const startOwned = `
rm -f ` + ownedReady + `
systemd-run --quiet --unit bound -p AllowedMemoryNodes=1 -p AllowedCPUs=2-3 ` + debianLoad + `--ready /run/bound.ready
ctr run -d --rootfs ` + container + ` own /bin/` + debianLoad + `--bind-cpu 0 --bind-mem 1 --ready /own.ready
ctr run -d --runc-systemd-cgroup --cgroup system.slice:containerd:lent --rootfs ` + container + ` lent /bin/` + debianLoad + `--bind-cpu 1 --bind-mem 0 --ready /lent.ready
`

// The owner of a cgroup, the CPUs that it may use, and the nodes of its reads: for a
// unit bound by systemd, and for containers named by containerd, with and without
// systemd.
func TestLabDebianOwners(t *testing.T) {
	t.Parallel()
	g := debianGuest(t)
	mustRun(t, g, "homenode-load", "control", "on")
	defer mustRun(t, g, "homenode-load", "control", "off")
	defer mustRun(t, g, "sh", "-c", "systemctl stop bound; ctr task kill -s KILL own; ctr task kill -s KILL lent; for c in own lent; do n=0; until ctr container rm $c || [ $n -ge 20 ]; do n=$((n + 1)); sleep 1; done; done")
	mustRun(t, g, "sh", "-ec", startOwned)
	waitFor(t, g, "three loads ready", func() bool {
		return mustRun(t, g, "sh", "-c", "ls "+ownedReady+" 2> /dev/null | wc -l") == "3\n"
	})
	seen := statOf(t, g)
	for _, want := range []struct {
		id, owner, cpus, mems string
		pinned                bool
		least, most           float64 // local share of its reads
	}{
		{"/system.slice/bound.service", "systemd", "2-3", "1", true, 0.99, 1},
		{"/default/own", "containerd", "0-3", "0-1", true, 0, 0.05},
		{"/system.slice/containerd-lent.scope", "containerd", "0-3", "0-1", true, 0.95, 1},
		{"/system.slice/containerd.service", "systemd", "0-3", "0-1", false, -1, 1},
	} {
		w, ok := seen[want.id]
		if !ok {
			t.Errorf("%s: not seen", want.id)
			continue
		}
		if w.Owner != want.owner || w.Binding.CPUs != want.cpus || w.Binding.Mems != want.mems || w.Binding.PinnedMems != want.pinned {
			t.Errorf("%s: got %+v, want %+v", want.id, w, want)
		}
		if r := w.localRatio(); r < want.least || r > want.most {
			t.Errorf("%s: local access ratio %.3f, want %.2f to %.2f", want.id, r, want.least, want.most)
		}
	}
}

const debianAgent = `
period: 200ms
cgroups: ["/default/*", "/made/*", "/system.slice/lone.service"]
services:
  - {name: all, match: "/*/*", approved: true, target_local_ratio: 0.99}
mao: {max_binds_per_window: 4, backoff_windows: 1, backoff_cap: 1}
`

// setUpDebianAgent starts three loads that the agent wants to bind: of a cgroup
// made by hand, of containerd and of systemd. They leave CPUs to the agent: where six threads
// keep four CPUs busy, its round takes longer than the guest's managers have to answer.
const setUpDebianAgent = `
load="homenode-load server --workers 2 --ws 6MiB --extra 40MiB --thp off --closed --think-us 500 --short-share 1 --short-us 300:400"
mkdir -p /sys/fs/cgroup/made/a
echo "+cpuset +cpu +memory" > /sys/fs/cgroup/made/cgroup.subtree_control
(echo 0 > /sys/fs/cgroup/made/a/cgroup.procs; exec $load) </dev/null >/dev/null 2>&1 &
ctr run -d --rootfs ` + container + ` shy /bin/$load
systemd-run --quiet --unit lone $load
(exec homenode agent --config /etc/a.yaml </dev/null >/dev/null 2>/tmp/a.log) &
echo $! > /tmp/a.pid
`

const tearDownDebianAgent = `
kill $(cat /tmp/a.pid)
while kill -0 $(cat /tmp/a.pid) 2>/dev/null; do sleep 0.1; done
systemctl stop lone
ctr task kill -s KILL shy
echo 1 > /sys/fs/cgroup/made/a/cgroup.kill
n=0; until ctr container rm shy || [ $n -ge 20 ]; do n=$((n + 1)); sleep 1; done
n=0; until rmdir /sys/fs/cgroup/made/a || [ $n -ge 20 ]; do n=$((n + 1)); sleep 1; done
rmdir /sys/fs/cgroup/made
true`

// On a host with managers the agent binds cgroups without a manager itself. It asks
// systemd for its units, and containerd for its containers, also if the path names no
// manager.
func TestLabDebianAgent(t *testing.T) {
	t.Parallel()
	g := debianGuest(t)
	if err := g.Put(t.Context(), "/etc/a.yaml", 0o644, []byte(debianAgent)); err != nil {
		t.Fatal(err)
	}
	mustRun(t, g, "homenode-load", "control", "on")
	defer mustRun(t, g, "homenode-load", "control", "off")
	mustRun(t, g, "sh", "-c", setUpDebianAgent)
	defer mustRun(t, g, "sh", "-c", tearDownDebianAgent)
	var log string
	defer func() {
		if t.Failed() {
			t.Logf("the agent's log:\n%s", log)
		}
	}()
	waitFor(t, g, "three bound", func() bool {
		log = mustRun(t, g, "cat", "/tmp/a.log")
		return strings.Contains(log, "/made/a cpuset.cpus =") && strings.Contains(log, "container containerd/default/shy cpuset.cpus =") &&
			strings.Contains(log, "unit lone.service AllowedCPUs =")
	})
	own := mustRun(t, g, "sh", "-c", "cd /sys/fs/cgroup; cat default/shy/cpuset.cpus made/a/cpuset.cpus")
	if lines := strings.Fields(own); len(lines) != 2 {
		t.Errorf("the container's own cpuset, or that of /made/a, is empty: %q; the agent's log:\n%s", own, log)
	}
}

func TestDecisionGuest(t *testing.T) {
	here := t.TempDir() + "/debian.img"
	if err := os.WriteFile(here, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		guest, cgroup, image string
		want                 string // part of the error
		limit                time.Duration
	}{
		{"", "", "", "", busyboxLimit},
		{Busybox, "v1", "", "", busyboxLimit},
		{Debian, "", here, "", debianLimit},
		{Debian, "v1", here, "cgroup v1 is not offered", 0},
		{Debian, "v2", here + "x", "make lab-debian", 0},
		{"hurd", "v2", here, `"hurd"`, 0},
	} {
		o, err := Options{Guest: c.guest, Cgroup: c.cgroup, Assets: Assets{Debian: c.image}}.complete()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
		if err == nil && (o.Timeout != c.limit || o.Cgroup == "" || o.Guest == "") {
			t.Errorf("%+v: %+v", c, o)
		}
	}
}
