// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"homenode/internal/kernel"
	"homenode/internal/kernel/kerneltest"
	"homenode/internal/kernel/migrate"
	"homenode/internal/migration"
	"homenode/internal/unit"
)

// fakeMigration is a host of two nodes and a tree, on which nothing is moved but
// numbers.
type fakeMigration struct {
	root      kernel.Root
	census    []migration.Census // the first, and what comes after
	result    migration.Result
	moveErr   error
	censusErr error
	during    func()                                // the move
	frozen    *fakeFrozen                           // nil: cannot be frozen
	hot       func() (migration.Heat, error)        // nil: unknown
	pid       int                                   // ours
	asked     []migrate.Request                     // moves
	alone     func(pids []int) (id string, e error) // FreezableFor
}

func (f *fakeMigration) Census(_ context.Context, req migrate.Request) (migration.Census, error) {
	if f.censusErr != nil {
		return migration.Census{}, f.censusErr
	}
	c := f.census[0]
	if len(f.census) > 1 {
		f.census = f.census[1:]
	}
	c.Processes = len(req.PIDs)
	return c, nil
}

func (f *fakeMigration) Move(ctx context.Context, req migrate.Request) (migration.Result, error) {
	f.asked = append(f.asked, req)
	if f.during != nil {
		f.during()
	}
	req.Progress(migrate.Progress{Moved: f.result.Moved(), Elapsed: time.Second, Longest: time.Millisecond, Kind: migration.Anon})
	if f.moveErr != nil {
		return f.result, f.moveErr
	}
	return f.result, ctx.Err()
}

type fakeFrozen struct {
	already bool
	thawed  int
	err     error
	lost    chan struct{}
	owners  []string
	state   string
	id      string
}

func (f *fakeFrozen) Thaw() error           { f.thawed++; return f.err }
func (f *fakeFrozen) Lost() <-chan struct{} { return f.lost }
func (f *fakeFrozen) Already() bool         { return f.already }

type fakeHeat struct{ heat migration.Heat }

func (f fakeHeat) Hot(int, uint64) bool { return true }
func (f fakeHeat) Heat() migration.Heat { return f.heat }
func (f fakeHeat) Notes() []string      { return []string{"process 3 ended while it was watched"} }

// fakeClock takes a second for every look at it.
type fakeClock struct{ now time.Duration }

func (c *fakeClock) Now() time.Duration { c.now += time.Second; return c.now }
func (c *fakeClock) Name() string       { return "fake clock" }
func (c *fakeClock) How() unit.Source   { return unit.HowModelled }

func (f *fakeMigration) install(t *testing.T) {
	t.Helper()
	old := openMigration
	t.Cleanup(func() { openMigration = old })
	openMigration = func() migrateHost {
		return migrateHost{
			root: f.root, pid: f.pid,
			clock:     func() (migrate.Clock, string, error) { return &fakeClock{}, "", nil },
			mover:     func(migrate.Clock, bool) (pageMover, error) { return f, nil },
			freezable: func(_ kernel.Root, pids []int) (string, error) { return f.alone(pids) },
			freeze: func(_ context.Context, id, state string, owners []string) (stilled, error) {
				if f.frozen == nil {
					return nil, fmt.Errorf("freeze %s: no freezer (%w)", id, kernel.ErrNotSupported)
				}
				f.frozen.id, f.frozen.state, f.frozen.owners = id, state, owners
				return f.frozen, nil
			},
			hot: func(context.Context, []int, time.Duration) (heated, error) {
				h, err := f.hot()
				return fakeHeat{h}, err
			},
		}
	}
}

const (
	rootStatus  = "Tgid:\t1\nUid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\nCpus_allowed_list:\t0-3\nMems_allowed_list:\t0-2,4\n"
	ownStatus   = "Tgid:\t1\nUid:\t500\t500\t500\t500\nCapEff:\t0000000000000000\nCpus_allowed_list:\t0-3\nMems_allowed_list:\t0-2,4\n"
	taskStat    = "%d (app) %s 1 1 1 0 -1 %d 0 0 0 0 1 0 0 0 20 0 1 0 99 1 1 1 1 1 1 1 1 0 0 0 0 0 0 0 17 0 0\n"
	meminfoText = "Node %d MemTotal:  524288 kB\nNode %d MemFree:  %d kB\nNode %d FilePages:  1024 kB\nNode %d Shmem:  0 kB\nNode %d Dirty:  0 kB\n"
)

