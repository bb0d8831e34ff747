// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"

	"homenode/internal/kernel/unix"
)

// Exec replaces this process by a program, placed. It returns only when that failed.
//
// Signals that our parent had ignored are ignored again: a handler of ours would reset
// them to their default. execve leaves one thread, the one that called it, and the
// program gets the CPUs and policy of that thread (begin_new_exec in fs/exec.c;
// TestLiveExec).
func Exec(live unix.Live, p Placement, argv, env []string) error {
	path, err := prepare(live, argv)
	if err != nil {
		return err
	}
	runtime.LockOSThread() // and never unlocked: no other goroutine may have this thread
	if _, err := apply(liveThread{}, p); err != nil {
		return err
	}
	signal.Reset()
	return startError(argv[0], syscall.Exec(path, argv, env))
}

// Probe says whether the kernel accepts a placement, on a thread that is then restored.
func Probe(live unix.Live, p Placement) error {
	if err := needLive(live); err != nil {
		return err
	}
	runtime.LockOSThread()
	restore, err := apply(liveThread{}, p)
	if err == nil {
		err = restore()
	}
	if err == nil {
		runtime.UnlockOSThread()
	}
	return err
}

func needLive(live unix.Live) error {
	if !live.Valid() {
		return fmt.Errorf("start a program: only the running kernel can be acted upon (%w)", unix.ErrNotSupported)
	}
	return nil
}

// prepare finds the program.
func prepare(live unix.Live, argv []string) (string, error) {
	if err := needLive(live); err != nil {
		return "", err
	}
	if len(argv) == 0 || argv[0] == "" {
		return "", errors.New("start a program: none was given")
	}
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return "", startError(argv[0], err)
	}
	return path, nil
}

// startError is one sentence about a program that cannot be started.
func startError(name string, err error) error {
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("start %q: it is not in PATH", name)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("start %q: no such file, or its interpreter is missing", name)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("start %q: it is not a program, or may not be run", name)
	case errors.Is(err, syscall.ENOEXEC):
		return fmt.Errorf("start %q: it is not in a format that this kernel runs: does a script lack its #! line?", name)
	}
	return fmt.Errorf("start %q: %w", name, err)
}
