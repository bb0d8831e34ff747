// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The number of random kill points; `make test-full` asks for more.
func killPoints(t *testing.T, usual int) int {
	t.Helper()
	if n, err := strconv.Atoi(os.Getenv("HOMENODE_KILL_POINTS")); err == nil {
		return n
	}
	return usual
}

func killSeed() uint64 {
	if n, err := strconv.ParseUint(os.Getenv("HOMENODE_KILL_SEED"), 10, 64); err == nil {
		return n
	}
	return 1
}

const killConfig = `
period: 100ms
events: perf # BPF's types take the guest longer to read than it is given before it is killed
history: none
cgroups: ["/kill/*"]
services:
  - {name: kill, match: "/kill/*", approved: true, target_local_ratio: 0.99}
mao: {max_binds_per_window: 2, backoff_windows: 1, backoff_cap: 1}
actuate: {rate: 64MiB}
`

// Where the memory of b is; that of a is on node 0.
const (
	homeB = "c" // node 1: both are bound within a few rounds
	awayB = "3" // node 0: one of both has to move
)

// setUpKill starts two workloads that the agent wants to bind: one without a cpuset of
// its own, and one whose cpuset equals its parent's. Each takes its memory where it is told
// and may then run anywhere. They think between requests, and homenode is not to wait for
// its turns: busy CPUs would only make each point longer.
const setUpKill = `
base=%s
on_a=3 on_b=%s
mkdir -p $base/kill
for c in a b; do mkdir -p $base/kill/$c; done
case $base in
*/cpuset) # v1: nothing is inherited
	for d in kill kill/a kill/b; do cat $base/cpuset.cpus > $base/$d/cpuset.cpus; cat $base/cpuset.mems > $base/$d/cpuset.mems; done
	mkdir -p /sys/fs/cgroup/perf_event/kill/a /sys/fs/cgroup/perf_event/kill/b /sys/fs/cgroup/memory/kill/a /sys/fs/cgroup/memory/kill/b /sys/fs/cgroup/cpu,cpuacct/kill/a /sys/fs/cgroup/cpu,cpuacct/kill/b ;;
*)	echo "+cpuset +cpu +memory" > $base/kill/cgroup.subtree_control
	cat $base/kill/cpuset.cpus.effective > $base/kill/b/cpuset.cpus ;;
esac
for c in a b; do
	(for h in $base /sys/fs/cgroup/perf_event /sys/fs/cgroup/memory /sys/fs/cgroup/cpu,cpuacct; do
		[ -d $h/kill/$c ] && echo 0 > $h/kill/$c/cgroup.procs
	done
	eval exec taskset \$on_$c homenode-load server --workers 2 --ws 6MiB --extra 16MiB --thp off --closed --think-us 4000 --short-share 1 --loads-per-unit 32 --ready /tmp/kill-$c.ready --out /tmp/kill-$c.json) </dev/null >/dev/null 2>&1 &
	echo $! > /tmp/kill-$c.pid
	renice -n 19 -p $! # its threads inherit it
done
while [ ! -e /tmp/kill-a.ready ] || [ ! -e /tmp/kill-b.ready ]; do sleep 0.1; done
for c in a b; do taskset -a -cp 0-3 $(cat /tmp/kill-$c.pid) >/dev/null || exit 1; done
`

// toKill starts both workloads (b homeB or awayB) for an agent with this configuration, which
// is run as homenode-agent so that killall finds agents only. They end with the test.
func toKill(t *testing.T, g *Guest, base, config, whereB string) {
	t.Helper()
	mustPut(t, g, "/etc/kill.yaml", []byte(config))
	mustRun(t, g, "ln", "-sf", "/bin/homenode", "/bin/homenode-agent")
	t.Cleanup(func() { mustRun(t, g, "sh", "-c", fmt.Sprintf(tearDownKill, base)) })
	mustRun(t, g, "sh", "-c", fmt.Sprintf(setUpKill, base, whereB))
	mustRun(t, g, "homenode-load", "control", "on")
}

// endAgent kills it.
const endAgent = `killall -9 homenode-agent; while pidof homenode-agent >/dev/null; do sleep 0.05; done; true`

const tearDownKill = `killall -9 homenode-load homenode-agent; while pidof homenode-load homenode-agent >/dev/null; do sleep 0.1; done; homenode-load control off; rm -f /tmp/kill-*; rmdir %[1]s/kill/a %[1]s/kill/b %[1]s/kill; true`

// snapshotKill prints what a workload may use, and every setting that differs from
// its parent's whole set.
const snapshotKill = `
base=%s
for d in kill kill/a kill/b; do
	for f in cpuset.cpus.effective cpuset.mems.effective cpuset.effective_cpus cpuset.effective_mems cpuset.memory_migrate cgroup.subtree_control; do
		[ -e $base/$d/$f ] && echo "$d $f $(cat $base/$d/$f)"
	done
done
echo "root $(cat $base/cgroup.subtree_control 2>/dev/null)"
`

func cgroupBase(version string) string {
	if version == "v1" {
		return "/sys/fs/cgroup/cpuset"
	}
	return "/sys/fs/cgroup"
}

// An agent killed at a random point leaves no setting behind, once `homenode
// restore` ran or the next agent started and ended.
func TestLabKilledAgentLeavesNothing(t *testing.T) {
	t.Parallel()
	for version, usual := range map[string]int{"v2": 6, "v1": 3} {
		t.Run(version, func(t *testing.T) { killAtRandom(t, version, killPoints(t, usual)) })
	}
}

