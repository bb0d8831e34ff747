// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// putTests compiles the tests of a package for the guest, which has no Go, and puts
// them there as one program.
func putTests(t *testing.T, g *Guest, pkg, to string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tests")
	build := exec.Command("go", "test", "-c", "-ldflags", "-s -w", "-o", file, "./internal/"+pkg)
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the tests of %s: %v\n%s", pkg, err, out)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	putLarge(t, g, to+".gz", packed.Bytes())
	mustRun(t, g, "sh", "-c", fmt.Sprintf("gzip -dc %s.gz > %s && chmod 755 %s && rm %s.gz", to, to, to, to))
}

// putLarge writes a file of any size in the guest.
func putLarge(t *testing.T, g *Guest, to string, data []byte) {
	t.Helper()
	mustRun(t, g, "sh", "-c", "rm -f "+to)
	for len(data) > 0 {
		part := data[:min(len(data), maxPut)]
		data = data[len(part):]
		if err := g.Put(t.Context(), to+".part", 0o644, part); err != nil {
			t.Fatal(err)
		}
		mustRun(t, g, "sh", "-c", fmt.Sprintf("cat %s.part >> %s && rm %s.part", to, to, to))
	}
}

// runTests runs the tests of a name, and requires that each has run.
func runTests(t *testing.T, g *Guest, env, program, pattern string) {
	t.Helper()
	ctx, cancel := g.Within(t.Context(), patience)
	defer cancel()
	r, err := g.Run(ctx, "sh", "-c", fmt.Sprintf("cd /; %s timeout 500 %s -test.v -test.run '%s' 2>&1", env, program, pattern))
	if err != nil {
		t.Fatal(err)
	}
	t.Log(r.Stdout)
	if r.Exit != 0 || !strings.Contains(r.Stdout, "\n--- PASS") || strings.Contains(r.Stdout, "--- SKIP") {
		t.Errorf("exit %d", r.Exit)
	}
}

// Units are bound, restored and left alone by requests to the guest's own
// systemd.
func TestLabDebianSystemd(t *testing.T) {
	t.Parallel()
	g := debianGuest(t)
	putTests(t, g, "owner/systemd", "/usr/bin/systemd.test")
	for _, name := range []string{"TestLiveStall", "TestLiveUnits", "TestLiveDrift", "TestLivePowers"} {
		t.Run(name, func(t *testing.T) {
			runTests(t, g, "HOMENODE_SYSTEMD=1", "/usr/bin/systemd.test", "^"+name+"$")
		})
	}
}

const unitAgent = `
period: 2s
calm_period: 2s
cgroups: ["/system.slice/lone.service"]
reserved_cpus: "3" # which leaves node 1 too small
services:
  - {name: all, match: "/system.slice/*", approved: true, target_local_ratio: 0.99}
mao: {max_binds_per_window: 4, backoff_windows: 1, backoff_cap: 1}
`

// startLone starts a unit with memory on node 1, which then has no binding. If its
// properties were unset at once, the old binding would stay in force
// (docs/decisions/0030).
const startLone = `
rm -f /run/lone.ready
systemd-run --quiet --unit lone -p AllowedMemoryNodes=1 -p AllowedCPUs=0-1 homenode-load chase --threads 2 --ws 6MiB --shared --extra 40MiB --thp off --ready /run/lone.ready
while ! test -e /run/lone.ready; do sleep 0.2; done
systemctl set-property --runtime lone.service AllowedMemoryNodes=0-1 AllowedCPUs=0-3
systemctl set-property --runtime lone.service AllowedMemoryNodes= AllowedCPUs=
`

const startUnitAgent = `
(exec homenode agent --config /etc/u.yaml </dev/null >/dev/null 2>/tmp/u.log) &
echo $! > /tmp/u.pid
`

// showLone prints the unit's properties and its effective cpuset. A unit without a
// cpuset of its own has its parent's.
const showLone = `systemctl show -p AllowedCPUs,AllowedMemoryNodes,NeedDaemonReload lone.service
cd /sys/fs/cgroup/system.slice/lone.service
for f in cpuset.cpus.effective cpuset.mems.effective; do cat $f 2>/dev/null || cat ../$f 2>/dev/null || cat ../../$f; done
grep -h ^Allowed /run/systemd/transient/lone.service.d/*Allowed*CPUs.conf 2>/dev/null || true`

// endUnitAgent ends the agent and waits for its end.
const endUnitAgent = `kill -%s $(cat /tmp/u.pid); while kill -0 $(cat /tmp/u.pid) 2>/dev/null; do sleep 0.1; done`

