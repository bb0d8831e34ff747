// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"homenode/internal/migration"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// moved runs a script after testdata/migrate/lib.sh, in the guest.
func moved(t *testing.T, g *Guest, script string) Result {
	t.Helper()
	return runs(t, g, ". /tmp/mig-lib.sh\n"+script)
}

// forMoving prepares the shared guest, and cleans up after the test.
func forMoving(t *testing.T, version string) *Guest {
	t.Helper()
	g := guest(t, "two", version)
	readyToMove(t, g)
	t.Cleanup(func() { // t.Context has ended by then
		ctx, cancel := g.Within(context.Background(), patience)
		defer cancel()
		if r, err := g.Run(ctx, "sh", "-c", ". /tmp/mig-lib.sh\ntidy; n=0; until umount /scratch || [ $n -ge 100 ]; do n=$((n+1)); sleep 0.2; done 2>/dev/null; [ $n -lt 100 ]"); err != nil || r.Exit != 0 {
			t.Errorf("tidy: exit %d, %v\n%s", r.Exit, err, r.Stderr)
		}
	})
	return g
}

// readyToMove loads the script's functions and mounts the file system. The model is off, as
// where pages are and which moves are refused does not depend on it: it makes a test take
// twice as much of the host's CPU time.
func readyToMove(t *testing.T, g *Guest) {
	t.Helper()
	lib, err := os.ReadFile("testdata/migrate/lib.sh")
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Put(t.Context(), "/tmp/mig-lib.sh", 0o644, lib); err != nil {
		t.Fatal(err)
	}
	putProgram(t, g, "shmtouch")
	if r := moved(t, g, "tidy; echo 3 > /proc/sys/vm/drop_caches; scratch"); r.Exit != 0 {
		t.Fatalf("prepare the guest: exit %d\n%s%s", r.Exit, r.Stdout, r.Stderr)
	}
}

// pagesCounted is the output of homenode-load pages: bytes by kind and node. It shares no
// code with homenode.
type pagesCounted struct {
	Bytes   map[migration.Kind][]unit.Bytes `json:"bytes"`
	Swapped unit.Bytes                      `json:"swapped_bytes"`
}

func (c pagesCounted) census() (m migration.Census) {
	for _, k := range migration.Kinds() {
		for node, b := range c.Bytes[k] {
			m.Add(k, node, b)
		}
	}
	return m
}

// countPages counts all of a cgroup's processes.
func countPages(t *testing.T, g *Guest, group string, files ...string) migration.Census {
	t.Helper()
	args := ""
	for _, f := range files {
		args += " --file " + f
	}
	r := moved(t, g, "homenode-load pages --pid $(pids "+group+")"+args)
	var c pagesCounted
	if err := json.Unmarshal([]byte(r.Stdout), &c); r.Exit != 0 || err != nil {
		t.Fatalf("count pages: exit %d, %v\n%s%s", r.Exit, err, r.Stdout, r.Stderr)
	}
	return c.census()
}

// migrates runs homenode migrate, checks its exit code and reads what it wrote.
func migrates(t *testing.T, g *Guest, args string, exits ...int) (migration.Report, Result) {
	t.Helper()
	r := moved(t, g, "timeout 540 homenode-mover migrate "+args+" -o json")
	report, err := migration.DecodeReport([]byte(r.Stdout))
	if !slices.Contains(exits, r.Exit) || err != nil || strings.Contains(r.Stderr, "goroutine ") {
		t.Fatalf("migrate %s: exit %d, want %v; %v\n%s%s", args, r.Exit, exits, err, r.Stdout, r.Stderr)
	}
	return report, r
}

// Two counts of pages, one after the other, differ by the pages that a process touched
// in between.
const slackBytes = 64 << 10

func sameCensus(t *testing.T, what string, got, want migration.Census) {
	t.Helper()
	for _, k := range migration.Kinds() {
		a, _ := got.Of(k)
		b, _ := want.Of(k)
		for _, node := range []int{0, 1} {
			on := set.FromNodes(node)
			if d := a.On(on) - b.On(on); max(d, -d) > slackBytes+b.Total()/100 {
				t.Errorf("%s: %s on node %d: homenode says %v, the counter %v", what, k, node, a.On(on), b.On(on))
			}
		}
	}
}

