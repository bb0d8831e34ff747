// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// setUpProfile starts a workload of threads that do not spin, in a cgroup of its own.
const setUpProfile = `
base=/sys/fs/cgroup
mkdir -p $base/prof/a && echo "+cpuset +cpu +memory" > $base/prof/cgroup.subtree_control
cat > /tmp/prof-start <<'F'
echo 0 > /sys/fs/cgroup/prof/a/cgroup.procs
rm -f /tmp/prof.ready
exec homenode-load chase --threads %d --ws 2MiB --shared --thp off --ready /tmp/prof.ready --out /tmp/prof.json
F
sh /tmp/prof-start </dev/null >/dev/null 2>&1 &
while [ ! -e /tmp/prof.ready ]; do sleep 0.1; done
homenode-load control on
`

const (
	tearDownProfile = `killall -9 homenode homenode-load 2>/dev/null; while pidof homenode homenode-load >/dev/null; do sleep 0.1; done
homenode restore >/dev/null 2>&1; homenode-load control off; rm -f /tmp/prof*; rmdir /sys/fs/cgroup/prof/a /sys/fs/cgroup/prof; true`
	// snapshotProfile prints what profile and place may change, as it is in effect: the kernel
	// refuses an emptied cpuset, and then the parent's stands for it (decision 0006).
	snapshotProfile = `cd /sys/fs/cgroup; for d in prof prof/a; do for f in cpuset.cpus.effective cpuset.mems.effective cgroup.subtree_control; do [ -e $d/$f ] && echo "$d $f $(cat $d/$f)"; done; done; cat cgroup.subtree_control`
	profileLive     = `homenode profile --vcpus 2 --workload a --metric ipc --no-spinning --warm-up 20ms --for 100ms --saved /tmp/prof-state.json --rows /tmp/prof.parquet`
)

// A running workload is measured in both placements. A kill -9 in the middle leaves nothing
// after 'homenode restore', the same command continues, an end and SIGTERM put
// everything back, and what another program has set is not touched.
func TestLabProfileWorkload(t *testing.T) {
	t.Parallel()
	g := guest(t, "two", "v2")
	t.Cleanup(func() { mustRun(t, g, "sh", "-c", tearDownProfile) })
	mustRun(t, g, "sh", "-c", fmt.Sprintf(setUpProfile, 2))
	before := mustRun(t, g, "sh", "-c", snapshotProfile)
	unchanged := func(when string) {
		t.Helper()
		if now := mustRun(t, g, "sh", "-c", snapshotProfile); now != before {
			t.Fatalf("%s: left behind:\n%s\nbefore:\n%s", when, now, before)
		}
	}
	says := func(exit int, script string, words ...string) {
		t.Helper()
		r := runs(t, g, script)
		for _, w := range words {
			if r.Exit != exit || !strings.Contains(r.Stdout+r.Stderr, w) {
				t.Fatalf("%s: exit %d, want %d and %q\n%s%s", script, r.Exit, exit, w, r.Stdout, r.Stderr)
			}
		}
	}
	says(0, profileLive+" --dry-run", "nothing is moved", "4 measurements", "moving its memory to nodes")
	unchanged("dry run")

	mustRun(t, g, "sh", "-c", profileLive+` >/tmp/prof.out 2>&1 & pid=$!
while [ ! -e /tmp/prof-state.json ] || [ "$(cat /sys/fs/cgroup/prof/a/cpuset.cpus.effective)" = 0-3 ]; do sleep 0.01; kill -0 $pid || exit 1; done; kill -9 $pid; wait $pid; true`)
	if mustRun(t, g, "sh", "-c", snapshotProfile) == before {
		t.Error("it was killed before it had changed anything: nothing was tried")
	}
	says(0, "homenode restore", "cpuset.cpus")
	unchanged("kill -9")

	says(3, profileLive+` & pid=$!; while [ "$(cat /sys/fs/cgroup/prof/a/cpuset.cpus.effective)" = 0-3 ]; do sleep 0.01; kill -0 $pid || exit 1; done; kill $pid; wait $pid`, "the same command continues")
	unchanged("SIGTERM")
	says(0, profileLive, "Complete", "modelled (lab)")
	unchanged("complete")
	says(0, "ls /tmp/prof.parquet && [ ! -e /tmp/prof-state.json ]", "prof.parquet")

	mustRun(t, g, "sh", "-c", "echo 0-1 > /sys/fs/cgroup/prof/a/cpuset.cpus")
	says(2, profileLive, "another program has limited it")
	if now := mustRun(t, g, "cat", "/sys/fs/cgroup/prof/a/cpuset.cpus"); strings.TrimSpace(now) != "0-1" {
		t.Errorf("another program's cpuset is now %s", now)
	}
	mustRun(t, g, "sh", "-c", "echo 0-3 > /sys/fs/cgroup/prof/a/cpuset.cpus")

	says(2, profileLive+` --for 10m & pid=$!; while [ "$(cat /sys/fs/cgroup/prof/a/cpuset.cpus.effective)" = 0-3 ]; do sleep 0.01; kill -0 $pid || exit 1; done; killall -9 homenode-load; wait $pid`, "has ended")
}

