// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"errors"
	"slices"

	"homenode/internal/kernel/unix"
	"homenode/internal/migration"
)

// source is where pages to be moved are found, bit by bit.
type source interface {
	pid() int // whose addresses they are; 0: our own
	// scan looks for about so many pages. It may find none and yet have more.
	scan(want int) (found, error)
	pages() int // small ones that it may come to
	close()
}

// found is what a scan came to.
type found struct {
	pages []page
	left  tally // that are elsewhere and left there on purpose
	more  bool
}

// process finds the pages of a process:
//
//  1. Ask pagemap which pages are present: of a mapping of 1 TB with holes that takes
//     a second or two, where move_pages would take minutes.
//  2. Ask move_pages on which nodes those are.
//  3. 2 MiB whose 512 pages are all elsewhere, on one node, may be a huge page: it is
//     passed by its first page only (passing all is 20 times slower).
type process struct {
	r       *run
	id      int
	p       *pass
	present *pagemap // nil: it cannot be read; all pages are asked for
	frames  *frames  // nil: it cannot be read
	span    uint64   // pages read at once
	entries []entry
	here    []candidate
	addrs   []uintptr
	where   []int32
}

// candidate is a page that is present, or may be.
type candidate struct {
	addr  uint64
	entry entry // 0: unknown
	area  *area
}

const (
	chunk     = hugePage
	leastSpan = 512       // pages: one chunk
	mostSpan  = 1 << 18   // pages: 1 GiB, 2 MiB of pagemap
	looks     = 64        // reads of pagemap in one scan: so often a cancel is seen
	sparse    = 4 << 30   // bytes: in larger mappings the search ends when all is found
	chunkMask = chunk - 1 // of an address
)

func (r *run) newProcess(pid int) (*process, error) {
	p, err := r.passOf(pid)
	if err != nil {
		return nil, err
	}
	s := &process{r: r, id: pid, p: p, span: leastSpan, frames: r.frames}
	if len(p.areas) == p.at {
		return s, nil
	}
	s.present, err = openPagemap(r.m.root, pid)
	if errors.Is(err, unix.ErrGone) && r.m.alive(pid) {
		err = nil // a kernel without pagemap
	}
	if errors.Is(err, unix.ErrGone) {
		return nil, err
	}
	return s, nil
}

func (s *process) pid() int   { return s.id }
func (s *process) pages() int { return int(s.p.pages()) }

func (s *process) close() {
	if s.present != nil {
		s.present.close()
	}
}

func (s *process) scan(want int) (found, error) {
	s.here = s.here[:0]
	for range looks {
		if s.p.at == len(s.p.areas) || len(s.here) >= want {
			break
		}
		if err := s.look(want); err != nil {
			return found{}, err
		}
	}
	f, err := s.sort()
	f.more = s.p.at < len(s.p.areas)
	return f, err
}

// look adds what the next span of the present area has.
func (s *process) look(want int) error {
	a := s.p.areas[s.p.at]
	end := a.end
	if a.elsewhere > 0 && a.end-a.start > sparse && a.found >= a.elsewhere {
		a.next = a.end
	}
	if limit := a.next&^chunkMask + s.span*s.small(); limit < end {
		end = max(limit, a.next+a.size)
	}
	if a.next < a.end {
		if err := s.read(a, end, want); err != nil {
			return err
		}
	}
	if a.next >= a.end {
		s.p.at++
	}
	return nil
}

func (s *process) small() uint64 {
	if s.present != nil {
		return s.present.page
	}
	return smallPage
}

// read adds the candidates up to end, in whole chunks, until there are enough.
func (s *process) read(a *area, end uint64, want int) error {
	from, known := a.next, s.present != nil
	if known {
		s.entries = slices.Grow(s.entries[:0], int((end-from)/s.small()))[:(end-from)/s.small()]
		n, err := s.present.read(from, s.entries)
		if err != nil && errors.Is(err, unix.ErrGone) {
			return err
		}
		if err != nil { // it may not be read after all
			s.present, known = nil, false
			end = min(end, from+leastSpan*a.size)
		}
		s.entries = s.entries[:n]
	}
	before := len(s.here)
	for a.next < end && (len(s.here) == before || len(s.here) < want) {
		to := max(min(end, a.next&^chunkMask+chunk), a.next+a.size)
		for ; a.next < to; a.next += a.size {
			s.candidate(a, from, known)
		}
	}
	s.span = min(s.span*4, mostSpan)
	if len(s.here) > before || !known {
		s.span = leastSpan
	}
	return nil
}

