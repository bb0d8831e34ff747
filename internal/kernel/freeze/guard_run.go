// SPDX-License-Identifier: Apache-2.0

package freeze

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
)

// Descriptors of a guard: those of exec.Cmd.ExtraFiles begin at 3.
const (
	guardSocket  = 3
	guardControl = 4
)

const (
	// verifyTries, with verifyPause between: somebody else who freezes it at the same
	// time is fought for a second, no longer.
	verifyTries = 10
	verifyPause = 100 * time.Millisecond
)

// RunGuard is the guard's life; args are those after GuardCommand. It returns what
// it was given besides, and whether it thawed.
//
//  1. Get out of the way of what could end it. Nothing of that must succeed.
//  2. Say so: only now may its starter freeze.
//  3. Wait for "done", which ends it; for the end of the socket, which is the end of
//     its starter; or for the limit.
//  4. Thaw.
func RunGuard(args []string) (thawed bool, more []string, err error) {
	signal.Ignore() // all that can be
	if len(args) < 2 || os.Getenv(guardEnv) == "" {
		return false, nil, errors.New("run guard: it is for homenode to start, not for people")
	}
	value, more := args[0], args[2:]
	limit, err := time.ParseDuration(args[1])
	if err != nil || Asked(value) {
		return false, nil, fmt.Errorf("run guard: %q, %v: want a value that thaws, and a limit", value, err)
	}
	_ = sys.SetNonblock(guardSocket, true)
	socket, control := os.NewFile(guardSocket, "socket"), os.NewFile(guardControl, "freezer")
	hide() // (1)
	deadline := time.Now().Add(limit)
	if err := socket.SetReadDeadline(deadline); err != nil {
		return false, nil, fmt.Errorf("run guard: %w", err)
	}
	if _, err := socket.Write([]byte(saysReady)); err != nil { // (2)
		return false, nil, fmt.Errorf("run guard: %w", err)
	}
	buf := make([]byte, 16)
	n, _ := socket.Read(buf) // (3): an error is as good as the end
	if string(buf[:n]) == saysDone {
		return false, more, nil
	}
	err = thaw(control, value) // (4)
	_ = socket.Close()         // a starter that lives knows by this
	return err == nil, more, err
}

// hide does what is permitted.
func hide() {
	// The name of the process, which is its first thread's; prctl would name the thread
	// that this happens to run on.
	_ = os.WriteFile("/proc/self/comm", []byte(GuardName), 0)
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("-1000"), 0)
	root := unix.NewLive().Root()
	leave(root)
	keepProgram(root)
}

// keepProgram keeps the program itself in memory, 13 MB that its starter has mapped
// too: its file may be on a file system that a frozen process serves. All of memory
// (mlockall) would be 40 MB more that the runtime has mapped and not touched.
func keepProgram(root unix.Root) {
	var buf unix.Buffer
	data, err := buf.ReadFile(root.Path("/proc/self/maps"))
	if err != nil {
		return
	}
	areas, _ := procfs.ParseAreas(data)
	for _, a := range areas {
		if strings.HasPrefix(a.Path, "/") {
			_, _, _ = sys.Syscall(sys.SYS_MLOCK, uintptr(a.Start), uintptr(a.End-a.Start), 0)
		}
	}
}

// thaw writes until the kernel takes it, or the cgroup is gone: nobody else will.
func thaw(control *os.File, value string) error {
	for pause := time.Millisecond; ; pause = min(2*pause, time.Second) {
		_, err := control.WriteAt([]byte(value+"\n"), 0)
		if err == nil {
			return verify(control, value)
		}
		if unix.Classify(err) == unix.ErrGone {
			return nil
		}
		time.Sleep(pause)
	}
}

// verify reads it back, and writes again. On v1 a cgroup whose parent is frozen
// reads FROZEN whatever is asked of it: that is not ours to thaw.
func verify(control *os.File, value string) error {
	buf := make([]byte, 32)
	for range verifyTries {
		n, err := control.ReadAt(buf, 0)
		if err != nil && err != io.EOF || strings.TrimSpace(string(buf[:n])) == value {
			return nil
		}
		time.Sleep(verifyPause)
		_, _ = control.WriteAt([]byte(value+"\n"), 0)
	}
	return fmt.Errorf("thaw: it reads %q", buf)
}