// atHome fails for each kind with more than one percent elsewhere.
func atHome(t *testing.T, what string, c migration.Census, to int, kinds ...migration.Kind) {
	t.Helper()
	for _, k := range kinds {
		row, _ := c.Of(k)
		if left := row.Elsewhere(set.NodeSet{}, set.FromNodes(to)); row.Total() == 0 || left > row.Total()/100 {
			t.Errorf("%s: %s: %v of %v are elsewhere", what, k, left, row.Total())
		}
	}
}

// everyKind is a workload of four processes on node 0, asleep.
const everyKind = `set -e
group mig
cached /scratch/mig-a 12582912 0
truncate -s 6291456 /dev/shm/mig-s
pool 0 2; pool 1 2
start a mig hold --bind-cpu 0 --ws 6m --file /scratch/mig-a --extra 24m --thp off
start b mig hold --bind-cpu 0 --ws 6m --file /dev/shm/mig-s --extra 10m --thp on --open /scratch/mig-a
start c mig hold --bind-cpu 0 --ws 6m --file /dev/shm/mig-s --extra 4m --thp off
start h mig hold --bind-cpu 0 --ws 4m --file /dev/hugepages/mig-h
segment s mig 4194304 0`

// Every kind of memory moves completely, and homenode's counts equal those of a
// counter that shares no code with it. A second move has nothing to do.
func TestLabMigrateEveryKind(t *testing.T) {
	t.Parallel()
	g := forMoving(t, "v2")
	if r := moved(t, g, everyKind); r.Exit != 0 {
		t.Fatalf("start: exit %d\n%s", r.Exit, r.Stderr)
	}
	// Programs that they run, and files that those map, belong to them too.
	files := []string{"/scratch/mig-a", "/dev/shm/mig-s", "/bin/homenode-load", "/tmp/shmtouch"}
	before := countPages(t, g, "mig", files...)
	atHome(t, "before", before, 0, migration.Anon, migration.THP, migration.Hugetlb, migration.File)
	toMove := unit.Bytes(0) // the kernel put a little of the files and of its programs on node 1
	for _, k := range migration.Kinds() {
		row, _ := before.Of(k)
		toMove += row.Elsewhere(set.NodeSet{}, set.FromNodes(1))
	}
	plan, _ := migrates(t, g, "--cgroup /mig --to 1 --dry-run", 0)
	sameCensus(t, "dry run", plan.Before, before)
	sameCensus(t, "after a dry run", countPages(t, g, "mig", files...), before)
	if plan.Outcome != migration.Planned || plan.Result.Known() || plan.Estimate.Bytes < toMove*98/100 {
		t.Errorf("dry run: %+v", plan)
	}
	report, _ := migrates(t, g, "--cgroup /mig --to 1 --rate max", 0)
	after := countPages(t, g, "mig", files...)
	census, _ := report.After.Get()
	result, _ := report.Result.Get()
	sameCensus(t, "after", census, after)
	atHome(t, "after", after, 1, migration.Kinds()...)
	if report.Outcome != migration.Complete || result.Moved() < toMove*98/100 || !result.Complete {
		t.Errorf("outcome %s: %+v", report.Outcome, result)
	}
	again, _ := migrates(t, g, "--cgroup /mig --to 1", 4)
	if again.Outcome != migration.Nothing {
		t.Errorf("again: %s", again.Outcome)
	}
}

// refuses expects an error with the text, and that nothing moved.
func refusesToMove(t *testing.T, g *Guest, line, want string) {
	t.Helper()
	before := countPages(t, g, "mig")
	r := moved(t, g, line)
	if r.Exit == 0 || r.Exit == 3 || r.Exit == 4 || r.Exit > 128 || !strings.Contains(r.Stderr, want) || strings.Count(r.Stderr, "homenode: ") > 1 {
		t.Errorf("%s: exit %d, want a sentence with %q\n%s%s", line, r.Exit, want, r.Stdout, r.Stderr)
	}
	sameCensus(t, "after "+line, countPages(t, g, "mig"), before)
	t.Log(strings.TrimSpace(r.Stderr))
}

