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
	// find lists them; outside says whether it is to be found out who else has them.
	find(pids []int, outside bool) ([]cachedFile, []string, error)
	// open does not show pages that skip says are not wanted.
	open(f cachedFile, skip func(offset uint64) bool) (cachedView, error)
}

// cachedFile is a file whose pages are, or may be, in memory.
type cachedFile struct {
	ids      []fileID // the first is its own, the others may be what maps shows
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
	close() error
}

type window struct {
	addrs   []uintptr
	offsets []uint64 // of each in the file
	cut     bool
}

// file finds the pages of a file that are in memory, whoever maps them or not. The
// processes' mappings were moved before: what is elsewhere still is mapped by none, or
// stayed and is counted.
type file struct {
	r     *run
	f     cachedFile
	v     cachedView
	where []int32
	cut   bool
}

func (s *file) pid() int   { return 0 }
func (s *file) close()     { _ = s.v.close() }
func (s *file) pages() int { return int(s.f.size / smallPage) }

func (s *file) scan(int) (found, error) {
	if !s.r.settled(nobody) { // the window before is still being moved, or it is over
		return found{more: true}, nil
	}
	w, err := s.v.next(s.r.ctx)
	if w.cut && !s.cut {
		s.cut = true
		s.r.note("file %s was cut short while it was moved", s.f.name)
	}
	switch {
	case errors.Is(err, io.EOF):
		return found{}, nil
	case err != nil && s.r.ctx.Err() != nil:
		return found{more: true}, nil
	case err != nil:
		s.r.note("move the page cache of %s: %v", s.f.name, err)
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
	for i, addr := range w.addrs {
		if s.where[i] < 0 || !s.r.elsewhere(int(s.where[i])) {
			continue
		}
		p := page{addr: uint64(addr), size: s.f.pageSize, kind: kind}
		if s.r.foreign[s.f.ids[0]] {
			f.left.fail(p, LeftForeign)
		} else {
			f.pages = append(f.pages, p)
		}
	}
	return f
}

// counted says of a page that it stays and was counted where it is mapped.
func (r *run) counted(f cachedFile, offset uint64) bool {
	for _, id := range f.ids {
		key := pageKey{id, offset}
		if r.left[key] || r.stays(key) {
			return true
		}
	}
	return false
}

func (r *run) stays(key pageKey) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stay[key]
}

// remember keeps a page that stays from being tried and counted again where another
// process maps it, or as page cache.
func (r *run) remember(p page) {
	if key, ok := p.key(); ok && len(r.stay) < mostStay {
		r.stay[key] = true
	}
}

// mostStay bounds what that takes: 100 MB or so. Beyond it pages may be counted twice.
const mostStay = 1 << 20
