// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	sys "golang.org/x/sys/unix"

	"homenode/internal/action"
	"homenode/internal/journal"
	"homenode/internal/kernel"
	"homenode/internal/kernel/freeze"
	"homenode/internal/kernel/kerneltest"
	"homenode/internal/kernel/unix"
)

// On a fake tree nothing stands still by itself: events reports it from the start of the
// wait, or never.
func freezable(t *testing.T, files kerneltest.Files) (*freezeOwner, unix.Root) {
	t.Helper()
	kerneltest.InMemory(t)
	files[top+"/demo/a/cgroup.freeze"] = "0\n"
	files[top+"/demo/a/cgroup.events"] = "populated 1\nfrozen 0\n"
	a, k := boot(t, files, Config{})
	return &freezeOwner{Applier: a, live: kernel.Live()}, k.root
}

// standsStill plays the kernel, until the test or its end stops it: it does what is asked
// for.
func standsStill(t *testing.T, root unix.Root) (end func()) {
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
			asked, err := os.ReadFile(root.Path(top + "/demo/a/cgroup.freeze"))
			if err == nil && len(asked) == 2 {
				next := root.Path(top + "/demo/a/cgroup.events")
				f, err := os.OpenFile(next, os.O_WRONLY, 0)
				if err == nil {
					_, _ = f.WriteAt([]byte("populated 1\nfrozen "+string(asked)), 0)
					f.Close()
				}
			}
		}
	}()
	end = sync.OnceFunc(func() { close(stop); <-done })
	t.Cleanup(end)
	return end
}

