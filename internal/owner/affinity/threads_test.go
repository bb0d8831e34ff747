// SPDX-License-Identifier: Apache-2.0

package affinity

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sys "golang.org/x/sys/unix"

	"homenode/internal/action"
	"homenode/internal/journal"
	"homenode/internal/kernel"
	"homenode/internal/kernel/kerneltest"
	"homenode/internal/kernel/unix"
	"homenode/internal/set"
)

// fakeThreads are the threads of a fake kernel with 8 CPUs, one of them offline.
type fakeThreads struct {
	t      *testing.T
	root   unix.Root
	masks  map[int][]uint64 // as they were set
	refuse error
	calls  []string

	allowed uint64 // by its real cpuset
}

func (f *fakeThreads) Affinity(tid int, mask *unix.CPUWords) (int, error) {
	m, ok := f.masks[tid]
	if !ok {
		return 0, sys.ESRCH
	}
	clear(mask[:])
	if mask[0] = m[0] & f.allowed; mask[0] == 0 { // 7 is offline, 6 is not in its cpuset
		mask[0] = f.allowed
	}
	return 1, nil
}

func (f *fakeThreads) SetAffinity(tid int, mask []uint64) error {
	f.calls = append(f.calls, fmt.Sprintf("%d=%x", tid, mask[0]))
	if f.refuse != nil {
		return f.refuse
	}
	if _, ok := f.masks[tid]; !ok {
		return sys.ESRCH
	}
	if mask[0]&f.allowed == 0 {
		return sys.EINVAL
	}
	f.masks[tid] = slices.Clone(mask)
	return nil
}

func (f *fakeThreads) start(tid int, start uint64, mask uint64) {
	stat := fmt.Sprintf("%d (x) S 1 1 1 0 -1 0 0 0 0 0 7 3 0 0 20 0 1 0 %d %s17 0 0 0 0 0 0\n", tid, start, strings.Repeat("0 ", 15))
	kerneltest.Write(f.t, f.root, kerneltest.Files{fmt.Sprintf("/proc/%d/stat", tid): stat, fmt.Sprintf("/proc/%d/cgroup", tid): "0::/demo\n"})
	f.masks[tid] = []uint64{mask}
}

func (f *fakeThreads) end(tid int) {
	kerneltest.Remove(f.t, f.root, fmt.Sprintf("/proc/%d", tid))
	delete(f.masks, tid)
}

func boot(t *testing.T) (*Applier, *fakeThreads, *journal.Journal) {
	t.Helper()
	f := &fakeThreads{t: t, allowed: 0x3f, masks: map[int][]uint64{}, root: kerneltest.Tree(t, kerneltest.Files{
		"/proc/self/mountinfo":                      "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
		"/sys/fs/cgroup/cgroup.controllers":         "cpuset\n",
		"/sys/fs/cgroup/cpuset.cpus.effective":      "0-6\n",
		"/sys/fs/cgroup/cpuset.mems.effective":      "0-1\n",
		"/sys/fs/cgroup/demo/cpuset.cpus.effective": "0-5\n",
		"/sys/fs/cgroup/demo/cpuset.mems.effective": "0-1\n",
		"/sys/devices/system/cpu/online":            "0-6\n",
	})}
	f.start(10, 100, 0x3f) // all of its cpuset
	f.start(11, 101, 0x3)
	j, err := journal.Open(filepath.Join(t.TempDir(), "journal"))
	if err != nil {
		t.Skipf("no journal on this host: %v", err)
	}
	t.Cleanup(func() { j.Close() })
	return newApplier(f.root, f, nil, errors.New("no cgroups in this test")), f, j
}

var ctx = context.Background()

func pin(tid int, release bool, cpus ...int) action.Step {
	return action.Step{Kind: action.PinThread, Workload: "pid:10", Thread: tid, CPUs: set.FromCPUs(cpus...), Release: release}
}

func TestReleaseLeavesNothing(t *testing.T) {
	a, f, j := boot(t)
	for range 3 {
		if o := j.Wrap(a).Apply(ctx, pin(11, true, 4)); o.Status != action.Done {
			t.Fatalf("%s: %s", o.Status, o.Detail)
		}
	}
	if got := strings.Join(f.calls, " "); got != "11=10 11=3 11=10 11=3 11=10 11=3" {
		t.Errorf("%s", got)
	}
	// everything its cpuset allows becomes every possible CPU: then the cpuset alone decides
	j.Wrap(a).Apply(ctx, pin(10, true, 4))
	if f.masks[10][0] != ^uint64(0) {
		t.Errorf("%x", f.masks[10])
	}
	got, err := j.Restore(ctx, a)
	if err != nil || len(got) != 2 || got[0].Result != journal.Already || got[1].Result != journal.Already {
		t.Errorf("%v, %v", got, err)
	}
}

// Where the cpuset is wider than its files say, a thread still gets exactly what it had.
func TestCpusetIsNotWhatItSeems(t *testing.T) {
	a, f, j := boot(t)
	f.allowed = 0x7f
	j.Wrap(a).Apply(ctx, pin(10, true, 4))
	if f.masks[10][0] != 0x3f {
		t.Errorf("%x", f.masks[10])
	}
}