func TestLabMigrateRefuses(t *testing.T) {
	t.Parallel()
	g := forMoving(t, "v2")
	if r := moved(t, g, "group mig; start a mig hold --bind-cpu 0 --ws 48m --thp off"); r.Exit != 0 {
		t.Fatalf("start: exit %d\n%s", r.Exit, r.Stderr)
	}
	refusesToMove(t, g, "homenode-mover migrate --cgroup /mig --to 7", "node 7")
	refusesToMove(t, g, "homenode-mover migrate --cgroup /none --to 1", "none")
	refusesToMove(t, g, "homenode-mover migrate --pid 999999 --to 1", "999999")
	moved(t, g, "echo 0 > $base/mig/cpuset.mems") // this moves what is elsewhere
	refusesToMove(t, g, "homenode-mover migrate --cgroup /mig --to 1", "cpuset")
	moved(t, g, "echo 0-1 > $base/mig/cpuset.mems")
	// Fill all but 64 MiB of node 1, of which some 40 MiB are the kernel's reserve.
	// Memory of other tests becomes free a while later, and page cache that they left
	// becomes room once it is evicted: so the script fills the node until it stays full.
	const full = `group mig-full; sync; n=0 still=0
free() { awk '/MemFree/ {print $4}' /sys/devices/system/node/node1/meminfo; }
until [ $still -ge 3 ]; do
	echo 3 > /proc/sys/vm/drop_caches; now=$(free)
	if [ $now -le 73728 ]; then still=$((still + 1))
	elif [ $n -ge 20 ]; then echo "node 1 does not stay full: $now KiB" >&2; exit 1
	else n=$((n + 1)) still=0; start full$n mig-full hold --bind-mem 1 --ws $((now - 65536))k --thp off || exit 1; fi
	sleep 1
done`
	if r := moved(t, g, full); r.Exit != 0 {
		t.Fatalf("fill node 1: exit %d\n%s", r.Exit, r.Stderr)
	}
	refusesToMove(t, g, "homenode-mover migrate --cgroup /mig --to 1", "are missing: node 1 has ")
	report, _ := migrates(t, g, "--cgroup /mig --to 1 --partial", 3)
	result, _ := report.Result.Get()
	if report.Outcome != migration.Partial || result.Moved() == 0 || result.Moved() > 47<<20 {
		t.Errorf("without room for all: %s, moved %v: %+v", report.Outcome, result.Moved(), result)
	}
	census, _ := report.After.Get()
	sameCensus(t, "in part", census, countPages(t, g, "mig", "/bin/homenode-load"))
}

// Without CAP_SYS_NICE, pages of one process move and pages of two stay, which is
// reported before and after.
func TestLabMigrateWithoutNice(t *testing.T) {
	t.Parallel()
	g := forMoving(t, "v2")
	start := "group mig; truncate -s 4194304 /dev/shm/mig-s; for n in a b; do start $n mig hold --bind-cpu 0 --ws 4m --file /dev/shm/mig-s --extra 8m --thp off; done"
	if r := moved(t, g, start); r.Exit != 0 {
		t.Fatalf("start: exit %d\n%s", r.Exit, r.Stderr)
	}
	r := moved(t, g, "homenode-load drop sys_nice homenode-mover migrate --cgroup /mig --to 1 -o json")
	report, err := migration.DecodeReport([]byte(r.Stdout))
	result, _ := report.Result.Get()
	if err != nil || r.Exit != 3 || report.Outcome != migration.Partial || !strings.Contains(strings.Join(report.Notes, " "), "CAP_SYS_NICE") {
		t.Fatalf("exit %d, %v, notes %q\n%s", r.Exit, err, report.Notes, r.Stderr)
	}
	if shared := result.Of(migration.Shmem); len(shared.Failed) == 0 || shared.Failed[0].Reason != "EACCES" || shared.Failed[0].Bytes < 4<<20 {
		t.Errorf("shared memory: %+v", shared)
	}
	atHome(t, "after", countPages(t, g, "mig"), 1, migration.Anon)
}

