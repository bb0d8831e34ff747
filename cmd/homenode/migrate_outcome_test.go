// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"homenode/internal/exit"
	"homenode/internal/kernel"
	"homenode/internal/kernel/kerneltest"
	mover "homenode/internal/kernel/migrate"
	"homenode/internal/migration"
	"homenode/internal/unit"
)

// refusal is a bad request: exit code 2 and one line.
type refusal struct{ line, want string }

// refuses also checks that nothing is moved and that no report is printed.
func refuses(t *testing.T, all []refusal) {
	t.Helper()
	f := newFakeMigration(t)
	before := f.census[0]
	for _, c := range all {
		f.census = []migration.Census{before}
		code, stdout, stderr := migrateOut(context.Background(), c.line)
		if code != exit.Bad || !strings.Contains(stderr, c.want) || strings.Count(stderr, "\n") != 1 || stdout != "" {
			t.Errorf("%s: exit code %d, %q, %q, want %q", c.line, code, stdout, stderr, c.want)
		}
	}
	if len(f.asked) > 0 {
		t.Errorf("something was moved: %+v", f.asked)
	}
}

func TestMigrateRefusesTarget(t *testing.T) {
	refuses(t, []refusal{
		{"--to 1", "nothing to move: give --workload, --cgroup or --pid"},
		{"--workload a --cgroup /demo/a --to 1", "give one of them"},
		{"--pid 10 --cgroup /demo/a --to 1", "give one of them"},
		{"--pid= --to 1", "--pid is empty"},
		{"--pid all --to 1", "name them, or a cgroup"},
		{"--pid x --to 1", "want process ids like 12"},
		{"--pid 10,-3 --to 1", "want process ids like 12"},
		{"--cgroup /demo/none --to 1", "no cgroup has that path"},
		{"--workload none --to 1", "no cgroup with processes has that path, or that name"},
		{"--workload a --to 1", "several workloads have that name: give the path: /demo/a, /other/a"},
		{"--pid 4711 --to 1", "process 4711: it does not exist, or it has ended"},
		{"--pid 2 --to 1", "process 2 (app) is a kernel thread: it has no memory of its own"},
		{"--pid 13 --to 1", "process 13 (app) has ended"},
		{"--pid 15 --to 1", "15 is a thread of process 10: give the process"},
		{"--pid 12 --to 1", "move to node 1: the cpuset of process 12 (app) allows node 0 only"},
		{"--pid 14 --to 1-2", "the cpuset of process 14 (app) allows nodes 0-1 only"},
	})
}

func TestMigrateRefusesNodes(t *testing.T) {
	refuses(t, []refusal{
		{"--cgroup /demo/a", "nowhere to move to: give --to"},
		{"--cgroup /demo/a --to x", "--to: "},
		{"--cgroup /demo/a --to 9", "--to 9: node 9: no such node: this machine has nodes 0-2,4"},
		{"--cgroup /demo/a --to 1,5", "node 5: offline: this machine has nodes 0-2,4 online"},
		{"--cgroup /demo/a --to 4", "node 4 has no memory"},
		{"--cgroup /demo/a --to 1 --from 9", "--from 9: node 9: no such node"},
		{"--cgroup /demo/a --to 1 --from 3", "--from 3: node 3: offline"},
		{"--cgroup /demo/a --to 0-1 --from 1,2", "--from 1-2, --to 0-1: node 1 is in both"},
		{"--cgroup /demo/a --to 1 --from x", "--from: "},
		{"--cgroup /demo/b --to 1", "move to node 1: the cpuset of cgroup /demo/b allows node 0 only"},
		{"--cgroup /demo/a --to 2", "move 130 MiB to node 2: 128 MiB are missing: node 2 has 5.86 MiB free and 1 MiB of page cache that could go, and keeps 5.12 MiB; --partial moves what fits"},
	})
}

func TestMigrateRefusesAmounts(t *testing.T) {
	refuses(t, []refusal{
		{"--cgroup /demo/a --to 1 --rate 0", "it is not per second"},
		{"--cgroup /demo/a --to 1 --rate 0MB/s", "nothing would ever be moved"},
		{"--cgroup /demo/a --to 1 --rate -5MB/s", "it cannot be negative"},
		{"--cgroup /demo/a --to 1 --rate 200", "it is not per second"},
		{"--cgroup /demo/a --to 1 --rate 200/s", "it has no unit"},
		{"--cgroup /demo/a --to 1 --rate 200M/s", `unknown unit "M"`},
		{"--cgroup /demo/a --to 1 --rate 9999999PiB/s", "63 bits"},
		{"--cgroup /demo/a --to 1 --max-stall -1ms", "--max-stall -1ms: it cannot be negative"},
		{"--cgroup /demo/a --to 1 --max-stall 20", "500ms"},
		{"--cgroup /demo/a --to 1 --workers 0", "--workers 0: want at least 1"},
		{"--cgroup /demo/a --to 1 --workers 1000", "want at most 256"},
	})
}

