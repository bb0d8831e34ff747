// SPDX-License-Identifier: Apache-2.0

package unix

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrNoAnswer: a file of a process was not read in time.
var ErrNoAnswer = errors.New("no answer")

// MostHung is the number of readings that may hang at a time, each with a thread of its
// own. At that number no process is read any more until one of them has answered.
const MostHung = 8

// Patience is for files of a process that need its mmap_lock in the kernel (numa_maps,
// maps, smaps, pagemap, cmdline). They may be blocked for as long as the process's owner
// likes: a thread that faults on a file whose FUSE server is silent holds the lock for
// reading, a thread that wants to map something queues behind it, and all other readers
// queue behind that one.
type Patience struct {
	mu   sync.Mutex
	hung map[int]<-chan struct{}
}

// Try reads in the background, and gives up after limit with ErrNoAnswer. The reading then
// continues, and its process is not read again before it has ended. So read must not write
// what the caller uses after an error. The path is for the message.
func (p *Patience) Try(pid int, path string, limit time.Duration, read func()) error {
	if n, free := p.settle(pid); !free {
		return fmt.Errorf("read %s: %w: %d processes do not answer, this one or others", path, ErrNoAnswer, n)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		read()
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-done:
		return nil
	case <-timer.C:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hung == nil {
		p.hung = map[int]<-chan struct{}{}
	}
	p.hung[pid] = done
	return fmt.Errorf("read %s: %w in %v", path, ErrNoAnswer, limit)
}

// settle forgets readings that have ended meanwhile. It returns how many have not, and
// whether this process may be read.
func (p *Patience) settle(pid int) (hung int, free bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for pid, done := range p.hung {
		select {
		case <-done:
			delete(p.hung, pid)
		default:
		}
	}
	return len(p.hung), p.hung[pid] == nil && len(p.hung) < MostHung
}
