// SPDX-License-Identifier: Apache-2.0

package freeze

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/unix"
)

const (
	// GuardCommand is the hidden subcommand that is RunGuard. A program that starts a
	// guard must have it: it starts itself again.
	GuardCommand = "thaw-guard"
	// GuardName is the guard's name in ps: `killall homenode` misses it.
	GuardName = "homenode-thaw"

	guardEnv = "HOMENODE_THAW_GUARD" // set in guards: a program without GuardCommand must not start itself for ever

	saysReady    = "ready"
	saysFreezing = "freezing" // from now on its starter may freeze
	saysDone     = "done"

	// readyWithin is ample for starting a program, also in the lab. Nothing is frozen
	// meanwhile.
	readyWithin = 30 * time.Second
	// goneWithin is how long an earlier guard may take to thaw and end.
	goneWithin = 5 * time.Second
)

// Guard is the caller's end of a guard.
type Guard struct {
	f      *Freezer
	cmd    *exec.Cmd
	socket *os.File
	gone   chan struct{}
}

// StartGuard starts the guard of a freezer, before anything is frozen. After a call of
// Freeze the guard thaws when this process is gone, or after limit. Before that call, any
// freeze belongs to another process. RunGuard returns more.
//
//  1. A process inside the cgroup to be frozen would never thaw it; its guard starts
//     there too.
//  2. An earlier guard that is just about to thaw would thaw what is frozen now. So a
//     guard has a lock on the freezer's file, which it shares with the process that
//     started it.
//  3. The socket's other end is closed with the last thread of this process. A thread
//     within a system call ends the call first.
func StartGuard(f *Freezer, limit time.Duration, more ...string) (*Guard, error) {
	if err := mayGuard(f, limit); err != nil {
		return nil, err
	}
	if err := lock(f); err != nil { // (2)
		return nil, err
	}
	pair, err := sys.Socketpair(sys.AF_UNIX, sys.SOCK_SEQPACKET|sys.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, unix.Explain("start guard:", "make socket", "", err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "guard")
	defer theirs.Close()
	_ = sys.SetNonblock(pair[0], true) // so that Go polls it, and a read has a deadline
	g := &Guard{f: f, cmd: guardProgram(f, limit, theirs, more), socket: os.NewFile(uintptr(pair[0]), "guard"), gone: make(chan struct{})}
	if err := g.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start guard: %w", err), g.socket.Close())
	}
	theirs.Close() // otherwise its end would never be seen
	if err := g.awaitReady(); err != nil {
		return nil, errors.Join(err, g.end())
	}
	go g.watch()
	return g, nil
}

func mayGuard(f *Freezer, limit time.Duration) error {
	if os.Getenv(guardEnv) != "" {
		return errors.New("start guard: this is one, run by a program without the command " + GuardCommand)
	}
	if limit <= 0 {
		return fmt.Errorf("start guard: a limit of %v would thaw at once", limit)
	}
	inside, err := f.Inside(os.Getpid()) // (1)
	if inside {
		err = fmt.Errorf("freeze %s: homenode runs inside the cgroup that it is to freeze (%w): run it from elsewhere", f.ID, unix.ErrNotSupported)
	}
	return err
}

func lock(f *Freezer) error {
	for end := time.Now().Add(goneWithin); ; time.Sleep(10 * time.Millisecond) {
		got, err := unix.TryLock(f.control)
		if err != nil {
			return unix.Explain("lock", f.control.Name(), "", err)
		}
		if got {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("freeze %s: another homenode, or its guard, is at this cgroup: wait for it", f.ID)
		}
	}
}

// guardProgram is this program again, by the kernel's own link to it: the file may have
// been replaced, or be gone. It needs nothing of the environment.
func guardProgram(f *Freezer, limit time.Duration, socket *os.File, more []string) *exec.Cmd {
	return &exec.Cmd{
		Path: "/proc/self/exe", Args: append([]string{GuardName, GuardCommand, f.Value(false), limit.String()}, more...),
		Env: []string{guardEnv + "=1", "GOMAXPROCS=1"}, Dir: "/",
		ExtraFiles:  []*os.File{socket, f.control, f.own},
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
}

func (g *Guard) awaitReady() error {
	_ = g.socket.SetReadDeadline(time.Now().Add(readyWithin))
	buf := make([]byte, 512)
	n, err := g.socket.Read(buf)
	said := strings.TrimSpace(string(buf[:n]))
	switch {
	case err != nil:
		return fmt.Errorf("start guard: it does not say that it is ready: %w", err)
	case said != saysReady:
		return fmt.Errorf("start guard: it says %q", said)
	}
	return g.socket.SetReadDeadline(time.Time{})
}

// watch ends when the guard does: the guard sends nothing more.
func (g *Guard) watch() {
	_, _ = io.Copy(io.Discard, g.socket)
	close(g.gone)
	_ = g.cmd.Wait() // however it ends
}

// end ends a guard that never got ready.
func (g *Guard) end() error {
	_ = g.cmd.Process.Kill()
	_ = g.cmd.Wait()
	return g.socket.Close()
}

// PID is the guard's pid.
func (g *Guard) PID() int { return g.cmd.Process.Pid }

// Lost is closed when the guard is gone: it was killed, or the limit passed, or it was
// released. The process that froze then thaws at once.
func (g *Guard) Lost() <-chan struct{} { return g.gone }

// Freeze freezes, after it has announced that to the guard: from then on the guard thaws. Without a
// guard that hears, nothing is frozen.
func (g *Guard) Freeze() error {
	if _, err := g.socket.Write([]byte(saysFreezing)); err != nil {
		return fmt.Errorf("freeze %s: its guard is gone: %w", g.f.ID, err)
	}
	return g.f.Set(true)
}

// Release ends the guard without thawing, after its caller did.
func (g *Guard) Release() error {
	_, _ = g.socket.Write([]byte(saysDone)) // an error means that the guard is gone: ignored
	return g.await()
}

// Abandon has the guard thaw what Freeze froze, since its caller could not, as if the
// caller were gone. If the guard cannot either, it keeps trying.
func (g *Guard) Abandon() error {
	return shutdown(g.socket, sys.SHUT_WR)
}

func shutdown(socket *os.File, how int) error {
	raw, err := socket.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { _ = sys.Shutdown(int(fd), how) })
	}
	return err
}

func (g *Guard) await() error {
	select {
	case <-g.gone:
	case <-time.After(goneWithin):
		_ = g.cmd.Process.Kill()
		<-g.gone
		return errors.Join(errors.New("end guard: it did not end by itself, and was killed"), g.socket.Close())
	}
	return g.socket.Close()
}
