// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"runtime"
	"sync"
	"time"

	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
)

// patient reads numa_maps in the background of the loop. Within a round only numa_maps is
// a file that may not answer.
type patient struct {
	waits *unix.Patience // nil: nothing was read yet
	buf   *unix.Buffer   // of the reading that runs now; nil: none is free
	cpu   time.Duration  // used by such readings, for the loop's CPU time
}

// mapsReading is one file that is being read.
type mapsReading struct {
	mu    sync.Mutex
	over  bool // no round waits for it
	visit func(procfs.VMA)
	cpu   time.Duration
	err   error
}

// see is false when the mapping came too late.
func (g *mapsReading) see(v procfs.VMA) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.over {
		g.visit(v)
	}
	return !g.over
}

// numaMaps visits the mappings of a process, within the budget, or gives up after
// limit.
func (p *patient) numaMaps(pid int, path string, b *unix.Budget, limit time.Duration, visit func(procfs.VMA)) error {
	if p.waits == nil {
		p.waits = &unix.Patience{}
	}
	if p.buf == nil {
		p.buf = &unix.Buffer{}
	}
	g, buf := &mapsReading{visit: visit}, p.buf
	if err := p.waits.Try(pid, path, limit, func() { g.read(path, buf, b) }); err != nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.over, p.buf = true, nil
		return err
	}
	p.cpu += g.cpu
	return g.err
}

func (g *mapsReading) read(path string, buf *unix.Buffer, b *unix.Budget) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began := unix.ThreadCPU()
	var l procfs.NumaLine
	g.err = buf.Lines(path, "/proc/PID/numa_maps", b, func(n int, line []byte) error {
		if err := l.Parse(n, line); err != nil {
			return err
		}
		if !g.see(l.VMA()) {
			return unix.ErrNoAnswer
		}
		return nil
	})
	g.cpu = unix.ThreadCPU() - began
}