func task(pid int, state string, flags int) string { return fmt.Sprintf(taskStat, pid, state, flags) }

func statusText(pid, uid int, mems string) string {
	return fmt.Sprintf("Tgid:\t%d\nUid:\t%d\t%d\t%d\t%d\nCpus_allowed_list:\t0-3\nMems_allowed_list:\t%s\n", pid, uid, uid, uid, uid, mems)
}

// migrateTree has workload /demo/a of processes 10 and 11 (and a kernel thread), /demo/b
// of 12, whose cpuset is node 0; nodes 0, 1, 2 (nearly full) and 4 (without memory).
func migrateTree(t *testing.T) kernel.Root {
	files := kerneltest.TwoNodes().With(kerneltest.Files{
		"/proc/self/mountinfo":                            "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
		"/proc/self/status":                               rootStatus,
		fakeTop + "/cgroup.controllers":                   "cpuset cpu memory\n",
		fakeTop + "/cpuset.cpus.effective":                "0-3\n",
		fakeTop + "/cpuset.mems.effective":                "0-2,4\n",
		fakeTop + "/demo/a/cgroup.procs":                  "10\n11\n2\n13\n",
		fakeTop + "/demo/b/cgroup.procs":                  "12\n",
		fakeTop + "/demo/b/cpuset.mems.effective":         "0\n",
		fakeTop + "/demo/b/cpuset.cpus.effective":         "0-3\n",
		fakeTop + "/system.slice/db.service/cgroup.procs": "10\n",
		fakeTop + "/other/a/cgroup.procs":                 "14\n",
		"/proc/2/stat":                                    task(2, "S", 0x00200000),
		"/proc/13/stat":                                   task(13, "Z", 0),
		"/proc/15/stat":                                   task(15, "S", 0),
		"/proc/15/status":                                 statusText(10, 0, "0-1"), // a thread of 10
		"/proc/zoneinfo":                                  "Node 0, zone   Normal\n        low      256\nNode 1, zone   Normal\n        low      256\n",
		"/sys/devices/system/node/online":                 "0-2,4\n",
		"/sys/devices/system/node/possible":               "0-7\n",
		"/sys/devices/system/node/node1/hugepages/hugepages-2048kB/free_hugepages": "3\n",
	})
	for pid, mems := range map[int]string{10: "0-2,4", 11: "0-2,4", 12: "0", 14: "0-1"} {
		files[fmt.Sprintf("/proc/%d/stat", pid)] = task(pid, "S", 0)
		files[fmt.Sprintf("/proc/%d/status", pid)] = statusText(pid, 500, mems)
	}
	for node, free := range map[int]int{0: 262144, 1: 262144, 2: 6000, 4: 0} {
		dir := fmt.Sprintf("/sys/devices/system/node/node%d/", node)
		files[dir+"meminfo"] = fmt.Sprintf(meminfoText, node, node, free, node, node, node)
		files[dir+"distance"] = []string{"10 21 21 21\n", "21 10 21 21\n", "21 21 10 21\n", "", "21 21 21 10\n"}[node]
		if node > 1 {
			files[dir+"cpulist"] = "\n"
		}
	}
	files["/sys/devices/system/node/node4/meminfo"] = "Node 4 MemTotal:  0 kB\nNode 4 MemFree:  0 kB\n"
	return kerneltest.Tree(t, files)
}

// moved is a result that all of a census was moved by.
func moved(c migration.Census, to int) (r migration.Result) {
	for _, row := range c.Rows {
		for _, n := range row.Nodes {
			if n.Node != to {
				r.Of(row.Kind).Moved += n.Bytes
			}
		}
	}
	r.Calls, r.Time, r.CPU, r.Longest, r.Batch, r.Workers, r.Complete = 12, 2*time.Second, time.Second, 3*time.Millisecond, 64, 1, true
	return r
}

