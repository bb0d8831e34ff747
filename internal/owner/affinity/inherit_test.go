// SPDX-License-Identifier: Apache-2.0

package affinity

import (
	"testing"

	"homenode/internal/action"
	"homenode/internal/journal"
	"homenode/internal/kernel/kerneltest"
)

// narrow changes the cpuset, in the kernel and in its files.
func (f *fakeThreads) narrow(allowed uint64, cpus string) {
	f.allowed = allowed
	kerneltest.Write(f.t, f.root, kerneltest.Files{"/sys/fs/cgroup/demo/cpuset.cpus.effective": cpus + "\n"})
}

// A thread that ended, and whose number was reused, is not touched.
func TestStartIsChecked(t *testing.T) {
	a, f, j := boot(t)
	step := pin(11, false, 4)
	step.Start = 101
	f.end(11)
	f.start(11, 999, 0x3f)
	if o := j.Wrap(a).Apply(ctx, step); o.Status != action.Gone || len(f.calls) != 0 || len(j.Outstanding()) != 0 {
		t.Errorf("%s: %s; %v", o.Status, o.Detail, f.calls)
	}
}

// While a thread is held, its cpuset leaves only a part of what we gave it, or nothing.
// The kernel shows that part, or all of the cpuset, and stores what we gave for later.
func TestCpusetNarrowsWhatIsHeld(t *testing.T) {
	for _, c := range []struct {
		allowed uint64
		cpuset  string
	}{{0x7, "0-2"}, {0x3, "0-1"}, {0x4, "2"}} {
		a, f, j := boot(t)
		j.Wrap(a).Apply(ctx, pin(10, false, 2, 3))
		f.narrow(c.allowed, c.cpuset)
		got, err := j.Restore(ctx, a)
		f.narrow(0x3f, "0-5")
		if cur, _ := a.Read(Setting(10)); err != nil || len(got) != 1 || got[0].Result != journal.PutBack || cur.Value != "0-5" {
			t.Errorf("%s: %v, %v; in the end %s", c.cpuset, got, err, cur.Value)
		}
	}
}

// The record says what a thread had: all of its cpuset, or a choice of its owner. The
// cpuset at the time of the restore does not matter.
func TestOriginalIsToldAtOnce(t *testing.T) {
	a, f, j := boot(t)
	j.Wrap(a).Apply(ctx, pin(10, false, 2)) // had none of its own
	f.narrow(0xf, "0-3")
	if _, err := j.Restore(ctx, a); err != nil || f.masks[10][0] != ^uint64(0) {
		t.Errorf("it does not follow its cpuset: %x, %v", f.masks[10], err)
	}
	a, f, j = boot(t)
	j.Wrap(a).Apply(ctx, pin(11, false, 1)) // 0-1 by its operator
	f.narrow(0x3, "0-1")
	if _, err := j.Restore(ctx, a); err != nil || f.masks[11][0] != 0x3 {
		t.Errorf("the owner's choice is lost: %x, %v", f.masks[11], err)
	}
}

// A thread that was released belongs to its owner: later changes by the owner are no
// drift.
func TestReleasedThenCpuset(t *testing.T) {
	a, f, j := boot(t)
	for _, c := range []struct {
		allowed uint64
		cpuset  string
	}{{0xf, "0-3"}, {0x3, "0-1"}, {0x3f, "0-5"}} {
		j.Wrap(a).Apply(ctx, pin(10, true, 1))
		f.narrow(c.allowed, c.cpuset)
		if o := j.Wrap(a).Apply(ctx, pin(10, true, 0)); o.Status != action.Done {
			t.Errorf("%s: %s: %s", c.cpuset, o.Status, o.Detail)
		}
	}
	got, err := j.Restore(ctx, a)
	if err != nil || len(got) != 1 || got[0].Result != journal.Already || f.masks[10][0] != ^uint64(0) {
		t.Errorf("%v, %v, %x", got, err, f.masks[10])
	}
}

// begin makes a thread of process 10.
func (f *fakeThreads) begin(tid int, start uint64, mask uint64) {
	f.start(tid, start, mask)
	kerneltest.Write(f.t, f.root, kerneltest.Files{"/proc/10/task/" + Setting(tid).Cgroup[len(prefix):] + "/stat": "x"})
}

// Inherited are the threads of the process that started since and have what was given. Older
// threads, threads with another value and threads of other processes are not found.
func TestHeirs(t *testing.T) {
	a, f, j := boot(t)
	a.clock = func() uint64 { return 500 }
	f.begin(10, 100, 0x3f)
	j.Wrap(a).Apply(ctx, pin(10, true, 4))
	f.begin(12, 500, 0x10)
	f.begin(13, 499, 0x10) // was there before
	f.begin(14, 501, 0x30)
	f.start(15, 501, 0x10) // of another process
	got, err := j.GiveBack(a)
	if err != nil || len(got) != 1 || got[0].Result != journal.PutBack || f.masks[12][0] != ^uint64(0) {
		t.Errorf("%v, %v, %x", got, err, f.masks[12])
	}
	for tid, want := range map[int]uint64{13: 0x10, 14: 0x30, 15: 0x10} {
		if f.masks[tid][0] != want {
			t.Errorf("thread %d: %x", tid, f.masks[tid])
		}
	}
	f.begin(16, 502, 0x18) // held at 3-4, of which its cpuset leaves 3
	j.Wrap(a).Apply(ctx, pin(10, false, 3, 4))
	f.narrow(0xf, "0-3")
	if got, err := j.GiveBack(a); err != nil || len(got) != 1 || f.masks[16][0] != ^uint64(0) {
		t.Errorf("%v, %v, %x", got, err, f.masks[16])
	}
}

// In a cgroup any thread may have inherited, of any process.
func TestHeirsInACgroup(t *testing.T) {
	a, f, j := boot(t)
	a.clock = func() uint64 { return 500 }
	step := pin(10, false, 4)
	step.Workload = "/demo"
	j.Wrap(a).Apply(ctx, step)
	f.start(20, 600, 0x10)
	kerneltest.Write(t, f.root, kerneltest.Files{"/sys/fs/cgroup/demo/cgroup.threads": "10\n11\n20\n"})
	j.Know(func(s journal.Setting, start uint64) bool { return s == Setting(20) && start == 600 })
	if got, err := j.GiveBack(a); err != nil || len(got) != 0 {
		t.Errorf("a known thread inherited nothing: %v, %v", got, err)
	}
	j.Know(nil)
	got, err := j.Restore(ctx, a)
	if err != nil || len(got) != 2 || f.masks[20][0] != ^uint64(0) || f.masks[10][0] != ^uint64(0) || f.masks[11][0] != 3 {
		t.Errorf("%v, %v, %x", got, err, f.masks)
	}
}