func TestMigrateRefusesMode(t *testing.T) {
	refuses(t, []refusal{
		{"--cgroup /demo/a --to 1 --mode fast", `--mode "fast": want live, freeze or hot`},
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
		{"--cgroup /system.slice/db.service --to 1 --mode freeze --dry-run", "it belongs to systemd, which may be confused by that: use --direct-owner systemd to freeze it anyway"},
		{"--cgroup /demo/a --to 1 --freeze-limit 1h", "--freeze-limit: that is for another --mode than live"},
		{"--cgroup /demo/a --to 1 --mode freeze --freeze-limit 0s", "--freeze-limit 0s: it must be longer than 0"},
		{"--cgroup /demo/a --to 1 --mode freeze --freeze-limit 10ms", "freeze cgroup /demo/a: moving 120 MiB is expected to take 81.8 ms, but it is thawed after --freeze-limit 10ms: give a longer limit, or use --mode live"},
		{"--cgroup /demo/a --to 1 --mode freeze --freeze-limit 10ms --partial", "--freeze-limit 10ms"},
	})
}

func TestMigrateRefusesOthers(t *testing.T) {
	other := profileOf(t, shapeMachine(t, "four"))
	refuses(t, []refusal{
		{"--cgroup /demo/a --to 1 -o xml", "text, json or yaml"},
		{"--cgroup /demo/a --to 1 --profile none.json", "read profile"},
		{"--cgroup /demo/a --to 1 --profile " + other, "is of another machine"},
		{"--cgroup /demo/a --to 1 more", "want no arguments"},
	})
}

// ending is how a command line ends.
type ending struct {
	name, line string
	change     func(*fakeMigration)
	code       int
	want, err  string // in the report; on standard error
}