func newFakeMigration(t *testing.T) *fakeMigration {
	var before, after migration.Census
	before.Add(migration.Anon, 0, 100*unit.MiB)
	before.Add(migration.Anon, 1, 10*unit.MiB)
	before.Add(migration.Cache, 0, 20*unit.MiB)
	after.Add(migration.Anon, 1, 110*unit.MiB)
	after.Add(migration.Cache, 1, 20*unit.MiB)
	f := &fakeMigration{root: migrateTree(t), census: []migration.Census{before, after}, pid: 99}
	f.result = moved(before, 1)
	f.alone = func([]int) (string, error) { return "/demo/a", nil }
	f.install(t)
	return f
}

// migrateOut runs a command line and returns its exit code and what it printed.
func migrateOut(ctx context.Context, line string) (code int, stdout, stderr string) {
	root := rootCommand()
	var out, bad bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&bad)
	root.SetArgs(append([]string{"migrate"}, strings.Fields(line)...))
	code = finish(root.ExecuteContext(ctx), &bad)
	return code, out.String(), bad.String()
}

// Each bad request is exit code 2 and one sentence; nothing is moved, and nothing
// printed as if it were.
func TestMigrateRefuses(t *testing.T) {
	f := newFakeMigration(t)
	other, before := profileOf(t, shapeMachine(t, "four")), f.census[0]
	for _, c := range []struct{ line, want string }{
		{"--to 1", "nothing to move: give --workload, --cgroup or --pid"},
		{"--workload a --cgroup /demo/a --to 1", "give one of them"},
		{"--pid 10 --cgroup /demo/a --to 1", "give one of them"},
		{"--pid= --to 1", "--pid is empty"},
		{"--pid all --to 1", "name them, or a cgroup"},
		{"--pid x --to 1", "want process ids like 12"},
		{"--pid 10,-3 --to 1", "want process ids like 12"},
		{"--cgroup /demo/a", "nowhere to move to: give --to"},
		{"--cgroup /demo/a --to x", "--to: "},
		{"--cgroup /demo/a --to 9", "--to 9: node 9: there is no such: this machine has nodes 0-2,4"},
		{"--cgroup /demo/a --to 1,5", "node 5: offline: this machine has nodes 0-2,4 online"},
		{"--cgroup /demo/a --to 4", "node 4 has no memory"},
		{"--cgroup /demo/a --to 1 --from 9", "--from 9: node 9: there is no such"},
		{"--cgroup /demo/a --to 1 --from 3", "--from 3: node 3: offline"},
		{"--cgroup /demo/a --to 0-1 --from 1,2", "--from 1-2, --to 0-1: node 1 is in both"},
		{"--cgroup /demo/a --to 1 --from x", "--from: "},
		{"--cgroup /demo/none --to 1", "there is none of that path"},
		{"--workload none --to 1", "no cgroup with processes has that path, or that name"},
		{"--workload a --to 1", "it is the name of several, give the path: /demo/a, /other/a"},
		{"--pid 4711 --to 1", "process 4711: there is none, or it has ended"},
		{"--pid 2 --to 1", "process 2 (app) is a kernel thread: it has no memory of its own"},
		{"--pid 13 --to 1", "process 13 (app) has ended"},
		{"--pid 15 --to 1", "15 is a thread of process 10: give the process"},
		{"--cgroup /demo/b --to 1", "move to node 1: the cpuset of cgroup /demo/b allows node 0 only"},
		{"--pid 12 --to 1", "move to node 1: the cpuset of process 12 (app) allows node 0 only"},
		{"--pid 14 --to 1-2", "the cpuset of process 14 (app) allows nodes 0-1 only"},
		{"--cgroup /demo/a --to 2", "move 130MiB to node 2: 128.3MiB are missing: node 2 has 5.9MiB free and 1MiB of page cache that could go, and keeps 5.1MiB; --partial moves what fits"},
		{"--cgroup /demo/a --to 1 --mode fast", `--mode "fast": want live, freeze or hot`},
		{"--cgroup /demo/a --to 1 --rate 0", "it is not per second"},
		{"--cgroup /demo/a --to 1 --rate 0MB/s", "nothing would ever be moved"},
		{"--cgroup /demo/a --to 1 --rate -5MB/s", "it cannot be negative"},
		{"--cgroup /demo/a --to 1 --rate 200", "it is not per second"},
		{"--cgroup /demo/a --to 1 --rate 200/s", "it has no unit"},
		{"--cgroup /demo/a --to 1 --rate 200M/s", `unknown unit "M"`},
		{"--cgroup /demo/a --to 1 --rate 9999999PiB/s", "63 bits"},
		{"--cgroup /demo/a --to 1 --max-stall -1ms", "--max-stall -1ms: it cannot be negative"},
		{"--cgroup /demo/a --to 1 --max-stall 20", "missing unit"},
		{"--cgroup /demo/a --to 1 --workers 0", "--workers 0: want at least 1"},
		{"--cgroup /demo/a --to 1 --workers 1000", "want at most 256"},
		{"--cgroup /demo/a --to 1 --hot-for 3s", "--hot-for: that is for --mode hot"},
		{"--cgroup /demo/a --to 1 --state /x", "--state: that is for another --mode than live"},
		{"--cgroup /demo/a --to 1 --direct-owner systemd", "--direct-owner: that is for another --mode than live"},
		{"--cgroup /demo/a --to 1 --mode hot --hot-for 0s", "--hot-for 0s"},
		{"--cgroup /demo/a --to 1 --mode hot --state /x", "that is for --mode freeze"},
		{"--cgroup /demo/a --to 1 --mode freeze --rate 1GB/s", "a frozen workload is moved as fast as the memory allows"},
		{"--cgroup /demo/a --to 1 --mode freeze --max-stall 1s", "--max-stall: a frozen workload"},
		{"--cgroup /demo/a --to 1 --mode freeze --hot-for 1s", "--hot-for: that is for --mode hot"},
		{"--cgroup /demo/a --to 1 --mode freeze --direct-owner me", `--direct-owner "me": want systemd, kubelet`},
		{"--cgroup /demo/a --to 1 --mode freeze", "freeze /demo/a: no freezer"},
		{"--cgroup /system.slice/db.service --to 1 --mode freeze --dry-run", "it is owned by systemd, which may be confused by that: --direct-owner systemd does it all the same"},
		{"--cgroup /demo/a --to 1 -o xml", "text or json"},
		{"--cgroup /demo/a --to 1 --profile none.json", "read profile"},
		{"--cgroup /demo/a --to 1 --profile " + other, "is of another machine"},
		{"--cgroup /demo/a --to 1 more", "want no arguments"},
	} {
		f.census = []migration.Census{before}
		code, stdout, stderr := migrateOut(context.Background(), c.line)
		if code != exitBadInput || !strings.Contains(stderr, c.want) || strings.Count(stderr, "\n") != 1 || stdout != "" {
			t.Errorf("%s: exit code %d, %q, %q, want %q", c.line, code, stdout, stderr, c.want)
		}
	}
	if len(f.asked) > 0 {
		t.Errorf("something was moved: %+v", f.asked)
	}
}