func killAtRandom(t *testing.T, version string, points int) {
	g := guest(t, "two", version)
	base := cgroupBase(version)
	toKill(t, g, base, killConfig, awayB)
	before := mustRun(t, g, "sh", "-c", fmt.Sprintf(snapshotKill, base))
	rng := rand.New(rand.NewPCG(killSeed(), 7))
	acted, acts := 0, 0.0 // acts: after how many seconds of the guest's the agent had changed something
	for i := range points {
		began := g.seconds()
		mustRun(t, g, "sh", "-c", "homenode-agent agent --config /etc/kill.yaml </dev/null >/dev/null 2>/tmp/kill-agent.log &")
		delay := 2 * acts * rng.Float64()
		if i == 0 {
			for look := 0; look < 300 && mustRun(t, g, "sh", "-c", fmt.Sprintf(snapshotKill, base)) == before; look++ {
				mustRun(t, g, "sleep", "0.1")
			}
			acts = g.seconds() - began
		}
		mustRun(t, g, "sleep", strconv.FormatFloat(delay, 'f', 3, 64))
		mustRun(t, g, "sh", "-c", endAgent)
		left := mustRun(t, g, "sh", "-c", fmt.Sprintf(snapshotKill, base))
		if left != before {
			acted++
		}
		if i%2 == 0 {
			restoreForeseen(t, g, fmt.Sprintf(snapshotKill, base), left)
		} else {
			mustRun(t, g, "sh", "-c", "homenode-agent agent --config /etc/kill.yaml --rounds 1 2>&1")
		}
		if after := mustRun(t, g, "sh", "-c", fmt.Sprintf(snapshotKill, base)); after != before {
			t.Fatalf("kill point %d of seed %d, after %.3f s: left behind:\n%s\nbefore:\n%s\nagent: %s", i, killSeed(), delay, after, before,
				mustRun(t, g, "cat", "/tmp/kill-agent.log"))
		}
	}
	t.Logf("%d kill points, %d of them after the agent had changed something, which took it %.1f s", points, acted, acts)
	if 5*acted < points {
		t.Errorf("the agent had changed something at %d of %d kill points: too few were tried; its log: %s", acted, points, mustRun(t, g, "cat", "/tmp/kill-agent.log"))
	}
}

// restoreForeseen restores what a dry run has announced; the dry run changes nothing.
func restoreForeseen(t *testing.T, g *Guest, snapshot, left string) {
	t.Helper()
	const restore = "homenode restore%s; e=$?; [ $e = 0 ] || [ $e = 4 ]"
	foreseen := mustRun(t, g, "sh", "-c", fmt.Sprintf(restore, " --dry-run"))
	if now := mustRun(t, g, "sh", "-c", snapshot); now != left {
		t.Errorf("a dry run of restore changed\n%s\nto\n%s", left, now)
	}
	done := mustRun(t, g, "sh", "-c", fmt.Sprintf(restore, ""))
	// "SETTING: RESULT: …"; only the write shows that the kernel refuses the original.
	what := func(said string) (all []string) {
		for line := range strings.Lines(said) {
			parts := strings.SplitN(strings.TrimPrefix(line, "dry run: "), ": ", 3)
			all = append(all, parts[0]+" "+strings.Replace(parts[min(1, len(parts)-1)], "equivalent", "put-back", 1))
		}
		return all
	}
	if !slices.Equal(what(foreseen), what(done)) || foreseen != "" && !strings.HasPrefix(foreseen, "dry run: ") {
		t.Errorf("foreseen:\n%s\ndone:\n%s", foreseen, done)
	}
}

// SIGTERM puts everything back; a second agent is refused meanwhile.
func TestLabAgentTerminated(t *testing.T) {
	t.Parallel()
	g := guest(t, "two", "v2")
	base := cgroupBase("v2")
	toKill(t, g, base, killConfig, homeB)
	before := mustRun(t, g, "sh", "-c", fmt.Sprintf(snapshotKill, base))
	mustRun(t, g, "sh", "-c", "homenode-agent agent --config /etc/kill.yaml </dev/null >/dev/null 2>/tmp/kill-agent.log &")
	status := ""
	defer func() {
		if t.Failed() {
			t.Logf("status:\n%s\nagent: %s\n%s", status, mustRun(t, g, "tail", "-n", "40", "/tmp/kill-agent.log"), mustRun(t, g, "sh", "-c", "homenode why a; homenode why b; uptime; true"))
		}
	}()
	waitFor(t, g, "both workloads bound", func() bool {
		status = mustRun(t, g, "sh", "-c", "homenode status || true")
		return strings.Count(status, " bound ") == 2
	})
	if mustRun(t, g, "sh", "-c", fmt.Sprintf(snapshotKill, base)) == before {
		t.Error("bound, but no cpuset differs")
	}
	why := mustRun(t, g, "homenode", "why", "a")
	for _, want := range []string{"local", "considered", "*"} {
		if !strings.Contains(why, want) {
			t.Errorf("homenode why a: no %q in:\n%s", want, why)
		}
	}
	if r, err := g.Run(t.Context(), "homenode", "agent", "--config", "/etc/kill.yaml"); err != nil || r.Exit != 2 || !strings.Contains(r.Stderr, "held by another homenode") {
		t.Errorf("second agent: %+v, %v", r, err)
	}
	mustRun(t, g, "sh", "-c", "killall homenode-agent; while pidof homenode-agent >/dev/null; do sleep 0.05; done")
	if after := mustRun(t, g, "sh", "-c", fmt.Sprintf(snapshotKill, base)); after != before {
		t.Errorf("left behind after SIGTERM:\n%s\nbefore:\n%s", after, before)
	}
}

// patience is how long, by the guest's own clock, a test waits for what should happen
// eventually.
const patience = 10 * time.Minute

func waitFor(t *testing.T, g *Guest, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := g.Within(t.Context(), patience)
	defer cancel()
	for ; ctx.Err() == nil; time.Sleep(200 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("%s: %v", what, context.Cause(ctx))
}
