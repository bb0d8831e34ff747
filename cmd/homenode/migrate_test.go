// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/kernel"
	"homenode/internal/kernel/kerneltest"
	mover "homenode/internal/kernel/migrate"
	"homenode/internal/migrate"
	"homenode/internal/migration"
	owner "homenode/internal/owner/cgroup"
	"homenode/internal/unit"
)

// fakeMigration is a host of two nodes and a tree. It moves only numbers.
type fakeMigration struct {
	root      kernel.Root
	census    []migration.Census // the first one, and the later ones
	result    migration.Result
	moveErr   error
	censusErr error
	during    func(context.Context)                 // runs during the move
	frozen    *fakeFrozen                           // nil: the cgroup cannot be frozen
	hot       func() (migration.Heat, error)        // nil: heat is unknown
	pid       int                                   // our process id
	asked     []mover.Request                       // requested moves
	alone     func(pids []int) (id string, e error) // FreezableFor
}

func (f *fakeMigration) Census(_ context.Context, req mover.Request) (migration.Census, error) {
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

func (f *fakeMigration) Move(ctx context.Context, req mover.Request) (migration.Result, error) {
	f.asked = append(f.asked, req)
	if f.during != nil {
		f.during(ctx)
	}
	req.Progress(mover.Progress{Moved: f.result.Moved(), Elapsed: time.Second, Longest: time.Millisecond, Kind: migration.Anon})
	if f.moveErr != nil {
		return f.result, f.moveErr
	}
	return f.result, ctx.Err()
}

// killed ends the processes when a part was moved. The mover stops there.
func (f *fakeMigration) killed(after unit.Bytes) {
	f.result.Kinds = nil
	f.result.Of(migration.Anon).Moved = after
	f.during = func(context.Context) { f.censusErr = fmt.Errorf("count pages: they have ended (%w)", kernel.ErrGone) }
}

type fakeFrozen struct {
	already bool
	now     bool // frozen, by any process
	thawed  int
	err     error
	lost    chan struct{}
	cfg     owner.FreezeConfig
	id      string
}

func (f *fakeFrozen) Thaw() error           { f.thawed++; return f.err }
func (f *fakeFrozen) Lost() <-chan struct{} { return f.lost }
func (f *fakeFrozen) Already() bool         { return f.already }

type fakeHeat struct{ heat migration.Heat }

func (f fakeHeat) Hot(int, uint64) bool { return true }
func (f fakeHeat) Heat() migration.Heat { return f.heat }
func (f fakeHeat) Notes() []string      { return []string{"process 3 ended while it was watched"} }

// fakeClock advances a second with every reading.
type fakeClock struct{ now time.Duration }

func (c *fakeClock) Now() time.Duration { c.now += time.Second; return c.now }
func (c *fakeClock) Name() string       { return "fake clock" }
func (c *fakeClock) How() unit.Source   { return unit.HowModelled }

func (f *fakeMigration) install(t *testing.T) {
	t.Helper()
	old := openMigration
	t.Cleanup(func() { openMigration = old })
	openMigration = func() migrate.Host {
		return migrate.Host{
			Root: f.root, PID: f.pid,
			Clock:     func() (mover.Clock, string, error) { return &fakeClock{}, "", nil },
			Mover:     func(mover.Clock, bool) (migrate.Mover, error) { return f, nil },
			Freezable: func(_ kernel.Root, pids []int) (string, error) { return f.alone(pids) },
			IsFrozen:  func(string) (bool, error) { return f.frozen.now, nil },
			Freeze: func(_ context.Context, id string, cfg owner.FreezeConfig) (migrate.Stilled, error) {
				if f.frozen == nil {
					return nil, fmt.Errorf("freeze %s: no freezer (%w)", id, kernel.ErrNotSupported)
				}
				f.frozen.id, f.frozen.cfg = id, cfg
				return f.frozen, nil
			},
			Hot: func(context.Context, []int, time.Duration) (migrate.Heated, error) {
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

// migrateTree has workload /demo/a of processes 10 and 11 (and a kernel thread), and
// /demo/b of process 12, whose cpuset is node 0. It has nodes 0, 1, 2 (nearly full) and
// 4 (no memory).
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

// moved is the result of a move of a whole census.
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

// migrateOut runs a command line and returns its exit code and its output.
func migrateOut(ctx context.Context, line string) (code int, stdout, stderr string) {
	root := rootCommand()
	var out, bad bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&bad)
	root.SetArgs(append([]string{"migrate"}, strings.Fields(line)...))
	code = cli.Finish(root.Name(), root.ExecuteContext(ctx), &bad)
	return code, out.String(), bad.String()
}

// Our user and capabilities decide which processes we may touch.
func TestMigratePowers(t *testing.T) {
	f := newFakeMigration(t)
	kerneltest.Write(t, f.root, kerneltest.Files{"/proc/self/status": ownStatus})
	code, stdout, stderr := migrateOut(context.Background(), "--cgroup /demo/a --to 1")
	if code != exit.Done || !strings.Contains(strings.Join(strings.Fields(stdout), " "), "without CAP_SYS_NICE, pages that several processes map stay where they are (EACCES)") {
		t.Errorf("own processes: %d, %s, %s", code, stdout, stderr)
	}
	kerneltest.Write(t, f.root, kerneltest.Files{"/proc/11/status": statusText(11, 0, "0-1")})
	for _, c := range []struct{ caps, want string }{
		{"0000000000000000", "move process 11 (app): it belongs to another user, which needs CAP_SYS_NICE and CAP_SYS_PTRACE"},
		{"0000000000080000", "another user, which needs CAP_SYS_NICE: run"},
		{"0000000000800000", "another user, which needs CAP_SYS_PTRACE: run"},
	} {
		kerneltest.Write(t, f.root, kerneltest.Files{"/proc/self/status": strings.Replace(ownStatus, "0000000000000000", c.caps, 1)})
		if code, _, stderr := migrateOut(context.Background(), "--cgroup /demo/a --to 1"); code != exit.Bad || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: %d, %s", c.caps, code, stderr)
		}
	}
	kerneltest.Write(t, f.root, kerneltest.Files{"/proc/self/status": strings.Replace(rootStatus, "0-2,4", "0", 1)})
	if code, _, stderr := migrateOut(context.Background(), "--cgroup /demo/a --to 1"); code != exit.Bad || !strings.Contains(stderr, "homenode's own cpuset allows node 0 only") {
		t.Errorf("own cpuset: %d, %s", code, stderr)
	}
	if len(f.asked) != 1 {
		t.Errorf("%d moves", len(f.asked))
	}
}

// The mover is asked for what the command line asks for.
func TestMigrateRequest(t *testing.T) {
	f := newFakeMigration(t)
	f.pid = 10
	if code, _, stderr := migrateOut(context.Background(), "--cgroup /demo/a --to 1 --from 0 --rate 1.5GiB/s --max-stall 5ms --no-cache --leave-shared --workers 3"); code != exit.Done {
		t.Fatal(code, stderr)
	}
	r := f.asked[0]
	if r.Rate != 3*unit.GiB/2 || r.MaxStall != 5*time.Millisecond || r.Cache || !r.LeaveForeign || r.Workers != 3 || r.Budget != mover.NoBudget ||
		r.From.String() != "0" || r.To.String() != "1" || !slices.Equal(r.PIDs, []int{11}) || r.Hot != nil || !r.CPUs.IsEmpty() {
		t.Errorf("%+v", r)
	}
	if again, err := r.Again(); err != nil || !slices.Equal(again, []int{11}) {
		t.Errorf("again: %v, %v", again, err)
	}
	f = newFakeMigration(t)
	f.frozen = &fakeFrozen{}
	migrateOut(context.Background(), "--cgroup /demo/a --to 1 --mode freeze --direct-owner systemd --state /s --freeze-limit 1h")
	r = f.asked[0]
	if r.Rate != 0 || r.MaxStall != 0 || r.Workers != 4 || r.CPUs.String() != "0-3" || !r.Cache || f.frozen.id != "/demo/a" || f.frozen.cfg.StateDir != "/s" || f.frozen.cfg.Limit != time.Hour || !slices.Equal(f.frozen.cfg.DirectOwners, []string{"systemd"}) {
		t.Errorf("%+v, %+v", r, f.frozen)
	}
	f = newFakeMigration(t)
	migrateOut(context.Background(), "--pid 10 --to 2 --partial --rate max --max-stall 0")
	if r = f.asked[0]; r.Again != nil || r.Rate != 0 || r.MaxStall != 0 || r.Workers != 1 || r.Budget >= 2*unit.MiB || r.Budget < unit.MiB {
		t.Errorf("%+v", r)
	}
}

// After Ctrl-C the workload is thawed, counted again and reported, with exit
// code 3.
func TestMigrateInterrupted(t *testing.T) {
	for _, mode := range []string{"live", "freeze"} {
		f := newFakeMigration(t)
		f.frozen = &fakeFrozen{}
		ctx, cancel := context.WithCancel(context.Background())
		f.during = func(context.Context) { cancel() }
		f.result.Of(migration.Anon).Moved = 40 * unit.MiB
		code, stdout, stderr := migrateOut(ctx, "--cgroup /demo/a --to 1 --mode "+mode)
		flat := strings.Join(strings.Fields(stdout), " ")
		if code != exit.Partly || !strings.Contains(flat, "partly done: 60 MiB of 120 MiB moved to node 1; stopped: interrupted") || !strings.Contains(stderr, "interrupted: what was moved stays") ||
			strings.Contains(stdout, unknownAfter) {
			t.Errorf("%s: %d, %s, %s", mode, code, stdout, stderr)
		}
		if mode == "freeze" && f.frozen.thawed != 1 {
			t.Errorf("thawed %d times", f.frozen.thawed)
		}
		f.censusErr = fmt.Errorf("count pages: %w", context.Canceled)
		if code, stdout, stderr = migrateOut(ctx, "--cgroup /demo/a --to 1 --mode "+mode); code != exit.Failed || stdout != "" || !strings.Contains(stderr, "interrupted before anything was moved") {
			t.Errorf("%s, stopped before: %d, %s, %s", mode, code, stdout, stderr)
		}
	}
}

const unknownAfter = "where its memory is now is unknown"

// When the guard is lost, the move stops at once.
func TestMigrateGuardLost(t *testing.T) {
	f := newFakeMigration(t)
	f.frozen = &fakeFrozen{lost: make(chan struct{})}
	f.during = func(ctx context.Context) {
		close(f.frozen.lost)
		select {
		case <-ctx.Done():
		case <-time.After(30 * time.Second):
			t.Error("the move continues")
		}
	}
	code, stdout, stderr := migrateOut(context.Background(), "--cgroup /demo/a --to 1 --mode freeze")
	if code != exit.Failed || f.frozen.thawed != 1 || !strings.Contains(stderr, "the guard that thaws it ended") || !strings.Contains(stdout, "partly done") {
		t.Errorf("%d, thawed %d times: %s, %s", code, f.frozen.thawed, stdout, stderr)
	}
}

// After a panic the workload is thawed.
func TestMigratePanicThaws(t *testing.T) {
	f := newFakeMigration(t)
	f.frozen = &fakeFrozen{}
	f.during = func(context.Context) { panic("broken") }
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
	if code != exit.Done || err != nil || !ok || res.Moved() != 120*unit.MiB || r.Clock != "fake clock" || r.How != unit.HowModelled || r.Target != "cgroup /demo/a" || r.Before.Processes != 2 {
		t.Errorf("%d, %v, %+v", code, err, r)
	}
}

func TestMigrateProfile(t *testing.T) {
	f := newFakeMigration(t)
	m, err := kernel.ReadMachine(f.root)
	if err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := migrateOut(context.Background(), "--cgroup /demo/a --to 1 --profile "+profileOf(t, m)); code != exit.Done {
		t.Errorf("%d, %s", code, stderr)
	}
}
