// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"homenode/internal/journal"
	"homenode/internal/kernel"
	"homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/freeze"
	"homenode/internal/kernel/kerneltest"
	"homenode/internal/kernel/unix"
)

// These tests freeze a process of their own in a cgroup of their own, on any machine that
// permits it.

// freezerEnv makes the test program run freezeLive, with this state directory.
const freezerEnv = "HOMENODE_TEST_FREEZE_STATE"

// worker is a cgroup with a process, in the hierarchies of cpuset and of freezers.
func worker(t *testing.T, argv ...string) (cgroup.Layout, string, int) {
	t.Helper()
	kerneltest.InMemory(t) // the state directory
	l, err := cgroup.Find(unix.At("/"))
	if err == nil {
		err = l.NeedCpuset()
	}
	if err != nil {
		t.Skip(err)
	}
	id := fmt.Sprintf("/homenode-test-%d", os.Getpid())
	cmd := exec.Command(argv[0], argv[1:]...)
	if err := cmd.Start(); err != nil {
		t.Skip(err)
	}
	end := func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }
	defer func() { t.Cleanup(end) }() // before its cgroups are removed
	for i, h := range []cgroup.Hier{l.Cpuset, l.Freezer, l.Unified} {
		if h.Present() && (i == 0 || h != l.Cpuset) {
			join(t, l, h, id, cmd.Process.Pid)
		}
	}
	return l, id, cmd.Process.Pid
}

func join(t *testing.T, l cgroup.Layout, h cgroup.Hier, id string, pid int) {
	t.Helper()
	dir := l.Path(h, id, "")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skipf("no cgroup can be made: %v", err)
	}
	t.Cleanup(func() {
		for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) { // its process has just been killed
			if os.Remove(dir) == nil {
				return
			}
		}
		t.Errorf("%s stays", dir)
	})
	for _, file := range []string{cpusFile, memsFile} { // v1: nothing is inherited
		if all, err := os.ReadFile(l.Path(h, "/", file)); err == nil && !h.V2 {
			_ = os.WriteFile(filepath.Join(dir, file), all, 0)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), fmt.Appendf(nil, "%d", pid), 0); err != nil {
		t.Skipf("no process can be moved: %v", err)
	}
}

type homenode struct {
	*exec.Cmd
	lines *bufio.Scanner
	guard int
}

func startFreeze(t *testing.T, state, id, how string) homenode {
	t.Helper()
	h := homenode{Cmd: exec.Command("/proc/self/exe", id, how)}
	h.Env = append(os.Environ(), freezerEnv+"="+state)
	out, err := h.StdoutPipe()
	if err == nil {
		err = h.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	h.lines = bufio.NewScanner(out)
	return h
}

func (h *homenode) awaitFrozen(t *testing.T) {
	t.Helper()
	h.lines.Scan()
	if _, err := fmt.Sscanf(h.lines.Text(), "frozen %d", &h.guard); err != nil {
		t.Fatalf("%q", h.lines.Text())
	}
	guard := h.guard // it may still write into the state directory, which goes after this
	t.Cleanup(func() {
		for end := time.Now().Add(time.Minute); running(guard) && time.Now().Before(end); time.Sleep(time.Millisecond) {
		}
	})
}

func stateOf(t *testing.T, l cgroup.Layout, id string) freeze.State {
	t.Helper()
	f, err := freeze.Find(kernel.Live(), l, id)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s, err := f.State()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// running is false for a process that ended, even before its parent has reaped it.
func running(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !bytes.Contains(data, []byte(") Z "))
}

func within(t *testing.T, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, limit)
		}
	}
}

// homenode is killed at any point, alone, or after or with its guard. Soon, or after a
// restore, the process runs, and nothing is on record.
func TestLiveKilledAtRandomPoints(t *testing.T) {
	l, id, _ := worker(t, "sleep", "600")
	state := t.TempDir()
	if _, err := freeze.Find(kernel.Live(), l, id); err != nil {
		t.Skip(err)
	}
	rng := rand.New(rand.NewPCG(3, 4))
	frozen, both := 0, 0
	for i := range 60 {
		h := startFreeze(t, state, id, "wait")
		if i%2 == 0 {
			time.Sleep(time.Duration(rng.Float64() * float64(30*time.Millisecond)))
		} else {
			h.awaitFrozen(t)
			if s := stateOf(t, l, id); !s.Own || !s.Still {
				t.Fatalf("it says that it is frozen: %+v", s)
			}
			frozen++
		}
		if i%6 == 5 { // the guard first, before homenode notices
			_ = syscall.Kill(h.Process.Pid, syscall.SIGSTOP)
			_ = syscall.Kill(h.guard, syscall.SIGKILL)
		}
		_ = h.Process.Kill()
		_ = h.Wait()
		if i%6 == 5 {
			got, err := ThawLeft(ctx, kernel.Live(), state)
			switch {
			case err != nil || len(got) > 1:
				t.Fatalf("%v, %v", got, err)
			case len(got) == 1 && got[0].Result == journal.PutBack:
				both++
			case !stateOf(t, l, id).Thawed(): // it noticed before the signal stopped it
				t.Fatalf("kill %d: %v, and it is frozen", i, got)
			}
		}
		within(t, time.Minute, fmt.Sprintf("kill %d: thawed, and off the record", i), func() bool {
			return stateOf(t, l, id).Thawed() && (i%2 == 0 || len(left(t, state)) == 0)
		})
	}
	if got, err := ThawLeft(ctx, kernel.Live(), state); err != nil {
		t.Errorf("%v, %v", got, err)
	}
	t.Logf("60 kill points, %d while frozen, %d of those with the guard killed first", frozen, both)
	if both == 0 {
		t.Error("the record alone never had to thaw it: nothing was tried")
	}
}