// Placing by a model that learned in the simulator: probes, move, check, and 'homenode
// restore' undoes it.
func TestLabPlace(t *testing.T) {
	t.Parallel()
	path := os.Getenv("HOMENODE_PROFILE_MODEL")
	if path == "" {
		t.Skip("HOMENODE_PROFILE_MODEL is not set: it takes minutes; make test-full sets it")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	g := guest(t, "opteron", "v2")
	t.Cleanup(func() { mustRun(t, g, "sh", "-c", tearDownProfile) })
	if err := g.Put(t.Context(), "/tmp/prof-model.json", 0o644, data); err != nil {
		t.Fatal(err)
	}
	mustRun(t, g, "sh", "-c", fmt.Sprintf(setUpProfile, 4))
	before := mustRun(t, g, "sh", "-c", snapshotProfile)
	const place = "homenode place --workload a --metric ipc --no-spinning --warm-up 50ms --for 300ms --model /tmp/prof-model.json "
	for flags, word := range map[string]string{"": "of another machine", "--machine shape:opteron": "not trained on hardware"} {
		if r := runs(t, g, place+flags); r.Exit != 2 || !strings.Contains(r.Stderr, word) {
			t.Errorf("%s: exit %d\n%s%s", flags, r.Exit, r.Stdout, r.Stderr)
		}
	}
	const here = place + "--machine shape:opteron --simulated-model "
	r := runs(t, g, here+"--goal 0.8 --dry-run")
	if r.Exit != 0 || !strings.Contains(r.Stdout, "would move") || mustRun(t, g, "sh", "-c", snapshotProfile) != before {
		t.Errorf("dry run: exit %d\n%s%s", r.Exit, r.Stdout, r.Stderr)
	}
	r = runs(t, g, here+"--goal 0.8")
	t.Logf("exit %d\n%s%s", r.Exit, r.Stdout, r.Stderr)
	after := mustRun(t, g, "sh", "-c", snapshotProfile)
	switch {
	case r.Exit == 0 && after == before:
		t.Error("placed, but nothing is set")
	case r.Exit == 0:
		mustRun(t, g, "homenode", "restore")
	case r.Exit != 3:
		t.Errorf("exit %d, want 0 or 3", r.Exit)
	}
	r = runs(t, g, here+"--goal 50")
	if r.Exit != 4 || !strings.Contains(r.Stdout, "no placement meets the goal") {
		t.Errorf("a goal that nothing meets: exit %d\n%s%s", r.Exit, r.Stdout, r.Stderr)
	}
	if now := mustRun(t, g, "sh", "-c", snapshotProfile); now != before {
		t.Errorf("left behind:\n%s\nbefore:\n%s", now, before)
	}
}