// Who we are decides whom we may touch.
func TestMigratePowers(t *testing.T) {
	f := newFakeMigration(t)
	kerneltest.Write(t, f.root, kerneltest.Files{"/proc/self/status": ownStatus})
	code, stdout, stderr := migrateOut(context.Background(), "--cgroup /demo/a --to 1")
	if code != exitDone || !strings.Contains(strings.Join(strings.Fields(stdout), " "), "without CAP_SYS_NICE, pages that several processes map stay where they are (EACCES)") {
		t.Errorf("own processes: %d, %s, %s", code, stdout, stderr)
	}
	kerneltest.Write(t, f.root, kerneltest.Files{"/proc/11/status": statusText(11, 0, "0-1")})
	for _, c := range []struct{ caps, want string }{
		{"0000000000000000", "move process 11 (app): it belongs to another user: that needs CAP_SYS_NICE and CAP_SYS_PTRACE"},
		{"0000000000080000", "another user: that needs CAP_SYS_NICE: run"},
		{"0000000000800000", "another user: that needs CAP_SYS_PTRACE: run"},
	} {
		kerneltest.Write(t, f.root, kerneltest.Files{"/proc/self/status": strings.Replace(ownStatus, "0000000000000000", c.caps, 1)})
		if code, _, stderr := migrateOut(context.Background(), "--cgroup /demo/a --to 1"); code != exitBadInput || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: %d, %s", c.caps, code, stderr)
		}
	}
	kerneltest.Write(t, f.root, kerneltest.Files{"/proc/self/status": strings.Replace(rootStatus, "0-2,4", "0", 1)})
	if code, _, stderr := migrateOut(context.Background(), "--cgroup /demo/a --to 1"); code != exitBadInput || !strings.Contains(stderr, "homenode's own cpuset allows node 0 only") {
		t.Errorf("own cpuset: %d, %s", code, stderr)
	}
	if len(f.asked) != 1 {
		t.Errorf("%d moves", len(f.asked))
	}
}