// On each freezer of this host, what computes stops, and continues.
func TestLiveEachFreezer(t *testing.T) {
	l, id, pid := worker(t, "sh", "-c", "while :; do :; done")
	for _, h := range []cgroup.Hier{l.Freezer, l.Unified} {
		if !h.Present() {
			continue
		}
		o, err := newFreezeOwner(kernel.Live(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if o.layout.Unified = h; !h.V2 {
			o.layout.Unified = cgroup.Hier{}
		} else {
			o.layout.Freezer = cgroup.Hier{}
		}
		f, err := o.freeze(ctx, FreezeConfig{StateDir: t.TempDir()}, id)
		if err != nil {
			t.Fatal(err)
		}
		before := worked(t, pid)
		time.Sleep(50 * time.Millisecond)
		if s, err := f.owner.open.State(); !s.Still || err != nil || worked(t, pid) != before {
			t.Errorf("%s: %+v, %v, worked from %s to %s", f.owner.open.File, s, err, before, worked(t, pid))
		}
		if err := f.Thaw(); err != nil {
			t.Error(err)
		}
		within(t, time.Minute, f.owner.open.File+": the process goes on", func() bool { return worked(t, pid) != before })
		t.Logf("%s: stood still for %v", f.owner.open.File, f.For())
	}
}

// worked is a process's CPU time in user mode, in the kernel's ticks.
func worked(t *testing.T, pid int) string {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(data))[13]
}

func TestLivePanicAndLostGuard(t *testing.T) {
	l, id, _ := worker(t, "sleep", "600")
	state := t.TempDir()
	h := startFreeze(t, state, id, "panic")
	h.awaitFrozen(t)
	_ = h.Wait()
	if s := stateOf(t, l, id); !s.Thawed() || len(left(t, state)) != 0 {
		t.Errorf("after a panic: %+v, on record %v", s, left(t, state))
	}
	h = startFreeze(t, state, id, "wait")
	h.awaitFrozen(t)
	_ = syscall.Kill(h.guard, syscall.SIGKILL)
	h.lines.Scan()
	_ = h.Wait()
	if s := stateOf(t, l, id); !s.Thawed() || len(left(t, state)) != 0 || !strings.HasPrefix(h.lines.Text(), "thawed") {
		t.Errorf("after the guard was killed: %+v, on record %v, %q", s, left(t, state), h.lines.Text())
	}
}

// After a homenode was killed and its guard had thawed, another process freezes the same
// cgroup: that is not ours to thaw.
func TestLiveGuardClearsTheRecord(t *testing.T) {
	l, id, _ := worker(t, "sleep", "600")
	state := t.TempDir()
	h := startFreeze(t, state, id, "wait")
	h.awaitFrozen(t)
	_ = h.Process.Kill()
	_ = h.Wait()
	within(t, time.Minute, "the guard cleared the record", func() bool { return len(left(t, state)) == 0 })
	within(t, time.Minute, "the guard ended", func() bool { return !running(h.guard) })
	f, err := freeze.Find(kernel.Live(), l, id)
	if err == nil {
		err = f.Set(true)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	defer f.Set(false)
	var got []journal.Restored
	if got, err = ThawLeft(ctx, kernel.Live(), state); got != nil || err != nil || !stateOf(t, l, id).Own {
		t.Errorf("%v, %v", got, err)
	}
}

// On v1 a cgroup below a frozen one reads FROZEN. The guard thaws our freeze all the
// same, and clears the record.
func TestLiveBelowAFrozenParent(t *testing.T) {
	l, parent, pid := worker(t, "sleep", "600")
	if !l.Freezer.Present() {
		t.Skip("no v1 freezer")
	}
	id := parent + "/below"
	for i, h := range []cgroup.Hier{l.Cpuset, l.Freezer, l.Unified} {
		if h.Present() && (i == 0 || h != l.Cpuset) {
			join(t, l, h, id, pid)
		}
	}
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	state := t.TempDir()
	h := startFreeze(t, state, id, "wait")
	h.awaitFrozen(t)
	above, err := freeze.Open(kernel.Live(), l, parent, freeze.FileV1)
	if err == nil {
		err = above.Set(true)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer above.Close()
	defer above.Set(false)
	_ = h.Process.Kill()
	_ = h.Wait()
	within(t, time.Minute, "the guard cleared the record", func() bool { return len(left(t, state)) == 0 })
	if s := stateOf(t, l, id); s.Own || !s.Above {
		t.Errorf("below: %+v", s)
	}
}
