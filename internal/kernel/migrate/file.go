// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"homenode/internal/migration"
)

// finder finds and opens the files that processes have.
type finder interface {
	// find lists the files; outside asks also which other processes have them.
	find(ctx context.Context, pids []int, outside bool) ([]cachedFile, []string, error)
	// open goes through a file from about an offset on. It does not touch or show pages
	// that skip rejects; nil: it shows all.
	open(f cachedFile, from uint64, skip func(offset uint64) bool) (cachedView, error)
}

// cachedFile is a file whose pages are, or may be, in memory.
type cachedFile struct {
	ids      []fileID // the first is its own, the others may be those that maps shows
	name     string
	size     int64
	kind     migration.Kind // File, Shmem, Hugetlb
	pageSize uint64
	outside  bool // other processes have it too
	handle   any  // the finder's own
}

// cachedView maps a file's cached pages here, a window at a time.
type cachedView interface {
	// next maps the next window; io.EOF at the end. What it returns is valid until the
	// next call. cut: the file was truncated meanwhile.
	next(ctx context.Context) (window, error)
	// position is the offset behind what was returned, or was searched without a result.
	position() uint64
	close() error
}

type window struct {
	addrs   []uintptr
	offsets []uint64 // of each in the file; ascending, like addrs
	cut     bool
}

// file finds the pages of a file that are in memory, mapped or not. The processes'
// mappings were moved before: a page that is still elsewhere is mapped by none, or stayed
// and is counted.
type file struct {
	r     *run
	f     cachedFile
	v     cachedView // nil: the time is up
	where []int32
	cut   bool
}

func (s *file) pid() int { return 0 }

func (s *file) close() {
	if s.v != nil {
		_ = s.v.close()
	}
}

func (s *file) scan(int) (found, error) {
	if s.v == nil {
		return found{}, nil
	}
	if !s.r.settled(noProcess) { // the previous window is still being moved, or the run is over
		return found{more: true}, nil
	}
	s.r.j.offset = s.v.position() // everything before is done
	ctx, cancel := s.r.patience()
	defer cancel()
	w, err := s.v.next(ctx)
	if w.cut && !s.cut {
		s.cut = true
		s.r.note("cut", "file %s was cut short while it was moved", s.f.name)
	}
	switch {
	case errors.Is(err, io.EOF):
		s.r.j.finished(s.f)
		return found{}, nil
	case err != nil && s.r.ctx.Err() != nil:
		s.r.j.offset = s.v.position()
		return found{more: true}, nil
	case err != nil:
		s.r.note(sortOf("look", err), "move the page cache of %s: %v", s.f.name, err)
		s.r.j.finished(s.f)
		return found{}, nil
	}
	s.where = slices.Grow(s.where[:0], len(w.addrs))[:len(w.addrs)]
	if err := s.r.m.ask(0, w.addrs, s.where); err != nil {
		return found{}, fmt.Errorf("file %s: %w", s.f.name, err)
	}
	return s.sort(w), nil
}

func (s *file) sort(w window) found {
	f := found{more: true}
	kind := s.f.kind
	if kind == migration.File {
		kind = migration.Cache
	}
	// A window is mapped in one piece.
	a := &area{start: uint64(w.addrs[0]), offset: w.offsets[0], size: s.f.pageSize, kind: kind, file: s.f.ids[0]}
	for i, addr := range w.addrs {
		if s.where[i] >= 0 && s.r.elsewhere(int(s.where[i])) {
			f.pages = append(f.pages, page{addr: uint64(addr), size: s.f.pageSize, kind: kind, area: a})
		}
	}
	return f
}

// counted reports that a page stays and was counted already; nil when there is none.
// Before the call, everything found earlier is settled.
func (r *run) counted(f cachedFile) func(offset uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	var sets []*pageSet
	for _, id := range f.ids {
		if in := r.j.stay[id]; in != nil {
			sets = append(sets, in)
		}
	}
	if len(sets) == 0 {
		return nil
	}
	return func(offset uint64) bool {
		return slices.ContainsFunc(sets, func(in *pageSet) bool { return in.has(offset / smallPage) })
	}
}
