// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
)

// Files of a process that need its mmap_lock in the kernel (numa_maps, maps, smaps,
// pagemap, cmdline) may be blocked for as long as the process's owner likes. A thread
// that faults on a file whose FUSE server is silent holds the lock for reading; a
// thread that wants to map something queues behind it; and all other readers queue
// behind that one. Within a round only numa_maps is such a file.

// errNoAnswer: a file of a process was not read in time.
var errNoAnswer = errors.New("no answer")

// mostHung is the number of readings that may hang at a time, each with a thread of its
// own. At that number no process is read any more until one of them has answered.
const mostHung = 8

// patient reads numa_maps in the background of the loop.
type patient struct {
	buf  *unix.Buffer // of the reading that runs now; nil: none is free
	hung map[int]<-chan struct{}
	cpu  time.Duration // used by such readings, for the loop's CPU time
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
// limit. The reading then continues in the background, and its process is not read
// again before it has ended.
func (p *patient) numaMaps(pid int, path string, b *unix.Budget, limit time.Duration, visit func(procfs.VMA)) error {
	if p.settle(); p.hung[pid] != nil || len(p.hung) >= mostHung {
		return fmt.Errorf("read %s: %w: %d processes do not answer, this one or others", path, errNoAnswer, len(p.hung))
	}
	if p.buf == nil {
		p.buf = &unix.Buffer{}
	}
	g, buf, done := &mapsReading{visit: visit}, p.buf, make(chan struct{})
	go func() {
		defer close(done)
		g.read(path, buf, b)
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-done:
		p.cpu += g.cpu
		return g.err
	case <-timer.C:
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.over, p.buf = true, nil
	if p.hung == nil {
		p.hung = map[int]<-chan struct{}{}
	}
	p.hung[pid] = done
	return fmt.Errorf("read %s: %w in %v", path, errNoAnswer, limit)
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
			return errNoAnswer
		}
		return nil
	})
	g.cpu = unix.ThreadCPU() - began
}

// settle removes readings that have ended meanwhile.
func (p *patient) settle() {
	for pid, done := range p.hung {
		select {
		case <-done:
			delete(p.hung, pid)
		default:
		}
	}
}
