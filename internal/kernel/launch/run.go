// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
)

// Command is a program to run once, with its resource use.
type Command struct {
	Argv    []string
	Env     []string      // nil: this process's
	Timeout time.Duration // 0 = none
	Echo    io.Writer     // gets its output at once; nil: only the end is kept
	// Now is the clock for Elapsed; nil: the monotonic one.
	Now func() time.Duration
}

// Outcome is the result of one run. The times and counts are those of the program and
// of the children that it waited for (wait4(2)).
type Outcome struct {
	Elapsed      time.Duration
	User, System time.Duration
	// MaxRSS is unknown if it is not above this process's own: a child starts with that
	// of its parent (exec_mmap in fs/exec.c).
	MaxRSS                 unit.Opt[unit.Bytes]
	MinorFaults            uint64
	MajorFaults            uint64
	Voluntary, Involuntary uint64 // context switches

	Exit     int            // −1: a signal ended it
	Signal   syscall.Signal // 0 = none
	TimedOut bool
	// LeftBehind: the program ended before processes of its group. They were ended.
	LeftBehind bool
	Stdout     []string // the last lines
	Stderr     []string
}

// Failed is a clause about why a run does not count; "" if it does.
func (o Outcome) Failed(limit time.Duration) string {
	switch {
	case o.TimedOut:
		return fmt.Sprintf("ran longer than %v", limit)
	case o.Signal != 0:
		return fmt.Sprintf("was ended by signal %d (%v)", int(o.Signal), o.Signal)
	case o.Exit != 0:
		return fmt.Sprintf("failed with exit code %d", o.Exit)
	}
	return ""
}

// patience is how long Run waits for the end of the output, once the program and its
// group have ended: a process that left the group (setsid(2)) may hold the pipe.
const patience = time.Second

// Run runs a program placed and waits for it. The error means that it could not be
// started, or that ctx ended; a program that fails is an Outcome.
//
//  1. The thread is this goroutine's while the child lives: the child gets its CPUs and
//     policy, and dies with it (Pdeathsig is sent when the thread ends, not the
//     process).
//  2. The child has a process group of its own, so that all of it can be ended. It
//     always is: a process left in the background would disturb the next run. Its input
//     is empty.
func Run(ctx context.Context, live unix.Live, p Placement, c Command) (Outcome, error) {
	path, err := prepare(live, c.Argv)
	if err != nil {
		return Outcome{}, err
	}
	limited, cancel := ctx, context.CancelFunc(func() {})
	if c.Timeout > 0 {
		limited, cancel = context.WithTimeout(ctx, c.Timeout)
	}
	defer cancel()
	r := runner{command: c, cmd: exec.CommandContext(limited, path, c.Argv[1:]...)}
	if err := r.run(liveThread{}, p); err != nil {
		return Outcome{}, err
	}
	if ctx.Err() != nil {
		return Outcome{}, context.Cause(ctx)
	}
	o := r.outcome()
	o.TimedOut, o.LeftBehind = r.ended, r.left && !r.ended
	return o, nil
}

type runner struct {
	command        Command
	cmd            *exec.Cmd
	stdout, stderr *tail
	elapsed        time.Duration
	ended          bool // by us
	left           bool // others of its group were left when it ended
}

func (r *runner) run(t thread, p Placement) error {
	c := r.cmd
	c.Args[0], c.Env = r.command.Argv[0], r.command.Env
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL} // 1, 2
	c.Cancel = func() error {
		r.ended = true // read after Wait, which waits for this
		return syscall.Kill(-c.Process.Pid, syscall.SIGTERM)
	}
	c.WaitDelay = 2 * time.Second
	now := r.command.Now
	if now == nil {
		start := time.Now()
		now = func() time.Duration { return time.Since(start) }
	}
	var echo io.Writer
	if r.command.Echo != nil {
		echo = &inTurn{w: r.command.Echo}
	}
	var err error
	if r.stdout, err = newTail(echo); err != nil {
		return err
	}
	defer r.stdout.close()
	if r.stderr, err = newTail(echo); err != nil {
		return err
	}
	defer r.stderr.close()
	c.Stdout, c.Stderr = r.stdout.in, r.stderr.in
	return r.placed(t, p, now)
}

func (r *runner) placed(t thread, p Placement, now func() time.Duration) error {
	runtime.LockOSThread() // 1
	restore, err := apply(t, p)
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	began := now()
	startErr := r.cmd.Start()
	if err := restore(); err == nil {
		defer runtime.UnlockOSThread() // else the thread ends with this goroutine
	}
	if startErr != nil {
		return startError(r.command.Argv[0], startErr)
	}
	waitErr := r.cmd.Wait()
	r.elapsed = now() - began
	r.left = syscall.Kill(-r.cmd.Process.Pid, syscall.SIGKILL) == nil // 2
	if r.cmd.ProcessState == nil {
		return fmt.Errorf("wait for %q: %w", r.command.Argv[0], waitErr)
	}
	return nil
}

func (r *runner) outcome() Outcome {
	state := r.cmd.ProcessState
	o := Outcome{Elapsed: r.elapsed, User: state.UserTime(), System: state.SystemTime(), Exit: state.ExitCode(),
		Stdout: r.stdout.lines(), Stderr: r.stderr.lines()}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		o.Signal = status.Signal()
	}
	usage, ok := state.SysUsage().(*syscall.Rusage)
	if !ok {
		return o
	}
	o.MinorFaults, o.MajorFaults = uint64(usage.Minflt), uint64(usage.Majflt)
	o.Voluntary, o.Involuntary = uint64(usage.Nvcsw), uint64(usage.Nivcsw)
	var own syscall.Rusage
	known := syscall.Getrusage(syscall.RUSAGE_SELF, &own) == nil && usage.Maxrss > own.Maxrss
	o.MaxRSS = unit.OptOf(unit.Bytes(usage.Maxrss)*unit.KiB, known)
	return o
}

// inTurn is one writer for two pipes.
type inTurn struct {
	mu sync.Mutex
	w  io.Writer
}

func (t *inTurn) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.w.Write(p)
}

// tail reads a pipe and keeps its end.
type tail struct {
	in, out *os.File
	done    chan struct{}
	kept    []byte
}

const keptBytes = 8 << 10

func newTail(echo io.Writer) (*tail, error) {
	out, in, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	t := &tail{in: in, out: out, done: make(chan struct{})}
	go t.read(echo)
	return t, nil
}

func (t *tail) read(echo io.Writer) {
	defer close(t.done)
	buf := make([]byte, 32<<10)
	for {
		n, err := t.out.Read(buf)
		if n > 0 {
			t.keep(buf[:n])
			if echo != nil {
				_, _ = echo.Write(buf[:n]) // a screen that is gone does not end the run
			}
		}
		if err != nil {
			return
		}
	}
}

func (t *tail) keep(more []byte) {
	t.kept = append(t.kept, more...)
	if n := len(t.kept); n > 2*keptBytes {
		t.kept = append(t.kept[:0], t.kept[n-keptBytes:]...)
	}
}

// close ends the writing side, and the reading one when that takes too long.
func (t *tail) close() {
	_ = t.in.Close()
	select {
	case <-t.done:
	case <-time.After(patience):
		_ = t.out.Close()
		<-t.done
		return
	}
	_ = t.out.Close()
}

// lines are the kept lines, without empty ones; the first may be cut.
func (t *tail) lines() []string {
	var all []string
	for line := range strings.Lines(string(t.kept)) {
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, line)
		}
	}
	return all
}
