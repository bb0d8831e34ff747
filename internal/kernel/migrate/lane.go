// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"errors"
	"slices"

	"homenode/internal/kernel/unix"
	"homenode/internal/migration"
)

// lane is a process, or the files, with the pages that were found there and wait to be
// moved. Workers that move pages of one process wait for each other in the kernel, so
// with several workers each has a lane of its own.
type lane struct {
	pid      int
	source   source // nil: all was found
	pass     *pass  // of a process
	queue    [queues][]page
	room     [queues][]page // of queue, to be used again
	scanning bool           // a worker scans, without the lock
	refused  error          // the process is to be left
}

// Queues by what a batch may have in common.
const (
	smallQueue = iota
	hugeQueue
	poolQueue
	fileQueue
	queues
)

func (c class) queue() int {
	switch {
	case c.pool:
		return poolQueue
	case c.file:
		return fileQueue
	case c.size >= hugePage:
		return hugeQueue
	}
	return smallQueue
}

func (l *lane) put(pages []page) {
	for len(pages) > 0 {
		c := pages[0].class()
		n := sameClass(pages, c, len(pages))
		l.addPages(c.queue(), pages[:n])
		pages = pages[n:]
	}
}

// addPages copies pages into a queue: the caller reuses its slice.
func (l *lane) addPages(i int, pages []page) {
	q := l.queue[i]
	if len(q)+len(pages) > cap(q) {
		waiting := len(q)
		if waiting+len(pages) > cap(l.room[i]) {
			l.room[i] = make([]page, 0, 2*(waiting+len(pages)))
		}
		q = l.room[i][:waiting]
		copy(q, l.queue[i])
	}
	l.queue[i] = append(q, pages...)
}

// sameClass is the number of leading pages, up to most, that share a class.
func sameClass(pages []page, c class, most int) int {
	most = min(most, len(pages))
	for i := range most {
		if pages[i].class() != c {
			return i
		}
	}
	return most
}

func (l *lane) empty() bool {
	return !slices.ContainsFunc(l.queue[:], func(q []page) bool { return len(q) > 0 })
}

func (l *lane) finished() bool { return l.source == nil && !l.scanning && l.empty() }

func (l *lane) end() {
	if l.source != nil {
		l.source.close()
		l.source = nil
	}
}

// drain empties the queues.
func (l *lane) drain() (all []page) {
	for i, q := range l.queue {
		all = append(all, q...)
		l.queue[i] = nil
	}
	return all
}

// pick is the next batch of a lane; its pages stay in their queue. For a process with
// more to come, only full batches are taken. For a file everything of a window is taken,
// before the next window replaces it.
func (r *run) pick(l *lane) (batch, bool) {
	for i, q := range l.queue {
		if len(q) == 0 {
			continue
		}
		c := q[0].class()
		want := r.want(c)
		n := sameClass(q, c, want)
		if n == want || n < len(q) || l.source == nil || l.pid == 0 {
			n = r.evenly(c, n)
			return batch{pid: l.pid, class: c, pages: q[:n], lane: l, from: i}, true
		}
	}
	return batch{}, false
}

// evenly is a batch of n pages or, at the end of a run without a bound, this worker's
// share of what is left, so that all workers end at about the same time. Three workers
// that take batches of 2 MiB need two turns for 8 MiB, as for 12.
func (r *run) evenly(c class, n int) int {
	more := func(l *lane) bool { return l.source != nil }
	if !r.j.several || r.j.bound > 0 || r.plan.at < len(r.plan.pids) || slices.ContainsFunc(r.lanes, more) {
		return n
	}
	left := uint64(0)
	for _, l := range r.lanes {
		for _, q := range l.queue {
			if len(q) > 0 {
				left += uint64(len(q)) * q[0].size
			}
		}
	}
	share := max(fewestShared*smallPage, left/uint64(r.req.Workers))
	return min(n, max(1, int(share/c.size)))
}

// todo is a worker's next task: move a batch, search a lane for pages, or open another
// lane.
type todo struct {
	batch batch
	look  *lane
	open  bool
}

// next is a worker's next task; false when there is none at present:
//
//  1. What came back is moved before anything else.
//  2. Each worker stays with its lane,
//  3. or opens one,
//  4. or helps other workers with theirs.
func (r *run) next(w *worker) (todo, bool) {
	r.lanes = slices.DeleteFunc(r.lanes, (*lane).finished)
	if len(r.extra) > 0 { // (1)
		b := r.extra[0]
		b.pages = b.pages[:min(len(b.pages), r.want(b.class))]
		return todo{batch: b}, true
	}
	if !slices.Contains(r.lanes, w.lane) {
		w.lane = nil
	}
	if w.lane != nil { // (2)
		if t, ok := r.of(w.lane); ok {
			return t, true
		}
	}
	if r.mayOpen() { // (3)
		return todo{open: true}, true
	}
	for _, l := range r.lanes { // (4)
		if t, ok := r.of(l); ok {
			return t, true
		}
	}
	return todo{}, false
}

