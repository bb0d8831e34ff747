// SPDX-License-Identifier: Apache-2.0

package unix

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// ErrNoAnswer: a call about a process did not return in time.
var ErrNoAnswer = errors.New("no answer")

// MostHung is the number of calls that may hang at a time, each with a thread of its own.
// At that number no process is asked any more until one of them has answered.
const MostHung = 8

// Patience is for what needs the mmap_lock of a process in the kernel: reading its
// numa_maps, maps, smaps, pagemap, cmdline, and move_pages. That may be blocked for as long
// as the process's owner likes: a thread that faults on a file whose FUSE server is silent
// holds the lock for reading, a thread that wants to map something queues behind it, and
// all other readers queue behind that one.
type Patience struct {
	mu   sync.Mutex
	hung []hung
}

// hung is a call that has not returned in time.
type hung struct {
	pids []int
	done <-chan struct{}
}

// underWay is the number of calls, of every Patience of this process, that have not returned.
var underWay atomic.Int64

// Try reads in the background, and gives up after limit with ErrNoAnswer. The reading then
// continues, and its process is not read again before it has ended. So read must not write
// what the caller uses after an error. The path is for the message.
func (p *Patience) Try(pid int, path string, limit time.Duration, read func()) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	left, err := p.Do([]int{pid}, timer.C, read)
	if left {
		return fmt.Errorf("read %s: %w in %v", path, ErrNoAnswer, limit)
	} else if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

// Do is Try for any call, about several processes, until over receives. The call is left
// if it was begun and continues.
func (p *Patience) Do(pids []int, over <-chan time.Time, call func()) (left bool, err error) {
	if n, free := p.settle(pids); !free {
		return false, fmt.Errorf("%w: %d processes do not answer, this one or others", ErrNoAnswer, n)
	}
	done := make(chan struct{})
	underWay.Add(1)
	go func() {
		defer close(done)
		defer underWay.Add(-1)
		call()
	}()
	select {
	case <-done:
		return false, nil
	case <-over:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hung = append(p.hung, hung{slices.Clone(pids), done})
	return true, ErrNoAnswer
}

// settle forgets calls that have ended meanwhile. It returns how many have not, and whether
// these processes may be asked.
func (p *Patience) settle(pids []int) (n int, free bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	free = true
	p.hung = slices.DeleteFunc(p.hung, func(h hung) bool {
		select {
		case <-h.done:
			return true
		default:
		}
		free = free && !slices.ContainsFunc(pids, func(pid int) bool { return slices.Contains(h.pids, pid) })
		return false
	})
	return len(p.hung), free && len(p.hung) < MostHung
}
