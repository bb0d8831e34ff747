// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"errors"
	"fmt"
	"io"
	"slices"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/pagecache"
	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
	"homenode/internal/migration"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// plan is the order of a run: the processes, those that were forked meanwhile, then the
// files.
type plan struct {
	pids   []int
	at     int
	rounds int // of listing processes again
	fileAt int
	files  bool // it has reached the files
}

// mostRounds bounds a race with a program that forks faster than its processes are moved.
const mostRounds = 4

// open opens the next lane, without the lock meanwhile.
func (r *run) open(w *worker) {
	pid := noProcess
	if r.plan.at < len(r.plan.pids) {
		pid = r.plan.pids[r.plan.at]
		r.plan.at++
	}
	if pid != noProcess && r.j.refused[pid] != nil {
		return
	}
	r.opening = true
	r.mu.Unlock()
	src, err := r.opened(pid)
	r.mu.Lock()
	r.opening = false
	switch {
	case err == nil && src != nil:
		w.lane = &lane{pid: src.pid(), source: src, pass: passIn(src)}
		r.lanes = append(r.lanes, w.lane)
	case err != nil && r.patient.Err() != nil: // goOn sets the reason
	case err == nil:
		r.over = pid == noProcess && r.plan.at == len(r.plan.pids)
	case pid != noProcess && errors.Is(err, unix.ErrGone):
		r.ended(pid)
		r.loseBefore(pid)
	case pid != noProcess && errors.Is(err, unix.ErrNotPermitted):
		r.refuse(pid, err)
		r.unseen(pid, err)
	default:
		r.fail(err)
	}
	r.changed.Broadcast()
}

// loseBefore counts what an earlier call had not yet reached of a process that ended.
func (r *run) loseBefore(pid int) {
	var t tally
	r.m.pass[pid].lose(&t)
	t.addTo(&r.res)
}

// passIn is the pass of a source; nil for files.
func passIn(s source) *pass {
	if p, ok := s.(*process); ok {
		return p.p
	}
	return nil
}

const noProcess = -1 // no process: what comes after them

// opened is a process, or what comes after them; nil when there is nothing, or new
// processes were found.
func (r *run) opened(pid int) (source, error) {
	if r.req.LeaveForeign {
		if err := r.list(); err != nil {
			return nil, err
		}
	}
	if pid != noProcess {
		s, err := r.newProcess(pid)
		if err != nil {
			return nil, err
		}
		return s, nil
	}
	if !r.plan.files && r.forked() || !r.req.Cache || r.req.Hot != nil {
		return nil, nil
	}
	r.plan.files = true
	if err := r.list(); err != nil {
		return nil, err
	}
	return r.nextFile()
}

// forked lists the processes again and reports whether there are more.
func (r *run) forked() bool {
	if r.req.Again == nil || r.plan.rounds == mostRounds {
		return false
	}
	r.plan.rounds++
	pids, err := r.req.Again()
	if err != nil {
		r.note("again", "list its processes again: %v", err)
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	pids = slices.DeleteFunc(slices.Clone(pids), func(pid int) bool { return slices.Contains(r.plan.pids, pid) })
	switch len(pids) {
	case 0:
		return false
	case 1:
		r.problem("forked", "process %d was forked meanwhile: moved too", pids[0])
	default:
		r.problem("forked", "%d processes were forked meanwhile: moved too", len(pids))
	}
	r.plan.pids = append(r.plan.pids, pids...)
	return true
}

// unseen counts the resident memory of a process whose mappings may not be read: its
// nodes and kinds are unknown.
func (r *run) unseen(pid int, err error) {
	var buf unix.Buffer
	pages, err2 := unix.Parsed(&buf, r.m.proc(pid, "statm"), procfs.ParseStatm)
	if err2 == nil && pages > 0 {
		r.res.Of(kindOfRefused).Fail(errnoOf(err), unit.Bytes(pages)*unit.Bytes(unix.PageSize()))
	}
}

// list finds the files that the processes have, unless that was done recently. Only a
// cancellation ends it: half a list is useless.
func (r *run) list() error {
	r.mu.Lock()
	pids := slices.Clone(r.plan.pids)
	r.mu.Unlock()
	j := r.j
	if j.fresh(pids, j.listedOf, r.m.moves) {
		return nil
	}
	files, problems, err := r.m.finder.find(r.patient, pids, r.req.LeaveForeign)
	if err != nil {
		return err
	}
	for _, p := range problems {
		r.note(p, "%s", p)
	}
	j.files, j.listed, j.listedOf, r.plan.fileAt = files, r.m.moves, pids, 0
	j.leave(files, r.req.LeaveForeign)
	return nil
}

// leave notes the files that are left to others; what was counted of them stays.
func (j *journey) leave(files []pagecache.File, foreign bool) {
	old := j.foreign
	j.foreign = map[fileID]*foreignFile{}
	for _, f := range files {
		if !f.Outside || !foreign {
			continue
		}
		known := old[f.ID]
		if known == nil {
			known = &foreignFile{seen: map[uint64][2]float64{}}
		}
		for _, id := range f.IDs() {
			j.foreign[id] = known
		}
	}
}

func (r *run) nextFile() (source, error) {
	for ; r.plan.fileAt < len(r.j.files); r.plan.fileAt++ {
		f := r.j.files[r.plan.fileAt]
		if r.j.done[f.ID] {
			continue
		}
		if left := r.j.foreign[f.ID]; left != nil {
			if !r.leaveFile(f, left) {
				return &file{r: r, f: f}, nil // after some of these goOn ends the run
			}
			r.j.finished(f)
			if r.ctx.Err() != nil {
				return &file{r: r, f: f}, nil
			}
			continue
		}
		v, err := r.m.finder.open(f, r.j.from(f), r.counted(f))
		if err == nil {
			return &file{r: r, f: f, v: v}, nil
		}
		r.note(unix.SortOf("open", err), "%v", err)
		r.j.finished(f)
	}
	return nil, nil
}

// leaveFile counts the cached pages of a file that is left, without touching them. The
// nodes of those that the processes do not map are unknown, and all count. It returns
// false when the time is over before.
func (r *run) leaveFile(f pagecache.File, left *foreignFile) bool {
	var cached unit.Bytes
	v, err := r.m.finder.open(f, r.j.from(f), func(uint64) bool {
		cached += unit.Bytes(f.PageSize)
		return true
	})
	if err != nil { // the mapped ones are counted
		return true
	}
	defer func() { _ = v.Close() }()
	ctx, cancel := r.patience()
	defer cancel()
	_, err = v.Next(ctx)
	mapped := min(cached, left.bytes)
	left.bytes -= mapped
	kind := f.Kind
	if kind == migration.File {
		kind = migration.Cache
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if cached > mapped {
		r.res.Of(kind).Fail(LeftForeign, cached-mapped)
	}
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, pagecache.ErrCut) && ctx.Err() != nil {
		r.j.offset = v.Position()
		return false
	}
	return true
}

// unwind makes the passes continue with what was found and not done.
func (r *run) unwind() {
	for _, l := range r.lanes {
		for _, p := range l.drain() {
			p.rewind()
		}
	}
	for _, b := range r.extra {
		for _, p := range b.pages {
			p.rewind()
		}
	}
}

// another is a node for pages that had no room on the nodes tried so far.
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

// errnoOf is the name of the errno in an error, for a failure's reason.
func errnoOf(err error) string {
	var errno sys.Errno
	if errors.As(err, &errno) {
		return name(-int32(errno))
	}
	return "EPERM"
}