func (s *process) candidate(a *area, from uint64, known bool) {
	if !known {
		s.here = append(s.here, candidate{addr: a.next, area: a})
		return
	}
	i := (a.next - from) / s.small()
	if i < uint64(len(s.entries)) && s.entries[i].present() {
		s.here = append(s.here, candidate{a.next, s.entries[i], a})
	}
}

// sort asks where the candidates are and makes pages of those that are elsewhere.
func (s *process) sort() (f found, err error) {
	if len(s.here) == 0 {
		return f, nil
	}
	if slices.ContainsFunc(s.here, func(c candidate) bool { return !c.entry.exclusive() }) {
		s.r.settled(s.id) // another process's pages, that it may have too, are on their way
	}
	if err := s.ask(); err != nil {
		return f, err
	}
	for i := 0; i < len(s.here); {
		if n := s.run512(i); n > 0 {
			if p, huge := s.huge(i); huge {
				f.pages = s.keep(f.pages, &f.left, s.here[i], p, n)
				i += n
				continue
			}
			for ; n > 0; i, n = i+1, n-1 {
				f.pages = s.one(f.pages, &f.left, i)
			}
			continue
		}
		f.pages = s.one(f.pages, &f.left, i)
		i++
	}
	return f, nil
}

func (s *process) ask() error {
	s.addrs = s.addrs[:0]
	for _, c := range s.here {
		s.addrs = append(s.addrs, uintptr(c.addr))
	}
	s.where = slices.Grow(s.where[:0], len(s.addrs))[:len(s.addrs)]
	return s.r.m.ask(s.id, s.addrs, s.where)
}

// one adds candidate i when it is elsewhere.
func (s *process) one(pages []page, left *tally, i int) []page {
	c := s.here[i]
	if s.where[i] < 0 || !s.r.elsewhere(int(s.where[i])) {
		return pages
	}
	return s.keep(pages, left, c, page{addr: c.addr, size: c.area.size, kind: c.kind(), area: c.area}, 1)
}

// keep adds a page, unless it is to be left.
func (s *process) keep(pages []page, left *tally, c candidate, p page, n int) []page {
	c.area.found += uint64(n)
	if hot := s.r.req.Hot; hot != nil && !hot.Hot(s.id, p.addr) {
		return pages
	}
	if !c.entry.exclusive() {
		p.shared, _ = c.entry.pfn()
	}
	key, known := p.key()
	switch {
	case known && s.r.stays(key):
	case known && c.area.foreign && key.fileID != frameKey:
		if !s.r.left[key] {
			s.r.left[key] = true
			left.fail(p, LeftForeign)
		}
	default:
		pages = append(pages, p)
	}
	return pages
}

// kind is what the mapping says, and of a file's what pagemap says of the page.
func (c candidate) kind() migration.Kind {
	k := c.area.kind
	if k != migration.File && k != migration.Shmem {
		return k
	}
	if c.entry != 0 && !c.entry.file() || c.entry == 0 && c.area.mostlyAnon {
		return migration.Anon
	}
	return k
}

// run512 is 512 when candidate i begins a chunk all of whose small pages are here,
// elsewhere, and on one node; else 0.
func (s *process) run512(i int) int {
	c := s.here[i]
	if c.addr&chunkMask != 0 || c.area.size >= hugePage || s.where[i] < 0 || !s.r.elsewhere(int(s.where[i])) {
		return 0
	}
	n := int(hugePage / c.area.size)
	if i+n > len(s.here) || s.here[i+n-1].addr != c.addr+hugePage-c.area.size || s.here[i+n-1].area != c.area {
		return 0
	}
	for _, node := range s.where[i : i+n] {
		if node != s.where[i] {
			return 0
		}
	}
	return n
}

// huge says whether a chunk that run512 found is a huge page: by its frame, or where
// frames are hidden by guess, which only memory without a file is worth.
func (s *process) huge(i int) (page, bool) {
	c := s.here[i]
	p := page{addr: c.addr, size: hugePage, kind: c.kind(), area: c.area}
	sure := false
	if pfn, known := c.entry.pfn(); known && s.frames != nil {
		head, err := s.frames.thpHead(pfn)
		if sure = err == nil; sure && !head {
			return page{}, false
		}
	}
	if p.looks = !sure; p.looks && p.kind == migration.File {
		return page{}, false
	}
	if p.kind == migration.Anon {
		p.kind = migration.THP
	}
	return p, true
}