// The exit code and the first line say how it ended.
func TestMigrateOutcomes(t *testing.T) {
	for _, c := range []struct {
		name, line string
		change     func(*fakeMigration)
		code       int
		want, err  string // in the report; on standard error
	}{
		{name: "complete", line: "--cgroup /demo/a --to 1", want: "complete: 120 MiB moved to node 1"},
		{name: "its directory", line: "--cgroup /sys/fs/cgroup/demo/a --to 1", want: "cgroup /demo/a: complete"},
		{name: "processes", line: "--pid 11,10,11 --to 1", want: "processes 10, 11: complete"},
		{name: "dry run", line: "--cgroup /demo/a --to 1 --dry-run", want: "dry run: 120 MiB would be moved to node 1"},
		{name: "nothing", line: "--cgroup /demo/a --to 0 --from 2", code: exitNothing, want: "nothing to do: none of it is on node 2"},
		{name: "nothing, dry", line: "--cgroup /demo/a --to 0 --from 2 --dry-run", code: exitNothing, want: "nothing to do"},
		{name: "failed pages", line: "--cgroup /demo/a --to 1", code: exitPartly, want: "EBUSY: somebody held them",
			change: func(f *fakeMigration) { f.result.Of(migration.Anon).Fail("EBUSY", unit.MiB) }},
		{name: "left on purpose", line: "--cgroup /demo/a --to 1 --leave-shared", want: "complete",
			change: func(f *fakeMigration) { f.result.Of(migration.Cache).Fail("left: others use it", unit.MiB) }},
		{name: "not seen", line: "--cgroup /demo/a --to 1", code: exitPartly, want: "5MiB are elsewhere that were not tried",
			change: func(f *fakeMigration) { f.census[1].Add(migration.Cache, 0, 5*unit.MiB) }},
		{name: "allocated meanwhile", line: "--cgroup /demo/a --to 1", want: "512KiB are elsewhere that were not tried",
			change: func(f *fakeMigration) { f.census[1].Add(migration.Anon, 0, 512*unit.KiB) }},
		{name: "stopped", line: "--cgroup /demo/a --to 1", code: exitPartly, want: "stopped: the time",
			change: func(f *fakeMigration) { f.result.Complete, f.result.Stopped = false, "the time" }},
		{name: "broke", line: "--cgroup /demo/a --to 1", code: exitFailed, want: "stopped: move pages: out of memory", err: "homenode: move pages: out of memory",
			change: func(f *fakeMigration) { f.moveErr = errors.New("move pages: out of memory") }},
		{name: "all ended", line: "--cgroup /demo/a --to 1", code: exitPartly, want: "they have ended",
			change: func(f *fakeMigration) { f.moveErr = fmt.Errorf("they have ended: %w", kernel.ErrGone) }},
		{name: "partial room", line: "--cgroup /demo/a --to 2 --partial", code: exitPartly, want: "only 1.7MiB are moved: 128.3MiB are missing"},
		{name: "no room at all", line: "--cgroup /demo/a --to 2 --partial", code: exitBadInput, err: "none of it fits",
			change: func(f *fakeMigration) {
				f.root = migrateTree(t)
				kerneltest.Write(t, f.root, kerneltest.Files{"/sys/devices/system/node/node2/meminfo": fmt.Sprintf(meminfoText, 2, 2, 0, 2, 2, 2)})
			}},
		{name: "a dry run without room", line: "--cgroup /demo/a --to 2 --dry-run", code: exitBadInput, want: "dry run: 130 MiB", err: "are missing"},
		{name: "pool", line: "--cgroup /demo/a --to 1", code: exitBadInput, err: "2MiB of its huge pages are missing: the hugetlb pools there have 6MiB free (free_hugepages)",
			change: func(f *fakeMigration) { f.census[0].Add(migration.Hugetlb, 0, 8*unit.MiB) }},
		{name: "pool that does", line: "--cgroup /demo/a --to 1", want: "complete",
			change: func(f *fakeMigration) { f.census[0].Add(migration.Hugetlb, 0, 6*unit.MiB) }},
		{name: "freeze", line: "--cgroup /demo/a --to 1 --mode freeze --direct-owner systemd --direct-owner docker --state /s", want: "mode freeze",
			change: func(f *fakeMigration) { f.frozen = &fakeFrozen{} }},
		{name: "freeze of a process", line: "--pid 10 --to 1 --mode freeze", want: "frozen",
			change: func(f *fakeMigration) { f.frozen = &fakeFrozen{} }},
		{name: "freeze of some", line: "--pid 10 --to 1 --mode freeze", code: exitBadInput, err: "shares its cgroup /demo/a with process 11",
			change: func(f *fakeMigration) {
				f.alone = func([]int) (string, error) {
					return "", errors.New("process 10 shares its cgroup /demo/a with process 11")
				}
			}},
		{name: "freeze of ourselves", line: "--cgroup /demo/a --to 1 --mode freeze", code: exitBadInput, err: "homenode itself is in it",
			change: func(f *fakeMigration) { f.pid = 11 }},
		{name: "frozen before", line: "--cgroup /demo/a --to 1 --mode freeze", want: "somebody else had frozen it: it still is",
			change: func(f *fakeMigration) { f.frozen = &fakeFrozen{already: true} }},
		{name: "not thawed", line: "--cgroup /demo/a --to 1 --mode freeze", code: exitFailed, want: "complete", err: "it is still frozen",
			change: func(f *fakeMigration) { f.frozen = &fakeFrozen{err: errors.New("thaw: it is still frozen")} }},
		{name: "hot", line: "--cgroup /demo/a --to 1 --mode hot", want: "accessed within 2 s: 30 MiB, by DAMON", err: "watching for 2s",
			change: func(f *fakeMigration) {
				f.hot = func() (migration.Heat, error) {
					return migration.Heat{Source: "DAMON", How: unit.HowMeasured, Unit: "region", For: 2 * time.Second, Bytes: 30 * unit.MiB}, nil
				}
			}},
		{name: "nothing hot", line: "--cgroup /demo/a --to 1 --mode hot", code: exitNothing, want: "what is elsewhere was not accessed", err: "watching",
			change: func(f *fakeMigration) { f.hot = func() (migration.Heat, error) { return migration.Heat{}, nil } }},
		{name: "ended before", line: "--cgroup /demo/a --to 1", code: exitBadInput, err: "they have ended",
			change: func(f *fakeMigration) { f.censusErr = fmt.Errorf("they have ended (%w)", kernel.ErrGone) }},
		{name: "no heat", line: "--cgroup /demo/a --to 1 --mode hot", code: exitBadInput, err: "no DAMON",
			change: func(f *fakeMigration) {
				f.hot = func() (migration.Heat, error) {
					return migration.Heat{}, fmt.Errorf("no DAMON (%w)", kernel.ErrNotSupported)
				}
			}},
	} {
		f := newFakeMigration(t)
		if c.change != nil {
			c.change(f)
		}
		code, stdout, stderr := migrateOut(context.Background(), c.line)
		flat := strings.Join(strings.Fields(stdout), " ")
		if code != c.code || !strings.Contains(flat, c.want) || (c.want == "") != (stdout == "") || !strings.Contains(stderr, c.err) {
			t.Errorf("%s: exit code %d, want %d, %q, %q\n%s\n%s", c.name, code, c.code, c.want, c.err, stdout, stderr)
		}
		if f.frozen != nil && f.frozen.thawed != 1 {
			t.Errorf("%s: thawed %d times", c.name, f.frozen.thawed)
		}
	}
}