// change is an event in a workload during its move, and its visible effect afterwards.
// The move starts with one process less or more than it ends with, or while a loop counts
// its changes of a file.
type change struct {
	name, start, meanwhile, rate string
	before, after                int // processes
	home                         unit.Bytes
}

var changes = []change{
	{name: "a process ends", start: "start a mig hold --bind-cpu 0 --ws 12m --thp off; start b mig hold --bind-cpu 0 --ws 12m --thp off",
		meanwhile: "moving mig && kill -9 $(pid b)", rate: "8MB/s", before: 2, after: 1, home: 12 << 20},
	{name: "a process forks", start: "start a mig hold --bind-cpu 0 --ws 24m --thp off --fork-when /tmp/mig-fork.log",
		meanwhile: "moving mig && touch /tmp/mig-fork.log", rate: "8MB/s", before: 1, after: 2, home: 24 << 20},
	{name: "a file is cut", start: "cached /scratch/mig-a 33554432 0; start a mig hold --bind-cpu 0 --ws 8m --thp off --open /scratch/mig-a",
		meanwhile: "n=0; while [ $n -lt 400 ]; do truncate -s 4194304 /scratch/mig-a; n=$((n + 1)); echo $n > /tmp/mig-cuts; homenode-load pagecache --write --bytes 25165824 --bind-cpu 0 --file /scratch/mig-a >/dev/null; sleep 0.05; done",
		rate:      "2MB/s", before: 1, after: 1, home: 8 << 20},
}

// cuts is how often the file was cut so far.
func cuts(t *testing.T, g *Guest) (n int) {
	t.Helper()
	fmt.Sscan(moved(t, g, "cat /tmp/mig-cuts 2>/dev/null").Stdout, &n)
	return n
}

// The workload changes while it is moved. homenode does not end, it reports the change,
// and the remaining memory comes home.
func TestLabMigrateMeanwhile(t *testing.T) {
	t.Parallel()
	for _, c := range changes {
		t.Run(c.name, func(t *testing.T) {
			g := forMoving(t, "v2")
			if r := moved(t, g, "rm -f /tmp/mig-cuts; group mig; "+c.start); r.Exit != 0 {
				t.Fatalf("start: exit %d\n%s", r.Exit, r.Stderr)
			}
			if c.meanwhile != "" {
				mustRun(t, g, "sh", "-c", ". /tmp/mig-lib.sh; ("+c.meanwhile+") </dev/null >/tmp/mig-meanwhile.log 2>&1 & echo $! > /tmp/mig-meanwhile.pid")
			}
			first := cuts(t, g)
			report, r := migrates(t, g, "--cgroup /mig --to 1 --rate "+c.rate, 0, 3)
			c.happened(t, g, report, cuts(t, g)-first)
			result, _ := report.Result.Get()
			t.Logf("%s, moved %v, problems %q, notes %q", report.Outcome, result.Moved(), result.Problems, report.Notes)
			if report.Outcome == migration.Partial && len(result.Problems)+len(report.Notes) == 0 && result.Failed() == 0 && result.Complete {
				t.Errorf("partial, without a reason: %s", r.Stdout)
			}
		})
	}
}

