// SPDX-License-Identifier: Apache-2.0

package unix

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// handedEnv names the descriptor that has what the program before handed over.
const handedEnv = "HOMENODE_HANDED"

// maxHanded bounds what a program reads from the one before it. A thousand workloads take
// some 2 MB.
const maxHanded = 256 << 20

// Reexec replaces this process's program with the one at path, with the arguments and the
// environment that it was started with, and hands over data. It returns only if that failed:
// then nothing has changed.
//
//  1. The data is in memory that only this process has. If the process ends at any point,
//     the data is gone with it, and no later process can take it for its own.
//  2. execve(2) ends all other threads first, and waits for each. One that waits for the memory
//     map of a process (Patience) does not end before that process lets it, which may be never.
//     With such a thread Reexec refuses: ErrNoAnswer.
//  3. A SIGHUP or SIGUSR2 that arrives before the new program listens must not end the
//     process: both are ignored until then. An ignored signal stays so across execve(2).
func Reexec(path string, data []byte) error {
	if err := allReturn(endCall); err != nil { // 2
		return fmt.Errorf("hand over to %s: %w", path, err)
	}
	fd, err := unix.MemfdCreate("homenode-handover", 0) // (1) not closed by execve
	if err != nil {
		return fmt.Errorf("hand over: make memory: %w", err)
	}
	f := os.NewFile(uintptr(fd), "handover")
	defer f.Close()
	if _, err := f.Write(data); err != nil {
		return fmt.Errorf("hand over: %w", err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("hand over: %w", err)
	}
	env := append(withoutHanded(os.Environ()), handedEnv+"="+strconv.Itoa(fd))
	signal.Ignore(syscall.SIGHUP, syscall.SIGUSR2) // 3
	return fmt.Errorf("hand over to %s: %w", path, unix.Exec(path, os.Args, env))
}

// endCall is how long Reexec waits for calls under way. Those that nothing holds up return in
// less; longer delays the refusal, and with it the next round.
const endCall = 2 * time.Second

// allReturn waits until no call of a Patience is under way.
func allReturn(limit time.Duration) error {
	for end := time.Now().Add(limit); ; time.Sleep(10 * time.Millisecond) {
		n := underWay.Load()
		if n == 0 {
			return nil
		}
		if !time.Now().Before(end) {
			return fmt.Errorf("%w: processes whose memory maps are locked hold up %d calls of this one, which cannot be replaced before they return: try again later, or end those processes", ErrNoAnswer, n)
		}
	}
}

func withoutHanded(env []string) (kept []string) {
	for _, e := range env {
		if !strings.HasPrefix(e, handedEnv+"=") {
			kept = append(kept, e)
		}
	}
	return kept
}

// Handed returns what the program before handed over; nil if there was none. It can be asked
// once, before other programs are started.
func Handed() ([]byte, error) {
	text := os.Getenv(handedEnv)
	if text == "" {
		return nil, nil
	}
	os.Unsetenv(handedEnv)
	fd, err := strconv.ParseUint(text, 10, 31)
	if err != nil || fd < 3 {
		return nil, fmt.Errorf("take over: %s is %q: want a descriptor", handedEnv, text)
	}
	f := os.NewFile(uintptr(fd), "handover")
	if f == nil {
		return nil, fmt.Errorf("take over: descriptor %d: %w", fd, os.ErrInvalid)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxHanded+1))
	if err == nil && len(data) > maxHanded {
		err = errors.New("too large")
	}
	if err != nil {
		return nil, fmt.Errorf("take over: %w", err)
	}
	return data, nil
}
