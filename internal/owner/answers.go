// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"homenode/internal/kernel"
	"homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/unix"
)

// Maps asks whether the processes of a workload answer, before a cpuset's nodes are set.
// Inside that write the kernel rebinds the memory policy of each process (mpol_rebind_mm in
// mm/mempolicy.c). It waits there for the process's mmap_lock, which its owner can hold for
// ever (unix.Patience), and no signal ends that wait. Meanwhile the lock of all cpusets of
// the host is held (cpuset_write_resmask in kernel/cgroup/cpuset.c): no cgroup can be made
// and no cpuset written, by any process.
//
// What is asked is 8 bytes of the process's pagemap: that takes the same lock, waits so that
// a signal can end it, and walks one page. A process may lock its map a moment later.
type Maps struct {
	root   kernel.Root
	layout cgroup.Layout
	limit  time.Duration // AnswerOfMaps
	waits  *unix.Patience
}

// AnswerOfMaps is how long the processes of a workload may take to answer together, and
// eachMap how much longer for each. Longer holds up the round; shorter takes a busy process
// for one that hangs, which costs a retry in the next window.
const (
	AnswerOfMaps = time.Second
	eachMap      = time.Millisecond / 5
)

// NewMaps asks the processes of a tree.
func NewMaps(root kernel.Root, layout cgroup.Layout) *Maps {
	return &Maps{root: root, layout: layout, limit: AnswerOfMaps, waits: &unix.Patience{}}
}

// Answer is an error if a process of a workload, or below it, does not answer. One that is
// gone, or may not be asked, is no reason not to write.
func (m *Maps) Answer(ctx context.Context, workload string) error {
	var buf unix.Buffer
	pids, err := m.layout.PIDs(nil, workload, &buf)
	if err != nil || len(pids) == 0 {
		return nil //nolint:nilerr // without its processes nothing is known of them
	}
	over := time.NewTimer(m.limit + time.Duration(len(pids))*eachMap)
	defer over.Stop()
	var at atomic.Int64
	_, err = m.waits.Do(pids, over.C, func() {
		for _, pid := range pids {
			if at.Store(int64(pid)); ctx.Err() != nil {
				return
			}
			m.ask(pid)
		}
	})
	if errors.Is(err, unix.ErrNoAnswer) {
		which := ""
		if pid := at.Load(); pid != 0 {
			which = fmt.Sprintf(" of process %d", pid)
		}
		return fmt.Errorf("set the nodes of %s: the memory map%s is locked (%w): the kernel would wait for it, with all cpusets of the host locked; tried again later", workload, which, err)
	}
	return err
}

// ask returns once the process's mmap_lock was free.
func (m *Maps) ask(pid int) {
	f, err := os.Open(m.root.Path("/proc/" + strconv.Itoa(pid) + "/pagemap"))
	if err != nil {
		return
	}
	defer f.Close()
	var word [8]byte
	_, _ = f.Read(word[:])
}
