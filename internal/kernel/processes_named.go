// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"

	"homenode/internal/kernel/unix"
)

const (
	// mostNamed bounds the processes that one text selects.
	mostNamed = 10_000
	// mostCmdline is what is read of a command line.
	mostCmdline = 4 << 10
)

// ProcessesNamed are the processes whose command line has a text, by id; this process is
// not one of them, whose own command line has it. Threads of the kernel have none.
func ProcessesNamed(root Root, text string) ([]int, error) {
	entries, err := os.ReadDir(root.Path("/proc"))
	if err != nil {
		return nil, unix.Explain("read", "/proc", "", err)
	}
	var buf unix.Buffer
	var found []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() && root.Path("/") == "/" {
			continue
		}
		line, err := buf.Head(root.Path("/proc/"+e.Name()+"/cmdline"), mostCmdline)
		if err != nil || !bytes.Contains(bytes.ReplaceAll(line, []byte{0}, []byte{' '}), []byte(text)) {
			continue // it has ended, or is another one
		}
		if found = append(found, pid); len(found) > mostNamed {
			return nil, fmt.Errorf("more than %d processes have it in their command line (%w)", mostNamed, ErrMalformed)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no process has it in its command line (%w)", ErrGone)
	}
	slices.Sort(found)
	return found, nil
}