func ends(t *testing.T, all []ending) {
	t.Helper()
	for _, c := range all {
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

// The exit code and the first line say how it ended.
func TestMigrateOutcomes(t *testing.T) {
	ends(t, []ending{
		{name: "complete", line: "--cgroup /demo/a --to 1", want: "complete: 120 MiB moved to node 1"},
		{name: "its directory", line: "--cgroup /sys/fs/cgroup/demo/a --to 1", want: "cgroup /demo/a: complete"},
		{name: "processes", line: "--pid 11,10,11 --to 1", want: "processes 10, 11: complete"},
		{name: "dry run", line: "--cgroup /demo/a --to 1 --dry-run", want: "dry run: 120 MiB would be moved to node 1"},
		{name: "nothing", line: "--cgroup /demo/a --to 0 --from 2", code: exit.Nothing, want: "nothing to do: none of it is on node 2"},
		{name: "nothing, dry", line: "--cgroup /demo/a --to 0 --from 2 --dry-run", code: exit.Nothing, want: "nothing to do"},
		{name: "stopped", line: "--cgroup /demo/a --to 1", code: exit.Partly, want: "stopped: the time",
			change: func(f *fakeMigration) { f.result.Complete, f.result.Stopped = false, "the time" }},
		{name: "broke", line: "--cgroup /demo/a --to 1", code: exit.Failed, want: "stopped: move pages: out of memory", err: "homenode: move pages: out of memory",
			change: func(f *fakeMigration) { f.moveErr = errors.New("move pages: out of memory") }},
		{name: "all ended", line: "--cgroup /demo/a --to 1", code: exit.Partly, want: "they have ended",
			change: func(f *fakeMigration) { f.moveErr = fmt.Errorf("they have ended: %w", kernel.ErrGone) }},
		{name: "killed halfway", line: "--cgroup /demo/a --to 1", code: exit.Partly, want: "partly done: 40 MiB of 120 MiB moved to node 1; stopped: its processes have ended",
			change: func(f *fakeMigration) { f.killed(40 * unit.MiB) }},
		{name: "killed halfway, and where the rest is", line: "--cgroup /demo/a --to 1", code: exit.Partly, want: "80 MiB were not moved and are no longer elsewhere: they were freed, or their process ended",
			change: func(f *fakeMigration) { f.killed(40 * unit.MiB) }},
		{name: "freed half of it", line: "--cgroup /demo/a --to 1", want: "complete: 60 MiB moved to node 1",
			change: func(f *fakeMigration) {
				f.result.Of(migration.Anon).Moved = 40 * unit.MiB
				f.result.Of(migration.Cache).Moved = 20 * unit.MiB
			}},
		{name: "ended before", line: "--cgroup /demo/a --to 1", code: exit.Bad, err: "they have ended",
			change: func(f *fakeMigration) { f.censusErr = fmt.Errorf("they have ended (%w)", kernel.ErrGone) }},
	})
}

func TestMigrateOutcomesOfWhatStays(t *testing.T) {
	ends(t, []ending{
		{name: "failed pages", line: "--cgroup /demo/a --to 1", code: exit.Partly, want: "EBUSY: another task held them",
			change: func(f *fakeMigration) { f.result.Of(migration.Anon).Fail("EBUSY", unit.MiB) }},
		{name: "left on purpose", line: "--cgroup /demo/a --to 1 --leave-shared", want: "complete: 120 MiB moved",
			change: func(f *fakeMigration) { f.result.Of(migration.Cache).Fail(mover.LeftForeign, unit.MiB) }},
		{name: "left by the pool", line: "--cgroup /demo/a --to 1 --leave-shared", code: exit.Partly, want: "partly done",
			change: func(f *fakeMigration) {
				f.result.Of(migration.Hugetlb).Fail("left: node 1 has no free huge page of 2 MiB", 2*unit.MiB)
			}},
		{name: "others' is no task", line: "--cgroup /demo/a --to 1 --leave-shared --dry-run", want: "dry run: 105 MiB would be moved to node 1",
			change: func(f *fakeMigration) { f.census[0].AddForeign(migration.Cache, 0, 15*unit.MiB) }},
		{name: "others' alone", line: "--cgroup /demo/a --to 0 --from 1 --leave-shared", code: exit.Nothing, want: "nothing to do: the memory elsewhere is also used by other processes, and is left",
			change: func(f *fakeMigration) { f.census[0].AddForeign(migration.Anon, 1, 10*unit.MiB) }},
		{name: "nothing, as far as could be seen", line: "--cgroup /demo/a --to 0 --from 2", code: exit.Bad, err: "1 of its 3 processes could not be read, and the others have nothing to move: read x",
			change: func(f *fakeMigration) { f.census[0].Unread, f.census[0].Problems = 1, []string{"read x"} }},
		{name: "not all could be seen", line: "--cgroup /demo/a --to 1", code: exit.Partly, want: "1 of its processes could not be read: their memory may be elsewhere",
			change: func(f *fakeMigration) { f.census[0].Unread = 1 }},
		{name: "nor afterwards", line: "--cgroup /demo/a --to 1", code: exit.Partly, want: "2 of its processes could not be read",
			change: func(f *fakeMigration) { f.census[1].Unread = 2 }},
		{name: "not seen", line: "--cgroup /demo/a --to 1", code: exit.Partly, want: "5 MiB are elsewhere and were not tried",
			change: func(f *fakeMigration) { f.census[1].Add(migration.Cache, 0, 5*unit.MiB) }},
		{name: "allocated meanwhile", line: "--cgroup /demo/a --to 1", want: "512 KiB are elsewhere and were not tried",
			change: func(f *fakeMigration) { f.census[1].Add(migration.Anon, 0, 512*unit.KiB) }},
	})
}

func TestMigrateOutcomesOfRoom(t *testing.T) {
	ends(t, []ending{
		{name: "partial room", line: "--cgroup /demo/a --to 2 --partial", code: exit.Partly, want: "only 1.74 MiB are moved: 128 MiB are missing"},
		{name: "no room at all", line: "--cgroup /demo/a --to 2 --partial", code: exit.Bad, err: "none of it fits",
			change: func(f *fakeMigration) {
				f.root = migrateTree(t)
				kerneltest.Write(t, f.root, kerneltest.Files{"/sys/devices/system/node/node2/meminfo": fmt.Sprintf(meminfoText, 2, 2, 0, 2, 2, 2)})
			}},
		{name: "a dry run without room", line: "--cgroup /demo/a --to 2 --dry-run", code: exit.Bad, want: "dry run: 130 MiB", err: "are missing"},
		{name: "pool", line: "--cgroup /demo/a --to 1", code: exit.Bad, err: "2 MiB of its huge pages of 2 MiB are missing: the pool of these has 6 MiB free there (free_hugepages)",
			change: func(f *fakeMigration) { f.census[0].AddPool(2*unit.MiB, 0, 8*unit.MiB) }},
		{name: "pool that does", line: "--cgroup /demo/a --to 1", want: "complete",
			change: func(f *fakeMigration) { f.census[0].AddPool(2*unit.MiB, 0, 6*unit.MiB) }},
		{name: "another pool", line: "--cgroup /demo/a --to 1", code: exit.Bad, err: "1 GiB of its huge pages of 1 GiB are missing: the pool of these has 0 B free there",
			change: func(f *fakeMigration) { f.census[0].AddPool(unit.GiB, 0, unit.GiB) }},
		{name: "room for one's own", line: "--cgroup /demo/a --to 1 --leave-shared", want: "complete",
			change: func(f *fakeMigration) {
				f.census[0].AddPool(2*unit.MiB, 0, 8*unit.MiB)
				f.census[0].AddForeignPool(2*unit.MiB, 0, 8*unit.MiB)
			}},
	})
}

func TestMigrateOutcomesOfFreeze(t *testing.T) {
	ends(t, []ending{
		{name: "freeze", line: "--cgroup /demo/a --to 1 --mode freeze --direct-owner systemd --direct-owner docker --state /s", want: "mode freeze",
			change: func(f *fakeMigration) { f.frozen = &fakeFrozen{} }},
		{name: "freeze of a process", line: "--pid 10 --to 1 --mode freeze", want: "frozen",
			change: func(f *fakeMigration) { f.frozen = &fakeFrozen{} }},
		{name: "freeze of some", line: "--pid 10 --to 1 --mode freeze", code: exit.Bad, err: "shares its cgroup /demo/a with process 11",
			change: func(f *fakeMigration) {
				f.alone = func([]int) (string, error) {
					return "", errors.New("process 10 shares its cgroup /demo/a with process 11")
				}
			}},
		{name: "freeze of ourselves", line: "--cgroup /demo/a --to 1 --mode freeze", code: exit.Bad, err: "homenode itself is in it",
			change: func(f *fakeMigration) { f.pid = 11 }},
		{name: "frozen before", line: "--cgroup /demo/a --to 1 --mode freeze", want: "another process had frozen it: it still is",
			change: func(f *fakeMigration) { f.frozen = &fakeFrozen{already: true, now: true} }},
		{name: "frozen before, thawed since", line: "--cgroup /demo/a --to 1 --mode freeze", want: "another process had frozen it: it is not frozen any more, and may have run while it was moved",
			change: func(f *fakeMigration) { f.frozen = &fakeFrozen{already: true} }},
		{name: "a freeze that takes too long, dry", line: "--cgroup /demo/a --to 1 --mode freeze --freeze-limit 10ms --dry-run", code: exit.Bad, want: "dry run: 120 MiB", err: "--freeze-limit 10ms"},
		{name: "not thawed", line: "--cgroup /demo/a --to 1 --mode freeze", code: exit.Failed, want: "complete", err: "it is still frozen",
			change: func(f *fakeMigration) { f.frozen = &fakeFrozen{err: errors.New("thaw: it is still frozen")} }},
	})
}

func TestMigrateOutcomesOfHot(t *testing.T) {
	ends(t, []ending{
		{name: "hot", line: "--cgroup /demo/a --to 1 --mode hot", want: "accessed within 2 s: 30 MiB, by DAMON", err: "watching for 2s",
			change: func(f *fakeMigration) {
				f.hot = func() (migration.Heat, error) {
					return migration.Heat{Source: "DAMON", How: unit.HowMeasured, Unit: "region", For: 2 * time.Second, Bytes: 30 * unit.MiB}, nil
				}
			}},
		{name: "nothing hot", line: "--cgroup /demo/a --to 1 --mode hot", code: exit.Nothing, want: "the memory elsewhere was not accessed", err: "watching",
			change: func(f *fakeMigration) { f.hot = func() (migration.Heat, error) { return migration.Heat{}, nil } }},
		{name: "no heat", line: "--cgroup /demo/a --to 1 --mode hot", code: exit.Bad, err: "no DAMON",
			change: func(f *fakeMigration) {
				f.hot = func() (migration.Heat, error) {
					return migration.Heat{}, fmt.Errorf("no DAMON (%w)", kernel.ErrNotSupported)
				}
			}},
	})
}