func TestHoldAndRestore(t *testing.T) {
	a, f, j := boot(t)
	apply := j.Wrap(a)
	apply.Apply(ctx, pin(11, false, 4, 5))
	apply.Apply(ctx, pin(11, false, 2))
	if f.masks[11][0] != 4 || !j.Ours("thread 11", File, "2") || j.Ours("thread 10", File, "2") {
		t.Errorf("%x", f.masks[11])
	}
	if o := apply.Apply(ctx, pin(11, false)); o.Status != action.Done || f.masks[11][0] != 3 {
		t.Errorf("no CPUs put back what it had: %s, %x", o.Detail, f.masks[11])
	}
	if o := apply.Apply(ctx, pin(10, false)); o.Status != action.Done || f.masks[10][0] != 0x3f {
		t.Errorf("nothing to put back: %s, %x", o.Detail, f.masks[10])
	}
	apply.Apply(ctx, pin(11, false, 5))
	got, err := j.Restore(ctx, a)
	if err != nil || len(got) != 1 || got[0].Result != journal.PutBack || f.masks[11][0] != 3 || len(j.Outstanding()) != 0 {
		t.Errorf("%v, %v, %x", got, err, f.masks[11])
	}
}

// Another process's change stays, and so does a thread that only has the number.
func TestOthersAreLeftAlone(t *testing.T) {
	a, f, j := boot(t)
	apply := j.Wrap(a)
	apply.Apply(ctx, pin(10, false, 4))
	apply.Apply(ctx, pin(11, false, 4))
	f.masks[10] = []uint64{0x6}
	f.start(11, 500, 0x10) // another one, which inherited just that affinity
	n := len(f.calls)
	if o := apply.Apply(ctx, pin(10, false, 5)); o.Status != action.Drifted {
		t.Errorf("%s: %s", o.Status, o.Detail)
	}
	got, err := j.Restore(ctx, a)
	if err != nil || len(f.calls) != n || f.masks[10][0] != 6 || f.masks[11][0] != 0x10 {
		t.Errorf("%v, %v; calls %v", got, err, f.calls[n:])
	}
}

func TestRefusals(t *testing.T) {
	a, f, j := boot(t)
	apply := j.Wrap(a)
	f.start(12, 102, 1)
	f.end(12)
	for _, c := range []struct {
		step   action.Step
		refuse error
		status action.Status
		text   string
	}{
		{pin(12, true, 1), nil, action.Gone, "thread"},
		{pin(0, true, 1), nil, action.Refused, "thread 0"},
		{pin(11, true, 7), nil, action.Refused, "none of these CPUs is online"},
		{pin(11, false, 2), sys.EPERM, action.Refused, "CAP_SYS_NICE"},
		{pin(11, false, 2), sys.ESRCH, action.Gone, "thread 11"},
		{action.Step{Kind: action.SetCPUs, Workload: "/demo", CPUs: set.FromCPUs(1)}, nil, action.Failed, "no cgroups in this test"},
		{action.Step{Kind: action.MovePages, Workload: "/demo"}, nil, action.Refused, "no cgroups in this test"},
	} {
		f.refuse = c.refuse
		if o := apply.Apply(ctx, c.step); o.Status != c.status || !strings.Contains(o.Detail, c.text) {
			t.Errorf("%v %v: %s: %s", c.step.Thread, c.refuse, o.Status, o.Detail)
		}
	}
	f.refuse = nil
	if len(j.Outstanding()) != 0 || f.masks[11][0] != 3 {
		t.Errorf("what was refused is on record: %v", j.Outstanding())
	}
	if err := a.Write(journal.Permit{}, Setting(11), "2"); !errors.Is(err, journal.ErrRefused) {
		t.Errorf("without a permit: %v", err)
	}
	if _, err := New(kernel.LiveToken{}, nil, nil); !errors.Is(err, kernel.ErrNotSupported) {
		t.Errorf("without the kernel's token: %v", err)
	}
}

// CPUs that went offline are no change by another process. Where nothing is left of an
// original, everything that the cpuset allows stands for it.
func TestHotplug(t *testing.T) {
	a, f, j := boot(t)
	if !a.Same(Setting(10), "0-5", "0-5,7") || a.Same(Setting(10), "0-4", "0-5") || a.Same(Setting(10), "", "7") {
		t.Error("Same does not go by what is online")
	}
	j.Wrap(a).Apply(ctx, pin(11, false, 4))
	f.masks[10], f.allowed = []uint64{0x80}, 0xbf // on 7 alone, while it was online
	j.Wrap(a).Apply(ctx, pin(10, false, 4))
	f.allowed = 0x3f
	got, err := j.Restore(ctx, a)
	if err != nil || len(got) != 2 || got[0].Result != journal.Equivalent || f.masks[10][0] != ^uint64(0) {
		t.Errorf("%v, %v, %x", got, err, f.masks[10])
	}
}

// cgroups are an owner of one cgroup that always reads the same.
type cgroups struct{}

func (cgroups) Plan(context.Context, action.Step) ([]journal.Change, error) {
	return []journal.Change{{Setting: journal.Setting{Cgroup: "/demo", File: "cpuset.cpus"}, New: "1"}}, nil
}
func (cgroups) Read(journal.Setting) (journal.Current, error) {
	return journal.Current{Value: "0-7", ID: 5}, nil
}
func (cgroups) Same(_ journal.Setting, current, recorded string) bool                { return current == recorded }
func (cgroups) Write(journal.Permit, journal.Setting, string) error                  { return nil }
func (cgroups) Equivalent(journal.Setting, string) (string, error)                   { return "", nil }
func (cgroups) Move(context.Context, journal.Permit, action.Step) (o action.Outcome) { return o }

// A record of cgroups stays while no owner can act on them.
func TestOtherRecordsStay(t *testing.T) {
	a, _, j := boot(t)
	with := newApplier(a.root, a.calls, cgroups{}, nil)
	if o := j.Wrap(with).Apply(ctx, action.Step{Kind: action.SetCPUs, Workload: "/demo"}); o.Status != action.Done {
		t.Fatal(o.Detail)
	}
	got, err := j.Restore(ctx, a)
	if err == nil || len(got) != 1 || got[0].Result != journal.NotDone || len(j.Outstanding()) != 1 {
		t.Errorf("%v, %v", got, err)
	}
}