func asked(t *testing.T, root unix.Root) string {
	t.Helper()
	data, err := os.ReadFile(root.Path(top + "/demo/a/cgroup.freeze"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}

func left(t *testing.T, state string) []journal.Entry {
	t.Helper()
	boot, err := kernel.BootID(kernel.Root{})
	if err != nil {
		t.Skip(err)
	}
	all, err := journal.Peek(filepath.Join(state, FreezeDir), boot)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestFreezeAndThaw(t *testing.T) {
	o, root := freezable(t, v2())
	standsStill(t, root)
	cfg := FreezeConfig{StateDir: t.TempDir()}
	f, err := o.freeze(ctx, cfg, "/demo/a")
	if err != nil {
		t.Fatal(err)
	}
	if asked(t, root) != "1" || f.Already() || len(left(t, cfg.StateDir)) != 1 || f.GuardPID() == 0 {
		t.Errorf("asked %s, already %v, on record %v", asked(t, root), f.Already(), left(t, cfg.StateDir))
	}
	other := &freezeOwner{Applier: o.Applier, live: o.live}
	if got, err := other.thawLeft(ctx, filepath.Join(cfg.StateDir, FreezeDir)); len(got) != 1 || got[0].Result != journal.Kept || !strings.Contains(got[0].Detail, "by a homenode that runs") || err != nil {
		t.Errorf("beside a freeze: %v, %v", got, err)
	}
	time.Sleep(2 * time.Millisecond)
	for range 2 {
		if err := f.Thaw(); err != nil || asked(t, root) != "0" || len(left(t, cfg.StateDir)) != 0 || f.For() < 2*time.Millisecond {
			t.Errorf("%v: asked %s, on record %v, for %v", err, asked(t, root), left(t, cfg.StateDir), f.For())
		}
	}
	<-f.Lost() // the guard is gone
}

func TestFreezeRefused(t *testing.T) {
	o, root := freezable(t, v2())
	standsStill(t, root)
	cfg := FreezeConfig{StateDir: t.TempDir()}
	for id, want := range map[string]string{"/x.slice/y": "owned by systemd", "/": "below the root", "/nope": "gone", "/demo/b": "no cgroup.freeze"} {
		if f, err := o.freeze(ctx, cfg, id); f != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", id, err)
		}
	}
	if _, err := Freeze(ctx, kernel.LiveToken{}, cfg, "/demo/a"); !errors.Is(err, kernel.ErrNotSupported) {
		t.Errorf("without a live kernel: %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if f, err := o.freeze(ctx, FreezeConfig{StateDir: file}, "/demo/a"); f != nil || err == nil || !strings.Contains(err.Error(), "no record of it") {
		t.Errorf("without a journal: %v", err)
	}
	if asked(t, root) != "0" {
		t.Error("refused, and frozen")
	}
}

// The state directory is full: nothing is frozen.
func TestFreezeWithoutRoomForTheRecord(t *testing.T) {
	o, root := freezable(t, v2())
	standsStill(t, root)
	state := t.TempDir()
	if err := sys.Mount("tmpfs", state, "tmpfs", 0, "size=16k"); err != nil {
		t.Skipf("no tmpfs can be mounted: %v", err)
	}
	defer sys.Unmount(state, sys.MNT_DETACH)
	for _, fill := range []int{16 << 10, 1} { // no room for the journal; room for its start only, as far as a page tells
		if err := os.WriteFile(filepath.Join(state, "fill"), make([]byte, fill), 0o644); err != nil && !errors.Is(err, sys.ENOSPC) {
			t.Fatal(err)
		}
		f, err := o.freeze(ctx, FreezeConfig{StateDir: state}, "/demo/a")
		if fill == 1 {
			if err != nil || f.Thaw() != nil {
				t.Errorf("with room: %v", err)
			}
		} else if !errors.Is(err, sys.ENOSPC) || asked(t, root) != "0" {
			t.Errorf("without room: %v, asked %s", err, asked(t, root))
		}
	}
}

// The disk is full once the cgroup is frozen: it is thawed, and the error says what is
// left.
func TestThawWithoutRoomForTheRecord(t *testing.T) {
	if inChild(t) {
		return
	}
	o, root := freezable(t, v2())
	standsStill(t, root)
	state := t.TempDir()
	f, err := o.freeze(ctx, FreezeConfig{StateDir: state}, "/demo/a")
	if err != nil {
		t.Fatal(err)
	}
	var was sys.Rlimit
	if err := sys.Getrlimit(sys.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	none := sys.Rlimit{Cur: 8, Max: was.Max} // the freezer's file may be written, the journal not: EFBIG
	if err := sys.Setrlimit(sys.RLIMIT_FSIZE, &none); err != nil {
		t.Fatal(err)
	}
	err = f.Thaw()
	if e := sys.Setrlimit(sys.RLIMIT_FSIZE, &was); e != nil {
		t.Fatal(e)
	}
	if err == nil || !strings.Contains(err.Error(), "it is thawed, but what is on record must be cleared") || asked(t, root) != "0" {
		t.Errorf("%v, asked %s", err, asked(t, root))
	}
	if got, err := o.thawLeft(ctx, filepath.Join(state, FreezeDir)); err != nil || len(got) != 1 || got[0].Result != journal.Already {
		t.Errorf("%v, %v", got, err)
	}
}

// inChild runs this test in a process of its own, and returns true there. A limit on the
// size of files applies to the whole process, and the testing package's log of files for
// go's cache may be written under it. The child has no such log.
func inChild(t *testing.T) bool {
	t.Helper()
	const mark = "HOMENODE_TEST_CHILD"
	if os.Getenv(mark) != "" {
		return false
	}
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	child.Env = append(os.Environ(), mark+"=1")
	out, err := child.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("in a process of its own: %v\n%s", err, out)
	}
	return true
}

// No descriptor is left once the cgroup is frozen: it is thawed all the same, and off the
// record.
func TestThawWithoutDescriptors(t *testing.T) {
	o, root := freezable(t, v2())
	standsStill(t, root)
	state := t.TempDir()
	f, err := o.freeze(ctx, FreezeConfig{StateDir: state}, "/demo/a")
	if err != nil {
		t.Fatal(err)
	}
	var was sys.Rlimit
	if err := sys.Getrlimit(sys.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	none := sys.Rlimit{Cur: 0, Max: was.Max}
	if err := sys.Setrlimit(sys.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	err = f.Thaw()
	if e := sys.Setrlimit(sys.RLIMIT_NOFILE, &was); e != nil {
		t.Fatal(e)
	}
	if err != nil || asked(t, root) != "0" || len(left(t, state)) != 0 {
		t.Errorf("%v, asked %s, on record %v", err, asked(t, root), left(t, state))
	}
}

// Once the cgroup is frozen, its state cannot be read. It is thawed all the same, and the
// guard is not released, since the thaw is not known.
func TestThawOfWhatCannotBeRead(t *testing.T) {
	o, root := freezable(t, v2())
	stop := standsStill(t, root)
	state := t.TempDir()
	f, err := o.freeze(ctx, FreezeConfig{StateDir: state}, "/demo/a")
	if err != nil {
		t.Fatal(err)
	}
	stop()
	kerneltest.Write(t, root, kerneltest.Files{top + "/demo/a/cgroup.events": "frozen perhaps\n"})
	err = f.Thaw()
	if err == nil || strings.Contains(err.Error(), "it is thawed, but") || !strings.Contains(err.Error(), "whether it is thawed is unknown") || asked(t, root) != "0" {
		t.Errorf("%v, asked %s", err, asked(t, root))
	}
	within(t, time.Minute, "the guard thaws, and clears the record", func() bool { return !running(f.GuardPID()) && len(left(t, state)) == 0 })
}

// pauseFile names the file that a guard writes to before it is ready, as if another
// process froze the cgroup meanwhile.
const pauseFile = "pause"

func TestFreezeOfWhatOthersFreezeWhileTheGuardStarts(t *testing.T) {
	o, root := freezable(t, v2())
	standsStill(t, root)
	state := t.TempDir()
	if err := os.WriteFile(filepath.Join(state, pauseFile), []byte(root.Path(top+"/demo/a/cgroup.freeze")), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := o.freeze(ctx, FreezeConfig{StateDir: state}, "/demo/a")
	if err != nil || !f.Already() {
		t.Fatalf("%+v, %v", f, err)
	}
	if err := f.Thaw(); err != nil || asked(t, root) != "1" || len(left(t, state)) != 0 {
		t.Errorf("%v: asked %s, on record %v", err, asked(t, root), left(t, state))
	}
}

// pausedOwner is frozen by another process between the journal's read and its write.
type pausedOwner struct {
	*freezeOwner
	pause func()
}

func (o pausedOwner) Write(p journal.Permit, s journal.Setting, value string) error {
	o.pause()
	return o.freezeOwner.Write(p, s, value)
}

// Until we have written, the cgroup is not ours: it is not frozen again, put on record,
// or thawed.
func TestFreezeOfWhatOthersFreezeBeforeWeWrite(t *testing.T) {
	o, root := freezable(t, v2())
	state := t.TempDir()
	open, err := freeze.Find(o.live, o.layout, "/demo/a")
	if err != nil {
		t.Fatal(err)
	}
	o.open = open
	f := &Frozen{owner: o}
	if f.journal, err = journal.Open(filepath.Join(state, FreezeDir)); err == nil {
		err = f.watch(FreezeConfig{StateDir: state})
	}
	if err != nil {
		t.Fatal(err)
	}
	paused := pausedOwner{o, func() { kerneltest.Write(t, root, kerneltest.Files{top + "/demo/a/cgroup.freeze": "1\n"}) }}
	out := f.journal.Wrap(paused).Apply(ctx, action.Step{Kind: action.Freeze, Workload: "/demo/a"})
	if out.Status != action.Refused || !o.taken || o.asked || len(left(t, state)) != 0 {
		t.Errorf("%+v, taken %v, asked %v, on record %v", out, o.taken, o.asked, left(t, state))
	}
	if err := f.stop(ctx, "/demo/a"); err != nil || o.asked { // the journal finds it frozen already
		t.Errorf("%v, asked %v", err, o.asked)
	}
	pid := f.GuardPID()
	if err := f.Thaw(); err != nil || asked(t, root) != "1" { // as after an intent that could not be written
		t.Errorf("%v: asked %s", err, asked(t, root))
	}
	within(t, time.Minute, "the guard ended", func() bool { return !running(pid) })
	if asked(t, root) != "1" {
		t.Error("the guard thawed it")
	}
}

// Not every process stands still: the cgroup is thawed, and the error says so.
func TestFreezeThatDoesNotComplete(t *testing.T) {
	o, root := freezable(t, v2())
	state := t.TempDir()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	go func() { // patience ends, soon after the wait began
		for data, err := []byte(nil), error(nil); err == nil && string(data) != "1\n"; time.Sleep(time.Millisecond) {
			data, err = os.ReadFile(root.Path(top + "/demo/a/cgroup.freeze"))
		}
		cancel()
	}()
	f, err := o.freeze(ctx, FreezeConfig{StateDir: state}, "/demo/a")
	if f != nil || err == nil || !strings.Contains(err.Error(), "not every process stands still: context canceled") || asked(t, root) != "0" || len(left(t, state)) != 0 {
		t.Errorf("%v, asked %s, on record %v", err, asked(t, root), left(t, state))
	}
}

// Another process's freeze is neither ours to ask for nor to end.
func TestFreezeOfWhatIsFrozen(t *testing.T) {
	o, root := freezable(t, v2())
	kerneltest.Write(t, root, kerneltest.Files{top + "/demo/a/cgroup.freeze": "1\n", top + "/demo/a/cgroup.events": "populated 1\nfrozen 1\n"})
	state := t.TempDir()
	f, err := o.freeze(ctx, FreezeConfig{StateDir: state}, "/demo/a")
	if err != nil || !f.Already() || f.GuardPID() != 0 || f.Lost() != nil || f.For() != 0 {
		t.Fatalf("%+v, %v", f, err)
	}
	if err := f.Thaw(); err != nil || asked(t, root) != "1" || len(left(t, state)) != 0 {
		t.Errorf("%v: asked %s", err, asked(t, root))
	}
}

// The guard is killed: the caller knows, and thaws. Both are killed: the next thaws.
func TestFreezeWithoutGuard(t *testing.T) {
	o, root := freezable(t, v2())
	standsStill(t, root)
	cfg := FreezeConfig{StateDir: t.TempDir()}
	f, err := o.freeze(ctx, cfg, "/demo/a")
	if err != nil {
		t.Fatal(err)
	}
	_ = syscall.Kill(f.GuardPID(), syscall.SIGKILL)
	<-f.Lost()
	if asked(t, root) != "1" {
		t.Error("a killed guard thawed")
	}
	f.journal.Close() // as if we were gone too
	other := &freezeOwner{Applier: o.Applier, live: o.live}
	got, err := other.thawLeft(ctx, filepath.Join(cfg.StateDir, FreezeDir))
	if err != nil || len(got) != 1 || got[0].Result != journal.PutBack || asked(t, root) != "0" {
		t.Errorf("%v, %v: asked %s", got, err, asked(t, root))
	}
	if got, err := other.thawLeft(ctx, filepath.Join(cfg.StateDir, FreezeDir)); got != nil || err != nil {
		t.Errorf("again: %v, %v", got, err)
	}
}

func TestDecisionFreezable(t *testing.T) {
	files := v2()
	files["/proc/10/cgroup"] = "0::/demo/a\n"
	files["/proc/20/cgroup"] = "0::/default/c1\n"
	files["/proc/30/cgroup"] = "0::/demo/many\n"
	files["/proc/31/cgroup"] = "0::/demo/many\n"
	files["/proc/1/cgroup"] = "0::/\n"
	files[top+"/demo/many/cgroup.procs"] = "30\n31\n"
	files[top+"/demo/many/below/cgroup.procs"] = "32\n33\n"
	root := kerneltest.Tree(t, files)
	for _, c := range []struct {
		pids []int
		id   string
		err  string
	}{
		{[]int{10}, "/demo/a", ""},
		{[]int{10, 20}, "", "process 10 is in cgroup /demo/a, process 20 in /default/c1"},
		{[]int{30}, "", "process 30 shares its cgroup /demo/many with 3 others"},
		{[]int{30, 31}, "", "cgroup /demo/many with 2 others"},
		{[]int{1}, "", "root cgroup"},
		{[]int{99}, "", "gone"},
		{nil, "", "no process"},
	} {
		id, err := FreezableFor(root, c.pids)
		if id != c.id || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%v: %q, %v", c.pids, id, err)
		}
	}
}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == freeze.GuardCommand {
		pause(os.Args[len(os.Args)-1])
		if err := RunGuard(os.Args[2:]); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	if state := os.Getenv(freezerEnv); state != "" {
		freezeLive(state, os.Args[1], os.Args[2])
		os.Exit(9) // the parent has not killed it: not a test
	}
	os.Exit(m.Run())
}

func pause(state string) {
	if file, err := os.ReadFile(filepath.Join(state, pauseFile)); err == nil {
		_ = os.WriteFile(string(file), []byte("1\n"), 0)
	}
}

// freezeLive is a homenode that freezes a real cgroup, and ends in the way its arguments
// say.
func freezeLive(state, id, how string) {
	inTurn = time.Minute // the previous homenode's guard may be slow
	f, err := Freeze(context.Background(), kernel.Live(), FreezeConfig{StateDir: state}, id)
	if err != nil {
		fmt.Println(err)
		os.Exit(9)
	}
	defer f.Thaw()
	fmt.Printf("frozen %d\n", f.GuardPID())
	if how == "panic" {
		panic("while it is frozen")
	}
	select {
	case <-f.Lost():
		must := f.Thaw()
		fmt.Println("thawed", must)
		os.Exit(0)
	case <-time.After(time.Minute):
	}
}
