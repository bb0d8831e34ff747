// SPDX-License-Identifier: Apache-2.0

package unix

import (
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// While a call about a process hangs, execve would wait for its thread: Reexec refuses, and
// ignores no signal. When the call has returned, Reexec goes on, here to a program that is
// not there.
func TestReexecRefusesWhileACallHangs(t *testing.T) {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP) // it may have been ignored before, as by nohup
	t.Cleanup(func() { signal.Reset(syscall.SIGHUP, syscall.SIGUSR2) })
	path := filepath.Join(t.TempDir(), "no-program")
	var p Patience
	locked, returned := make(chan struct{}), make(chan struct{})
	now := make(chan time.Time)
	close(now)
	left, err := p.Do([]int{7}, now, func() { defer close(returned); <-locked })
	if !left || !errors.Is(err, ErrNoAnswer) {
		t.Fatalf("the call was not left: %v", err)
	}
	if err := Reexec(path, nil); !errors.Is(err, ErrNoAnswer) {
		t.Errorf("a call hangs, and Reexec said: %v", err)
	}
	if signal.Ignored(syscall.SIGHUP) {
		t.Error("it refused, and SIGHUP is ignored")
	}
	close(locked)
	<-returned
	if err := Reexec(path, nil); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("no call hangs, and Reexec said: %v", err)
	}
}