// What is asked of the mover is what was asked of us.
func TestMigrateRequest(t *testing.T) {
	f := newFakeMigration(t)
	f.pid = 10
	if code, _, stderr := migrateOut(context.Background(), "--cgroup /demo/a --to 1 --from 0 --rate 1.5GiB/s --max-stall 5ms --no-cache --leave-shared --workers 3"); code != exitDone {
		t.Fatal(code, stderr)
	}
	r := f.asked[0]
	if r.Rate != 3*unit.GiB/2 || r.MaxStall != 5*time.Millisecond || r.Cache || !r.LeaveForeign || r.Workers != 3 || r.Budget != migrate.NoBudget ||
		r.From.String() != "0" || r.To.String() != "1" || !slices.Equal(r.PIDs, []int{11}) || r.Hot != nil || !r.CPUs.IsEmpty() {
		t.Errorf("%+v", r)
	}
	if again, err := r.Again(); err != nil || !slices.Equal(again, []int{2, 11, 13}) {
		t.Errorf("again: %v, %v", again, err)
	}
	f = newFakeMigration(t)
	f.frozen = &fakeFrozen{}
	migrateOut(context.Background(), "--cgroup /demo/a --to 1 --mode freeze --direct-owner systemd --state /s")
	r = f.asked[0]
	if r.Rate != 0 || r.MaxStall != 0 || r.Workers != 2 || r.CPUs.String() != "2-3" || !r.Cache || f.frozen.id != "/demo/a" || f.frozen.state != "/s" || !slices.Equal(f.frozen.owners, []string{"systemd"}) {
		t.Errorf("%+v, %+v", r, f.frozen)
	}
	f = newFakeMigration(t)
	migrateOut(context.Background(), "--pid 10 --to 2 --partial --rate max --max-stall 0")
	if r = f.asked[0]; r.Again != nil || r.Rate != 0 || r.MaxStall != 0 || r.Workers != 1 || r.Budget >= 2*unit.MiB || r.Budget < unit.MiB {
		t.Errorf("%+v", r)
	}
}