// The agent binds a unit: CPUs, then its pages, then its nodes, and PID 1 moves next to
// nothing. SIGTERM puts everything back; after SIGKILL restore does; a value that an
// admin set in between stays.
func TestLabDebianUnitAgent(t *testing.T) {
	t.Parallel()
	g := debianGuest(t)
	if err := g.Put(t.Context(), "/etc/u.yaml", 0o644, []byte(unitAgent)); err != nil {
		t.Fatal(err)
	}
	mustRun(t, g, "homenode-load", "control", "on")
	defer mustRun(t, g, "homenode-load", "control", "off")
	defer mustRun(t, g, "sh", "-c", "kill -9 $(cat /tmp/u.pid) 2>/dev/null; systemctl stop lone; homenode restore --config /etc/u.yaml; true")
	mustRun(t, g, "sh", "-ec", startLone)
	before := mustRun(t, g, "sh", "-c", showLone)
	migrated := func() (n int) {
		fmt.Sscan(mustRun(t, g, "sed", "-n", "s/^pgmigrate_success //p", "/proc/vmstat"), &n)
		return n
	}

	first := migrated()
	log := bindLone(t, g)
	inside := migrated() - first - movedIn(log)/4096
	t.Logf("%d pages moved by us, %d inside systemd's write", movedIn(log)/4096, inside)
	if movedIn(log) < 36<<20 || inside > 512 {
		t.Errorf("moved %d bytes before its nodes were set, and %d pages inside; the agent's log:\n%s", movedIn(log), inside, log)
	}
	cpus, moved, mems := strings.Index(log, "lone.service AllowedCPUs = 0-1"), strings.Index(log, "step=move-pages"), strings.Index(log, "lone.service AllowedMemoryNodes = 0")
	if cpus < 0 || moved < 0 || mems < cpus || mems < moved { // CPUs or memory first, by the way that was chosen
		t.Errorf("the order is wrong: CPUs at %d, moves at %d, nodes at %d:\n%s", cpus, moved, mems, log)
	}
	mustRun(t, g, "sh", "-c", fmt.Sprintf(endUnitAgent, "TERM"))
	if after := mustRun(t, g, "sh", "-c", showLone); after != before {
		t.Errorf("after SIGTERM:\n%s\nbefore:\n%s", after, before)
	}

	mustRun(t, g, "sh", "-ec", "systemctl stop lone\n"+startLone)
	bindLone(t, g)
	mustRun(t, g, "sh", "-c", fmt.Sprintf(endUnitAgent, "KILL"))
	if got := mustRun(t, g, "sh", "-c", showLone); !strings.Contains(got, "AllowedMemoryNodes=0") {
		t.Errorf("killed, it left:\n%s", got)
	}
	mustRun(t, g, "homenode", "restore", "--config", "/etc/u.yaml")
	if after := mustRun(t, g, "sh", "-c", showLone); after != before {
		t.Errorf("after restore:\n%s\nbefore:\n%s", after, before)
	}

	mustRun(t, g, "sh", "-ec", "systemctl stop lone\n"+startLone)
	bindLone(t, g)
	mustRun(t, g, "systemctl", "set-property", "--runtime", "lone.service", "AllowedCPUs=1-3")
	waitFor(t, g, "drift is told", func() bool {
		log = mustRun(t, g, "sh", "-c", "cat /tmp/u.log; homenode why /system.slice/lone.service 2>&1; grep -o '\"note\":[^,]*' /run/homenode/status.json || true")
		return strings.Contains(log, "drift")
	})
	mustRun(t, g, "sh", "-c", fmt.Sprintf(endUnitAgent, "TERM"))
	got := mustRun(t, g, "sh", "-c", showLone)
	if !strings.Contains(got, "AllowedCPUs=1-3\nAllowedMemoryNodes=\n") {
		t.Errorf("what the admin set is not there, or our nodes still are:\n%s\nlog:\n%s", got, mustRun(t, g, "cat", "/tmp/u.log"))
	}
}

func bindLone(t *testing.T, g *Guest) (log string) {
	t.Helper()
	mustRun(t, g, "sh", "-c", startUnitAgent)
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Second) {
		log = mustRun(t, g, "cat", "/tmp/u.log")
		if strings.Contains(log, "AllowedMemoryNodes = 0") {
			return log
		}
	}
	t.Fatalf("lone.service is not bound: %s\nthe agent's log:\n%s", mustRun(t, g, "sh", "-c", "homenode why /system.slice/lone.service 2>&1 || true"), log)
	return ""
}

// movedIn adds up the moved pages that the agent reports.
func movedIn(log string) (bytes int) {
	for _, word := range strings.Fields(log) {
		var n int
		if _, err := fmt.Sscanf(word, "moved_bytes=%d", &n); err == nil {
			bytes += n
		}
	}
	return bytes
}
