// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"fmt"
	"sync/atomic"
	"time"

	"homenode/internal/journal"
	"homenode/internal/kernel/unix"
)

// lane has one write to a cpuset at a time, and leaves one that does not return: a process
// can lock its memory map after it has answered (owner.Maps).
//
//  1. A write that has not returned after limit is left. It may land at any time, so the
//     journal keeps it as ours (ErrUnsure).
//  2. Until it has returned no other is begun. It would wait for the same lock in the kernel;
//     and a write that lands late must not undo what was written after it.
//  3. Until then its setting cannot be read either: what it has now may be the value from
//     before, which would end its record, and then the write lands.
type lane struct {
	limit time.Duration // writeLimit
	waits unix.Patience
	last  atomic.Pointer[lateWrite]
}

// lateWrite is a write that was left.
type lateWrite struct {
	setting journal.Setting
	done    chan struct{}
}

// theLane is this process's: the kernel's lock is one for the host.
var theLane = lane{limit: writeLimit}

// writeLimit is how long a write may hold up a round. A write that moves pages takes 0.65 s
// for a GB; it is left, too, and found done in a later window. Shorter: other writes are
// refused meanwhile. Longer: an end takes longer.
const writeLimit = 10 * time.Second

// anyCpuset is the lane's one name in its Patience, whose names are processes.
const anyCpuset = 0

func (l *lane) write(s journal.Setting, write func() error) error {
	over := time.NewTimer(l.limit)
	defer over.Stop()
	var err error
	this := &lateWrite{setting: s, done: make(chan struct{})}
	left, late := l.waits.Do([]int{anyCpuset}, over.C, func() {
		defer close(this.done)
		err = write()
	})
	switch {
	case late == nil:
		return err
	case left: // 1
		l.last.Store(this)
		return fmt.Errorf("set %s: %w in %v: a process in it has locked its memory map, or another write to a cpuset hangs (%w)", s, late, l.limit, journal.ErrUnsure)
	}
	return l.wait("set", s) // 2
}

// pending is an error while a write of this setting may land (3).
func (l *lane) pending(s journal.Setting) error {
	if late := l.late(); late == nil || late.setting != s {
		return nil
	}
	return fmt.Errorf("%w (%w)", l.wait("read", s), journal.ErrUnsure)
}

func (l *lane) wait(verb string, s journal.Setting) error {
	what := "an earlier write"
	if late := l.late(); late != nil {
		what = "the write of " + late.setting.String()
	}
	return fmt.Errorf("%s %s: %w: %s has not returned: tried again later", verb, s, unix.ErrNoAnswer, what)
}

// late is the write that has not returned; nil: none.
func (l *lane) late() *lateWrite {
	last := l.last.Load()
	if last == nil {
		return nil
	}
	select {
	case <-last.done:
		return nil
	default:
		return last
	}
}