// Ctrl-C: thawed, looked at again, reported, exit code 3.
func TestMigrateInterrupted(t *testing.T) {
	for _, mode := range []string{"live", "freeze"} {
		f := newFakeMigration(t)
		f.frozen = &fakeFrozen{}
		ctx, cancel := context.WithCancel(context.Background())
		f.during = cancel
		f.result.Of(migration.Anon).Moved = 40 * unit.MiB
		code, stdout, stderr := migrateOut(ctx, "--cgroup /demo/a --to 1 --mode "+mode)
		flat := strings.Join(strings.Fields(stdout), " ")
		if code != exitPartly || !strings.Contains(flat, "partly done: 60 MiB of 120 MiB moved to node 1; stopped: interrupted") || !strings.Contains(stderr, "interrupted: what was moved stays") ||
			strings.Contains(stdout, unknownAfter) {
			t.Errorf("%s: %d, %s, %s", mode, code, stdout, stderr)
		}
		if mode == "freeze" && f.frozen.thawed != 1 {
			t.Errorf("thawed %d times", f.frozen.thawed)
		}
		f.censusErr = fmt.Errorf("count pages: %w", context.Canceled)
		if code, stdout, stderr = migrateOut(ctx, "--cgroup /demo/a --to 1 --mode "+mode); code != exitFailed || stdout != "" || !strings.Contains(stderr, "interrupted before anything was moved") {
			t.Errorf("%s, stopped before: %d, %s, %s", mode, code, stdout, stderr)
		}
	}
}

const unknownAfter = "where its memory is now is unknown"

// Who loses the guard stops at once.
func TestMigrateGuardLost(t *testing.T) {
	f := newFakeMigration(t)
	f.frozen = &fakeFrozen{lost: make(chan struct{})}
	f.during = func() {
		close(f.frozen.lost)
		time.Sleep(50 * time.Millisecond) // the watcher's turn
	}
	code, stdout, stderr := migrateOut(context.Background(), "--cgroup /demo/a --to 1 --mode freeze")
	if code != exitFailed || f.frozen.thawed != 1 || !strings.Contains(stderr, "the guard that thaws it ended") || !strings.Contains(stdout, "partly done") {
		t.Errorf("%d, thawed %d times: %s, %s", code, f.frozen.thawed, stdout, stderr)
	}
}

// A panic thaws.
func TestMigratePanicThaws(t *testing.T) {
	f := newFakeMigration(t)
	f.frozen = &fakeFrozen{}
	f.during = func() { panic("broken") }
	func() {
		defer func() { _ = recover() }()
		migrateOut(context.Background(), "--cgroup /demo/a --to 1 --mode freeze")
	}()
	if f.frozen.thawed != 1 {
		t.Errorf("thawed %d times", f.frozen.thawed)
	}
}

