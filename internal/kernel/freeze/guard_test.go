// SPDX-License-Identifier: Apache-2.0

package freeze

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/kerneltest"
	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
)

// callerEnv makes the test program one that freezes the fake tree in that directory, in
// the way that its argument says.
const callerEnv = "HOMENODE_TEST_FREEZE"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == GuardCommand {
		if _, _, err := RunGuard(os.Args[2:]); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	if dir := os.Getenv(callerEnv); dir != "" {
		call(dir, os.Args[1])
		os.Exit(9) // the parent has not killed it: not a test
	}
	os.Exit(m.Run())
}

// call freezes and waits, or panics. It prints its guard's pid, and then that it froze.
func call(dir, how string) {
	l, err := cgroup.Find(unix.At(dir))
	must(err)
	f, err := Find(unix.NewLive(), l, "/a")
	must(err)
	if how == "removed" {
		must(os.Remove(os.Args[0]))
	}
	g, err := StartGuard(f, time.Minute)
	must(err)
	fmt.Println(g.PID())
	if how == "thaw" {
		interrupted := make(chan os.Signal, 1)
		signal.Notify(interrupted, os.Interrupt)
		must(g.Freeze())
		fmt.Println("frozen")
		<-interrupted
		must(f.Set(false))
		must(g.Release())
		os.Exit(0)
	}
	if how == "not yet" {
		time.Sleep(time.Minute)
	}
	must(g.Freeze())
	fmt.Println("frozen")
	switch how {
	case "panic":
		go func() { panic("of another goroutine: no defer of this one runs") }()
	case "exit":
		os.Exit(3)
	}
	time.Sleep(time.Minute)
}

func must(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(9)
	}
}

type caller struct {
	*exec.Cmd
	guard int
	lines *bufio.Scanner
}

