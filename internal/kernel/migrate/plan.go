// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"errors"
	"fmt"
	"slices"

	"homenode/internal/kernel/unix"
	"homenode/internal/set"
)

// plan is what a run goes through: the processes, those that were forked meanwhile,
// then the files.
type plan struct {
	pids   []int
	at     int
	rounds int // of listing processes anew
	files  []cachedFile
	listed bool
	fileAt int
}

// mostRounds bounds a race with a program that forks faster than it is moved.
const mostRounds = 4

// look finds more pages, or the next source of them, without the lock meanwhile.
func (r *run) look() {
	src, want := r.source, max(leastAhead, min(scanAhead*r.want(class{size: smallPage}), mostPages))
	r.scanning = true
	r.mu.Unlock()
	var f found
	var err error
	fresh := src == nil
	if fresh {
		src, err = r.next()
		f.more = src != nil
	} else {
		f, err = src.scan(want)
	}
	r.mu.Lock()
	r.scanning = false
	r.looked(src, fresh, f, err)
	r.changed.Broadcast()
}

// looked takes over what was found.
func (r *run) looked(src source, fresh bool, f found, err error) {
	f.left.addTo(&r.res)
	for _, p := range f.pages {
		at := 0
		switch c := p.class(); {
		case c.pool:
			at = 2
		case c.size >= hugePage:
			at = 1
		}
		r.queue[at] = append(r.queue[at], p)
	}
	switch {
	case errors.Is(err, unix.ErrGone) && src != nil:
		r.ended(src.pid())
	case err != nil:
		r.fail(err)
	}
	r.source = src
	if src == nil {
		r.over = err == nil
		return
	}
	workers := max(1, r.req.Workers)
	if fresh {
		r.queuePID, r.share = src.pid(), max(leastShare, src.pages()/(2*workers))
	} else if src.pid() == 0 {
		r.share = max(leastShare, len(f.pages)/workers+1) // a window at a time
	}
	if err != nil || !f.more {
		src.close()
		r.source = nil
	}
}

// ended counts what was found of a process as gone with it.
func (r *run) ended(pid int) {
	if !r.gone[pid] && pid != 0 {
		r.gone[pid] = true
		r.problem("process %d ended while it was moved", pid)
	}
	if r.queuePID != pid {
		return
	}
	var t tally
	for i, q := range r.queue {
		for _, p := range q {
			t.lose(p)
		}
		r.queue[i] = nil
	}
	t.addTo(&r.res)
}

// next is the next source; nil at the end.
func (r *run) next() (source, error) {
	if r.req.LeaveForeign {
		if err := r.list(); err != nil {
			return nil, err
		}
	}
	for r.plan.at < len(r.plan.pids) || r.forked() {
		pid := r.plan.pids[r.plan.at]
		r.plan.at++
		s, err := r.newProcess(pid)
		if err == nil {
			return s, nil
		}
		if !errors.Is(err, unix.ErrGone) {
			return nil, err
		}
		r.mu.Lock()
		r.ended(pid)
		r.mu.Unlock()
	}
	if !r.req.Cache || r.req.Hot != nil {
		return nil, nil
	}
	return r.nextFile()
}

// forked lists the processes anew and says whether there are more.
func (r *run) forked() bool {
	if r.req.Again == nil || r.plan.rounds == mostRounds {
		return false
	}
	r.plan.rounds++
	pids, err := r.req.Again()
	if err != nil {
		r.note("list its processes anew: %v", err)
		return false
	}
	pids = slices.DeleteFunc(slices.Clone(pids), func(pid int) bool { return slices.Contains(r.plan.pids, pid) })
	switch len(pids) {
	case 0:
		return false
	case 1:
		r.note("process %d was forked meanwhile: moved too", pids[0])
	default:
		r.note("%d processes were forked meanwhile: moved too", len(pids))
	}
	r.plan.pids = append(r.plan.pids, pids...)
	return true
}

// note is problem for the worker that scans.
func (r *run) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.problem(format, args...)
}

// list finds the files that the processes have, once.
func (r *run) list() error {
	if r.plan.listed {
		return nil
	}
	r.plan.listed = true
	files, problems, err := r.m.finder.find(r.plan.pids, r.req.LeaveForeign)
	if err != nil {
		return err
	}
	for _, p := range problems {
		r.note("%s", p)
	}
	r.plan.files, r.foreign = files, map[fileID]bool{}
	for _, f := range files {
		for _, id := range f.ids {
			r.foreign[id] = f.outside && r.req.LeaveForeign
		}
	}
	return nil
}

func (r *run) nextFile() (source, error) {
	if err := r.list(); err != nil {
		return nil, err
	}
	for r.plan.fileAt < len(r.plan.files) {
		f := r.plan.files[r.plan.fileAt]
		r.plan.fileAt++
		v, err := r.m.finder.open(f, func(offset uint64) bool { return r.counted(f, offset) })
		if err == nil {
			return &file{r: r, f: f, v: v}, nil
		}
		r.note("%v", err)
	}
	return nil, nil
}

// unwind makes the passes go on with what was found and not done.
func (r *run) unwind() {
	for _, q := range r.queue {
		for _, p := range q {
			p.rewind()
		}
	}
	for _, b := range r.extra {
		for _, p := range b.pages {
			p.rewind()
		}
	}
}

// another is a node for pages that the ones tried had no room for.
func (r *run) another(b *batch, n int, tried set.NodeSet) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	node, most, ok := r.room.choose(b.class, n, tried)
	if ok && most >= n {
		b.node = node
	}
	return ok && most >= n
}

func noRoomSentence(node int, c class) string {
	return fmt.Sprintf("node %d has no room left for a %s", node, c.noun())
}