// of is the task in a lane.
func (r *run) of(l *lane) (todo, bool) {
	if b, ok := r.pick(l); ok {
		return todo{batch: b}, true
	}
	if l.source != nil && !l.scanning {
		return todo{look: l}, true
	}
	return todo{}, false
}

// mayOpen reports that another lane may be opened. Files come after all processes: what
// is elsewhere then is mapped by none, or stayed. Processes that were forked meanwhile
// come after the files. Where frames are hidden, pages that several processes share
// cannot be identified: then it is one process after the other.
func (r *run) mayOpen() bool {
	most := max(1, r.req.Workers)
	if r.frames == nil {
		most = 1
	}
	idle := len(r.lanes) == 0 && r.flights() == 0 && len(r.extra) == 0
	return !r.over && !r.opening && (idle || r.plan.at < len(r.plan.pids) && len(r.lanes) < most)
}

// busy reports that other workers are at something that may bring more to do.
func (r *run) busy() bool {
	return r.opening || r.flights() > 0 || slices.ContainsFunc(r.lanes, func(l *lane) bool { return l.scanning })
}

// look searches a lane for more pages, meanwhile without the lock.
func (r *run) look(l *lane) {
	want := max(leastAhead, min(scanAhead*r.want(class{size: smallPage}), scanAhead*mostPages))
	r.waste()
	l.scanning = true
	r.mu.Unlock()
	f, err := l.source.scan(want)
	r.mu.Lock()
	l.scanning = false
	r.looked(l, f, err)
	r.changed.Broadcast()
}

// waste counts work after the deadline that moved nothing: it may not go on for ever.
func (r *run) waste() {
	if r.ctx.Err() != nil {
		r.late++
	}
}

// looked takes over what was found.
func (r *run) looked(l *lane, f found, err error) {
	f.left.addTo(&r.res)
	l.put(f.pages)
	if err != nil || !f.more {
		l.end()
	}
	switch {
	case errors.Is(err, unix.ErrGone) || r.gone[l.pid]:
		r.ended(l.pid)
	case l.pid != 0 && l.refused != nil:
		r.refuse(l.pid, l.refused)
	case l.pid != 0 && errors.Is(err, unix.ErrNotPermitted):
		r.refuse(l.pid, err)
	case err != nil:
		r.fail(err)
	}
}

// ended counts the private memory of a process as gone with it: what was found, and what
// numa_maps had and was not searched yet. What is shared, or of a file, outlives the
// process: other processes that have it still move it.
func (r *run) ended(pid int) {
	if pid == 0 {
		return
	}
	if !r.gone[pid] {
		r.gone[pid] = true
		r.problem("ended", "process %d ended while it was moved", pid)
	}
	var t tally
	for _, l := range r.lanes {
		if l.pid != pid {
			continue
		}
		pages := l.drain()
		r.release(pages)
		for _, p := range pages {
			if !p.outlives() {
				t.lose(p)
			}
		}
		if !l.scanning { // otherwise the scanning worker comes here again
			l.end()
			l.pass.lose(&t)
		}
	}
	t.addTo(&r.res)
}

// lose counts private memory that a pass has not reached, and ends the pass.
func (p *pass) lose(t *tally) {
	if p == nil || p.of.hot { // how much of it is hot is unknown
		return
	}
	for _, a := range p.areas {
		if a.file == (fileID{}) && a.elsewhere > a.taken {
			t.lose(page{kind: a.kind, size: (a.elsewhere - a.taken) * a.size})
		}
	}
	p.areas, p.at = nil, 0
}

// refuse leaves a process that may not be moved, and counts its pages: those that were
// found, and those that numa_maps has and that were not searched yet.
func (r *run) refuse(pid int, err error) {
	if r.j.refused[pid] == nil {
		r.j.refused[pid] = err
		r.problem(unix.SortOf("refused", err), "process %d was left: %v", pid, err)
	}
	why := errnoOf(err)
	for _, l := range r.lanes {
		if l.pid != pid {
			continue
		}
		l.refused = err
		pages := l.drain()
		r.release(pages)
		var t tally
		for _, p := range pages {
			t.fail(p, why)
			r.remember(p)
		}
		t.addTo(&r.res)
		if !l.scanning { // otherwise the scanning worker comes here again
			l.end()
			r.leaveRest(l.pass, why)
		}
	}
}

// leaveRest counts what a pass would still reach, and ends the pass.
func (r *run) leaveRest(p *pass, why string) {
	if p == nil {
		return
	}
	for _, a := range p.areas[min(p.at, len(p.areas)):] {
		if a.elsewhere > a.found && !a.foreign {
			var t tally
			t.fail(page{kind: a.kind, size: (a.elsewhere - a.found) * a.size}, why)
			t.addTo(&r.res)
		}
	}
	p.at = len(p.areas)
}

// refusedAll is the reason when no process could be moved.
func (r *run) refusedAll() error {
	var first error
	for _, pid := range r.plan.pids {
		err := r.j.refused[pid]
		if err == nil && !r.gone[pid] {
			return nil
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// kindOfRefused is the kind under which memory of unknown kind is counted.
const kindOfRefused = migration.Anon