func startCaller(t *testing.T, root unix.Root, how string) caller {
	t.Helper()
	c := caller{Cmd: exec.Command("/proc/self/exe", how)}
	c.Env = append(os.Environ(), callerEnv+"="+root.Path("/"))
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	c.lines = bufio.NewScanner(out)
	c.guard, err = strconv.Atoi(c.line())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (c caller) line() string { c.lines.Scan(); return c.lines.Text() }

func content(t *testing.T, root unix.Root, file string) string {
	t.Helper()
	data, err := os.ReadFile(root.Path(file))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

func goneProcess(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(data), ") Z")
}

// A caller that is killed at a random point, before or after it froze, leaves nothing
// frozen. Its guard thaws what it froze, and ends.
func TestGuardThawsWhenItsCallerIsKilled(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	frozen := 0
	for i := range 60 {
		root, file := kerneltest.Tree(t, treeV2()), top+"/a/cgroup.freeze"
		if i%2 == 1 {
			root, file = kerneltest.Tree(t, treeV1()), top+"/freezer/a/freezer.state"
		}
		c := startCaller(t, root, "wait")
		time.Sleep(time.Duration(rng.ExpFloat64() * float64(200*time.Microsecond)))
		if i%3 == 0 {
			c.line()
			frozen++
		}
		_ = c.Process.Kill()
		_ = c.Wait()
		eventually(t, "the guard is still there", func() bool { return goneProcess(c.guard) })
		if v := content(t, root, file); v != "0" && v != "THAWED" {
			t.Fatalf("kill %d: left behind: %s", i, v)
		}
	}
	t.Logf("60 kill points, at least %d of them while frozen", frozen)
}

func TestGuardThawsHoweverItsCallerEnds(t *testing.T) {
	for how, end := range map[string]func(caller){
		"panic": func(caller) {}, "exit": func(caller) {},
		"wait": func(c caller) { _ = c.Process.Signal(syscall.SIGINT) }, // not caught
		"thaw": func(c caller) { _ = c.Process.Signal(syscall.SIGINT) },
	} {
		root := kerneltest.Tree(t, treeV2())
		c := startCaller(t, root, how)
		if said := c.line(); said != "frozen" {
			t.Fatal(said)
		}
		end(c)
		_ = c.Wait()
		eventually(t, how+": the guard is still there", func() bool { return goneProcess(c.guard) })
		if v := content(t, root, top+"/a/cgroup.freeze"); v != "0" {
			t.Errorf("%s: left behind: %s", how, v)
		}
	}
}

// The guard is out of reach of what ends its caller: signals, its name, its session.
func TestGuardIsHidden(t *testing.T) {
	root := kerneltest.Tree(t, treeV2())
	f := mustFind(t, root)
	g, err := StartGuard(f, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE, syscall.SIGQUIT, syscall.SIGUSR1} {
		_ = syscall.Kill(g.PID(), s)
	}
	comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", g.PID()))
	if sid, _ := sys.Getsid(g.PID()); string(comm) != GuardName+"\n" || sid != g.PID() {
		t.Errorf("%q, session %d of %d", comm, sid, g.PID())
	}
	// A second guard cannot interfere while it lives.
	if l, err := unix.TryLock(mustFind(t, root).control); l || err != nil {
		t.Errorf("the lock is free: %v, %v", l, err)
	}
	select {
	case <-g.Lost():
		t.Fatal("a signal ended it")
	case <-time.After(50 * time.Millisecond):
	}
	if err := g.Freeze(); err != nil {
		t.Fatal(err)
	}
	if err := g.Release(); err != nil || content(t, root, top+"/a/cgroup.freeze") != "1" {
		t.Errorf("a released guard thawed, or: %v", err)
	}
	<-g.Lost()
}

// The guard does not thaw what its caller did not announce: the caller was killed before,
// or took longer than the limit, and another process froze.
func TestGuardThawsNothingOfOthers(t *testing.T) {
	root := kerneltest.Tree(t, treeV2())
	c := startCaller(t, root, "not yet")
	kerneltest.Write(t, root, kerneltest.Files{top + "/a/cgroup.freeze": "1\n"})
	_ = c.Process.Kill()
	_ = c.Wait()
	eventually(t, "the guard is still there", func() bool { return goneProcess(c.guard) })
	if v := content(t, root, top+"/a/cgroup.freeze"); v != "1" {
		t.Errorf("the guard thawed what was not announced to it: %s", v)
	}
	f := mustFind(t, root)
	g, err := StartGuard(f, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	<-g.Lost()
	if v := content(t, root, top+"/a/cgroup.freeze"); v != "1" {
		t.Errorf("at its limit, too: %s", v)
	}
	if err := f.Set(false); err != nil {
		t.Fatal(err)
	}
	if err := g.Freeze(); err == nil || content(t, root, top+"/a/cgroup.freeze") != "0" {
		t.Errorf("frozen without a guard: %v", err)
	}
	if err := g.Release(); err != nil {
		t.Error(err)
	}
}

// A message sent before the limit counts, also when it is read only later; a message sent
// after it does not arrive.
func TestDecisionListen(t *testing.T) {
	for _, c := range []struct {
		says           []string
		freezing, done bool
	}{
		{nil, false, false}, {[]string{saysFreezing}, true, false}, {[]string{saysFreezing, saysDone}, true, true}, {[]string{saysDone}, false, true}, {[]string{"?"}, false, false},
	} {
		for _, late := range []bool{false, true} {
			pair, err := sys.Socketpair(sys.AF_UNIX, sys.SOCK_SEQPACKET|sys.SOCK_CLOEXEC|sys.SOCK_NONBLOCK, 0)
			if err != nil {
				t.Fatal(err)
			}
			ours, theirs := os.NewFile(uintptr(pair[0]), "starter"), os.NewFile(uintptr(pair[1]), "guard")
			for _, say := range c.says {
				if _, err := ours.Write([]byte(say)); err != nil {
					t.Fatal(err)
				}
			}
			if late {
				err = theirs.SetReadDeadline(time.Now().Add(-time.Second))
			} else {
				err = ours.Close()
			}
			if freezing, done := listen(theirs); freezing != c.freezing || done != c.done || err != nil {
				t.Errorf("%q, late %v: %v, %v, %v", c.says, late, freezing, done, err)
			}
			if _, err := ours.Write([]byte(saysFreezing)); late && len(c.says) == 0 && err == nil {
				t.Error("a guard that ends has taken an order")
			}
			ours.Close()
			theirs.Close()
		}
	}
}

// On v1 a cgroup below a frozen one reads FROZEN, thawed or not.
func TestVerifyReadsWhatIsAskedOfTheCgroupItself(t *testing.T) {
	file := func(text string) *os.File {
		name := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	state := file("FROZEN\n")
	if err := verify(state, file("0\n"), "THAWED"); err != nil {
		t.Error(err)
	}
	if err := verify(state, file("1\n"), "THAWED"); err == nil || !strings.Contains(err.Error(), "it reads") {
		t.Errorf("still frozen: %v", err)
	}
	if f := mustFind(t, kerneltest.Tree(t, treeV1())); !strings.HasSuffix(f.own.Name(), "freezer.self_freezing") {
		t.Errorf("v1 reads back %s", f.own.Name())
	}
	files := treeV1()
	delete(files, top+"/freezer/a/freezer.self_freezing") // before 3.8
	if f := mustFind(t, kerneltest.Tree(t, files)); f.own != f.control {
		t.Errorf("before 3.8: %s", f.own.Name())
	}
}

func TestGuardLimit(t *testing.T) {
	root := kerneltest.Tree(t, treeV2())
	f := mustFind(t, root)
	g, err := StartGuard(f, 10*time.Second) // to freeze within, on a busy host
	if err == nil {
		err = g.Freeze()
	}
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-g.Lost():
	case <-time.After(time.Minute):
		t.Fatal("the limit passed, and the guard stays")
	}
	if v := content(t, root, top+"/a/cgroup.freeze"); v != "0" {
		t.Errorf("it went without thawing: %s", v)
	}
	if err := g.Release(); err != nil {
		t.Error(err)
	}
}

func TestGuardAbandoned(t *testing.T) {
	root := kerneltest.Tree(t, treeV2())
	f := mustFind(t, root)
	g, err := StartGuard(f, time.Minute)
	if err == nil {
		err = g.Freeze()
	}
	if err == nil {
		err = g.Abandon()
	}
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "an abandoned guard does not end", func() bool { return goneProcess(g.PID()) })
	if v := content(t, root, top+"/a/cgroup.freeze"); v != "0" {
		t.Errorf("it did not thaw: %s", v)
	}
}

func TestGuardLost(t *testing.T) {
	f := mustFind(t, kerneltest.Tree(t, treeV2()))
	g, err := StartGuard(f, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	_ = syscall.Kill(g.PID(), syscall.SIGKILL)
	select {
	case <-g.Lost():
	case <-time.After(20 * time.Second):
		t.Fatal("the loss was not noticed")
	}
	if err := g.Release(); err != nil {
		t.Error(err)
	}
}

func TestGuardRefused(t *testing.T) {
	files := treeV2()
	files[top+"/a/cgroup.procs"] = fmt.Sprintf("10\n%d\n", os.Getpid())
	if _, err := StartGuard(mustFind(t, kerneltest.Tree(t, files)), time.Minute); err == nil || !strings.Contains(err.Error(), "runs inside the cgroup") {
		t.Errorf("inside: %v", err)
	}
	f := mustFind(t, kerneltest.Tree(t, treeV2()))
	if _, err := StartGuard(f, 0); err == nil {
		t.Error("a limit of nothing was taken")
	}
	t.Setenv(guardEnv, "1")
	if _, err := StartGuard(f, time.Minute); err == nil {
		t.Error("a guard started a guard")
	}
	if _, _, err := RunGuard(nil); err == nil {
		t.Error("a guard of nothing ran")
	}
	signal.Reset()
}

// Without descriptors no guard starts, and so nothing is frozen. If descriptors run out
// after the guard started, both can still thaw.
func TestGuardWithoutDescriptors(t *testing.T) {
	root := kerneltest.Tree(t, treeV2())
	f := mustFind(t, root)
	g, err := StartGuard(f, time.Minute)
	if err == nil {
		err = g.Freeze()
	}
	if err != nil {
		t.Fatal(err)
	}
	var was sys.Rlimit
	if err := sys.Getrlimit(sys.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	none := sys.Rlimit{Cur: 0, Max: was.Max}
	err1 := sys.Setrlimit(sys.RLIMIT_NOFILE, &none)
	_, opened := os.Open(os.DevNull)
	other, started := StartGuard(f, time.Minute)
	_, read := f.State()
	thawed, released := f.Set(false), g.Release()
	if err := sys.Setrlimit(sys.RLIMIT_NOFILE, &was); err != nil || err1 != nil {
		t.Fatal(err, err1)
	}
	if opened == nil {
		t.Fatal("descriptors were left: nothing was tried")
	}
	if other != nil || started == nil {
		t.Error("a guard was started")
	}
	if read != nil || thawed != nil || released != nil || content(t, root, top+"/a/cgroup.freeze") != "0" {
		t.Errorf("state %v, thaw %v, release %v", read, thawed, released)
	}
}

// The program's file may be replaced or gone.
func TestGuardWithoutProgramFile(t *testing.T) {
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	exe := filepath.Join(t.TempDir(), "copy")
	if err := os.WriteFile(exe, self, 0o755); err != nil {
		t.Fatal(err)
	}
	root := kerneltest.Tree(t, treeV2())
	cmd := exec.Command(exe, "removed")
	cmd.Env = append(os.Environ(), callerEnv+"="+root.Path("/"))
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Scan()
	guard, err := strconv.Atoi(lines.Text())
	if err != nil {
		t.Fatalf("no guard of a deleted program: %q", lines.Text())
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	eventually(t, "the guard is still there", func() bool { return goneProcess(guard) })
	if v := content(t, root, top+"/a/cgroup.freeze"); v != "0" {
		t.Errorf("left behind: %s", v)
	}
}

func parseMounts(t *testing.T, info string) []procfs.Mount {
	t.Helper()
	all, err := procfs.ParseMountinfo([]byte(info))
	if err != nil {
		t.Fatal(err)
	}
	return all
}