func TestMigrateJSON(t *testing.T) {
	newFakeMigration(t)
	code, stdout, _ := migrateOut(context.Background(), "--cgroup /demo/a --to 1 -o json")
	r, err := migration.DecodeReport([]byte(stdout))
	res, ok := r.Result.Get()
	if code != exitDone || err != nil || !ok || res.Moved() != 120*unit.MiB || r.Clock != "fake clock" || r.How != unit.HowModelled || r.Target != "cgroup /demo/a" || r.Before.Processes != 2 {
		t.Errorf("%d, %v, %+v", code, err, r)
	}
}

func TestMigrateProfile(t *testing.T) {
	f := newFakeMigration(t)
	m, err := kernel.ReadMachine(f.root)
	if err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := migrateOut(context.Background(), "--cgroup /demo/a --to 1 --profile "+profileOf(t, m)); code != exitDone {
		t.Errorf("%d, %s", code, stderr)
	}
}

func TestParseRate(t *testing.T) {
	for text, want := range map[string]unit.Bytes{
		"max": 0, "200MB/s": 200e6, "500B/s": 500, "3kB/s": 3000, "1.5GB/s": 15e8, "2KiB/s": 2048, "1 MiB/s": unit.MiB, "1GiB/s": unit.GiB,
	} {
		if got, err := parseRate(text); err != nil || got != want {
			t.Errorf("%s: %d, %v, want %d", text, got, err, want)
		}
	}
}

func FuzzParseRate(f *testing.F) {
	for _, s := range []string{"max", "200MB/s", "-1B/s", "1.5 GiB/s", "/s", "200", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		b, err := parseRate(s)
		if err != nil && b != 0 || err == nil && b < 0 {
			t.Errorf("%q: %d, %v", s, b, err)
		}
	})
}

// The bar fits 79 columns, whatever happens.
func TestMigrateBar(t *testing.T) {
	for _, p := range []migrate.Progress{
		{}, {Moved: 1 << 62, Elapsed: 1, Longest: 1<<63 - 1, Kind: migration.Hugetlb}, {Moved: 1023*unit.GiB + 900*unit.MiB, Elapsed: time.Hour, Longest: 23456 * time.Microsecond, Kind: "hugetlb"},
		{Failed: 3 * unit.MiB, Elapsed: time.Minute}, {Moved: 1, Elapsed: 1 << 62}, {Moved: 1200 * unit.MiB, Elapsed: 5 * time.Second, Longest: 3210 * time.Microsecond, Kind: migration.Anon},
	} {
		for _, total := range []unit.Bytes{0, 3 * unit.GiB, 1023*unit.GiB + 900*unit.MiB} {
			b := &migrateBar{total: total}
			if line := b.line(p); len(line) > 79 && p.Longest < time.Hour && p.Moved < unit.PiB {
				t.Errorf("%d columns: %q", len(line), line)
			}
		}
	}
	b := &migrateBar{total: 3 * unit.GiB}
	if got := b.line(migrate.Progress{Moved: 1200 * unit.MiB, Elapsed: 5 * time.Second, Longest: 3210 * time.Microsecond, Kind: migration.Anon}); got != "anon    #######............. 1.2GiB of 3GiB, 252 MB/s, 8s left, longest 3.2ms" {
		t.Errorf("%q", got)
	}
}

// Where there is no terminal, a line every tenth or ten seconds.
func TestMigrateBarLines(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	b := &migrateBar{w: &out, total: 100 * unit.MiB, now: func() time.Time { return now }, last: now}
	for i := range 101 {
		now = now.Add(100 * time.Millisecond)
		b.show(migrate.Progress{Moved: unit.Bytes(i) * unit.MiB, Elapsed: time.Second})
	}
	if n := strings.Count(out.String(), "\n"); n != 10 {
		t.Errorf("%d lines:\n%s", n, out.String())
	}
	for range 20 {
		now = now.Add(time.Second)
		b.show(migrate.Progress{Moved: 100 * unit.MiB, Elapsed: time.Second})
	}
	if n := strings.Count(out.String(), "\n"); n != 12 {
		t.Errorf("%d lines:\n%s", n, out.String())
	}
}