// happened: the change came in the middle of the move, and what survived it is on the
// target node.
func (c change) happened(t *testing.T, g *Guest, report migration.Report, cuts int) {
	t.Helper()
	ids := strings.TrimSpace(moved(t, g, "pids mig").Stdout)
	if n := len(strings.Split(ids, ",")); report.Before.Processes != c.before || n != c.after {
		t.Errorf("%d processes before the move, %d after it (%s): want %d, %d", report.Before.Processes, n, ids, c.before, c.after)
	}
	if c.name == "a file is cut" && cuts < 2 {
		t.Errorf("the file was cut %d times during the move", cuts)
	}
	if result, _ := report.Result.Get(); c.after < c.before && len(result.Problems) == 0 && result.Of(migration.Anon).Gone == 0 {
		t.Errorf("a process ended, and the report does not say so: %+v", result)
	}
	census := countPages(t, g, "mig")
	atHome(t, "what survived", census, 1, migration.Anon)
	if row, _ := census.Of(migration.Anon); row.On(set.FromNodes(1)) < c.home {
		t.Errorf("%v of what survived are at home, want %v", row.On(set.FromNodes(1)), c.home)
	}
}

const frozenState = `cat $base/mig/cgroup.freeze /sys/fs/cgroup/freezer/mig/freezer.state 2>/dev/null
for p in $(cat $base/mig/cgroup.procs); do grep ^State /proc/$p/status; done`

// Frozen, moved and thawed, whatever the version of cgroups.
func TestLabMigrateFreeze(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"v2", "v1"} {
		t.Run(version, func(t *testing.T) {
			g := forMoving(t, version)
			start := "group mig; start a mig victim --bind-cpu 0 --cpus 2 --ws 4m --extra 8m --thp off; start b mig hold --bind-cpu 0 --ws 12m --thp off"
			if r := moved(t, g, start); r.Exit != 0 {
				t.Fatalf("start: exit %d\n%s", r.Exit, r.Stderr)
			}
			report, _ := migrates(t, g, "--cgroup /mig --to 1 --mode freeze --workers 2", 0)
			if frozen, ok := report.Frozen.Get(); !ok || frozen <= 0 || report.Mode != migration.Freeze {
				t.Errorf("frozen for %v s (known: %v) in mode %s", frozen, ok, report.Mode)
			}
			atHome(t, "after", countPages(t, g, "mig"), 1, migration.Anon)
			state := moved(t, g, frozenState).Stdout
			if strings.Contains(state, "FROZEN") || strings.HasPrefix(state, "1") || strings.Count(state, "State:") != 2 {
				t.Errorf("afterwards: %s", state)
			}
			var v victimReport
			r := moved(t, g, "sleep 0.2; finish a")
			if err := json.Unmarshal([]byte(r.Stdout), &v); err != nil || len(v.Phases) == 0 || v.Phases[0].Ops == 0 {
				t.Errorf("the victim afterwards: %v\n%.300s%s", err, r.Stdout, r.Stderr)
			}
		})
	}
}

// Hot mode reports how it knows which pages are hot. It moves those, and not much else:
// at most a quarter of the untouched memory.
func TestLabMigrateHot(t *testing.T) {
	t.Parallel()
	g := forMoving(t, "v2")
	mustRun(t, g, "homenode-load", "control", "on") // its PMU samples
	if r := moved(t, g, "group mig; start a mig victim --bind-cpu 0 --cpus 2 --ws 4m --extra 32m --thp off"); r.Exit != 0 {
		t.Fatalf("start: exit %d\n%s", r.Exit, r.Stderr)
	}
	report, _ := migrates(t, g, "--cgroup /mig --to 1 --mode hot --hot-for 8s", 0, 3)
	heat, ok := report.Heat.Get()
	result, _ := report.Result.Get()
	const hot, cold = 4 << 20, 32 << 20
	if !strings.Contains(report.Clock, "model") {
		t.Errorf("timed by the %s, while the model is on", report.Clock)
	}
	if !ok || heat.Source == "" || heat.Unit == "" || result.Moved() < hot*3/4 || result.Moved() > hot+cold/4 || report.Mode != migration.Hot {
		t.Errorf("heat %+v, moved %v in mode %s", heat, result.Moved(), report.Mode)
	}
	t.Logf("by %s, a %s: %v hot, %v moved; not: %s", heat.Source, heat.Unit, heat.Bytes, result.Moved(), fmt.Sprint(heat.Others))
}
