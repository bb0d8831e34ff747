// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"homenode/internal/kernel/pagecache"
	"homenode/internal/kernel/unix"
	"homenode/internal/migration"
)

// fileID matches a mapping with a file.
type fileID = pagecache.ID

// finder finds and opens the files that processes have. Tests have a fake one.
type finder interface {
	// find lists the files; outside asks also which other processes have them.
	find(ctx context.Context, pids []int, outside bool) ([]pagecache.File, []string, error)
	// open goes through a file from about an offset on. It does not touch or show pages
	// that skip rejects; nil: it shows all.
	open(f pagecache.File, from uint64, skip func(offset uint64) bool) (view, error)
}

// view is a pagecache.View.
type view interface {
	Next(ctx context.Context) (pagecache.Part, error)
	Position() uint64
	Close() error
}

// pageCache is kernel/pagecache as a finder.
type pageCache struct{ root unix.Root }

func (c pageCache) find(ctx context.Context, pids []int, outside bool) ([]pagecache.File, []string, error) {
	return pagecache.Find(c.root, pids, pagecache.Config{Outside: outside, Stop: ctx.Err})
}

func (c pageCache) open(f pagecache.File, from uint64, skip func(offset uint64) bool) (view, error) {
	v, err := pagecache.Open(f)
	if err != nil {
		return nil, err
	}
	v.Skip = skip
	v.GoTo(from)
	return v, nil
}

// file finds the pages of a file that are in memory, mapped or not. The processes'
// mappings were moved before: a page that is still elsewhere is mapped by none, or stayed
// and is counted.
type file struct {
	r     *run
	f     pagecache.File
	v     view // nil: the time is up
	where []int32
}

func (s *file) pid() int { return 0 }

func (s *file) close() {
	if s.v != nil {
		_ = s.v.Close()
	}
}

func (s *file) scan(int) (found, error) {
	if s.v == nil {
		return found{}, nil
	}
	if !s.r.settled(noProcess) { // the previous window is still being moved, or the run is over
		return found{more: true}, nil
	}
	s.r.j.offset = s.v.Position() // everything before is done
	ctx, cancel := s.r.patience()
	defer cancel()
	p, err := s.v.Next(ctx)
	switch {
	case errors.Is(err, pagecache.ErrCut):
		s.r.note("cut", "file %s was cut short while it was moved", s.f.Name)
		s.r.j.finished(s.f)
		return found{}, nil
	case errors.Is(err, io.EOF):
		s.r.j.finished(s.f)
		return found{}, nil
	case err != nil && s.r.ctx.Err() != nil:
		s.r.j.offset = s.v.Position()
		return found{more: true}, nil
	case err != nil:
		s.r.note(unix.SortOf("look", err), "move the page cache of %s: %v", s.f.Name, err)
		s.r.j.finished(s.f)
		return found{}, nil
	}
	s.where = slices.Grow(s.where[:0], len(p.Addrs))[:len(p.Addrs)]
	if err := s.r.m.ask(0, p.Addrs, s.where); err != nil {
		return found{}, fmt.Errorf("file %s: %w", s.f.Name, err)
	}
	return s.sort(p), nil
}

func (s *file) sort(p pagecache.Part) found {
	f := found{more: true}
	kind := s.f.Kind
	if kind == migration.File {
		kind = migration.Cache
	}
	// A part is mapped in one piece.
	a := &area{start: uint64(p.Addrs[0]), offset: p.Offsets[0], size: s.f.PageSize, kind: kind, file: s.f.ID}
	for i, addr := range p.Addrs {
		if s.where[i] >= 0 && s.r.elsewhere(int(s.where[i])) {
			f.pages = append(f.pages, page{addr: uint64(addr), size: s.f.PageSize, kind: kind, area: a})
		}
	}
	return f
}

// counted reports that a page stays and was counted already; nil when there is none.
// Before the call, everything found earlier is settled.
func (r *run) counted(f pagecache.File) func(offset uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	var sets []*pageSet
	for _, id := range f.IDs() {
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
