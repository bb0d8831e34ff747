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
	guardOwn     = 5
)

const (
	// verifyTries, with verifyPause between: if another process freezes it at the same
	// time, the guard repeats the thaw for a second, no longer.
	verifyTries = 10
	verifyPause = 100 * time.Millisecond
)

// RunGuard is the guard's life; args are those after GuardCommand. It returns the other
// arguments it was given, and whether it was left alone with the cgroup. In that case
// there may be something on record, whether it could thaw or not.
//
//  1. Protect itself from what could end it. All of that may fail.
//  2. Report it: only now may its starter freeze.
//  3. Wait for "done", which ends it; for the end of the socket, which is the end of its
//     starter; or for the limit.
//  4. Thaw, if its starter announced a freeze. Otherwise another process froze it
//     meanwhile.
func RunGuard(args []string) (alone bool, more []string, err error) {
	signal.Ignore() // all signals that can be ignored
	if len(args) < 2 || os.Getenv(guardEnv) == "" {
		return false, nil, errors.New("run guard: it is for homenode to start, not for people")
	}
	value, more := args[0], args[2:]
	limit, err := time.ParseDuration(args[1])
	if err != nil || Asked(value) {
		return false, nil, fmt.Errorf("run guard: %q, %v: want a value that thaws, and a limit", value, err)
	}
	_ = sys.SetNonblock(guardSocket, true)
	socket, control, own := os.NewFile(guardSocket, "socket"), os.NewFile(guardControl, "freezer"), os.NewFile(guardOwn, "freezer")
	hide() // (1)
	if err := socket.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return false, nil, fmt.Errorf("run guard: %w", err)
	}
	if _, err := socket.Write([]byte(saysReady)); err != nil { // (2)
		return false, nil, fmt.Errorf("run guard: %w", err)
	}
	freezing, done := listen(socket) // (3)
	if done {
		return false, more, nil
	}
	if freezing { // (4)
		err = thaw(control, own, value)
	}
	_ = socket.Close() // a starter that still runs notices
	return true, more, err
}

// listen ends with "done", or with the socket, or at its deadline. What was received
// until then counts, and from then on the starter cannot announce a freeze.
func listen(socket *os.File) (freezing, done bool) {
	buf := make([]byte, 16)
	for {
		n, err := socket.Read(buf)
		switch said := string(buf[:n]); {
		case said == saysDone:
			return freezing, true
		case said == saysFreezing:
			freezing = true
		case errors.Is(err, os.ErrDeadlineExceeded):
			if shutdown(socket, sys.SHUT_RD) != nil || socket.SetReadDeadline(time.Time{}) != nil {
				return freezing, false
			}
		default: // an error counts as the end
			return freezing, false
		}
	}
}

// hide does what is permitted.
func hide() {
	// The name of the process is the name of its first thread; prctl would name the
	// thread that this happens to run on.
	_ = os.WriteFile("/proc/self/comm", []byte(GuardName), 0)
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("-1000"), 0)
	root := unix.NewLive().Root()
	leave(root)
	keepProgram(root)
}

// keepProgram keeps the program itself in memory, 13 MB that its starter has mapped too:
// its file may be on a file system that a frozen process serves. All of memory (mlockall)
// would be 40 MB more that the runtime has mapped and not touched.
func keepProgram(root unix.Root) {
	var buf unix.Buffer
	areas, _ := unix.Parsed(&buf, root.Path("/proc/self/maps"), procfs.ParseAreas)
	for _, a := range areas {
		if strings.HasPrefix(a.Path, "/") {
			_, _, _ = sys.Syscall(sys.SYS_MLOCK, uintptr(a.Start), uintptr(a.End-a.Start), 0)
		}
	}
}

// thaw writes until the kernel accepts it, or the cgroup is gone: no other process will.
func thaw(control, own *os.File, value string) error {
	for pause := time.Millisecond; ; pause = min(2*pause, time.Second) {
		_, err := control.WriteAt([]byte(value+"\n"), 0)
		if err == nil {
			return verify(control, own, value)
		}
		if unix.Classify(err) == unix.ErrGone {
			return nil
		}
		time.Sleep(pause)
	}
}

// verify reads back what is requested for this cgroup itself, and writes again. On v1 a
// cgroup whose parent is frozen reads FROZEN in freezer.state whatever is requested for
// it. That is not ours to thaw, so verify reads another file where there is one.
func verify(control, own *os.File, value string) error {
	buf := make([]byte, 32)
	for try := 1; ; try++ {
		n, err := own.ReadAt(buf, 0)
		switch {
		case unix.Classify(err) == unix.ErrGone:
			return nil
		case err != nil && err != io.EOF:
			err = fmt.Errorf("thaw: whether it is, is unknown: %w", err)
		case !Asked(strings.TrimSpace(string(buf[:n]))):
			return nil
		default:
			err = fmt.Errorf("thaw: it reads %q", buf[:n])
		}
		if try == verifyTries {
			return err
		}
		time.Sleep(verifyPause)
		_, _ = control.WriteAt([]byte(value+"\n"), 0)
	}
}
