// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"errors"
	"slices"

	"homenode/internal/kernel/unix"
	"homenode/internal/migration"
)

// source is where pages to be moved are found, part by part.
type source interface {
	pid() int // the process of the addresses; 0: our own
	// scan searches for about so many pages. It may find none and yet have more.
	scan(want int) (found, error)
	close()
}

// found is the result of a scan.
type found struct {
	pages []page
	left  tally // pages elsewhere that are left there on purpose
	more  bool
}

// process finds the pages of a process:
//
//  1. Ask pagemap which pages are present: for a mapping of 1 TB with holes that takes a
//     second or two, where move_pages would take minutes.
//  2. Where pagemap shows the frame of a page with a single mapping, the frame gives the
//     node: the node of a frame does not change.
//  3. Ask move_pages for the nodes of the other pages.
//  4. 2 MiB whose 512 pages are all elsewhere, on one node, may be a huge page: only its
//     first page is passed (passing all is 20 times slower).
type process struct {
	r       *run
	id      int
	p       *pass
	present *pagemap    // nil: unreadable; all pages are asked for
	frames  *frames     // nil: unreadable
	nodes   *frameNodes // nil: unknown, or wrong
	checked bool        // nodes are right
	span    uint64      // pages read at once
	entries []entry
	here    []candidate // to be asked for (3)
	addrs   []uintptr
	where   []int32
	found   found // the next scan reuses its pages
}

// candidate is a page that is present, or may be.
type candidate struct {
	addr    uint64
	entry   entry // 0: unknown
	area    *area
	claimed bool
}

const (
	chunk     = hugePage
	perChunk  = chunk / smallPage
	leastSpan = 8 * perChunk // pages
	mostSpan  = 1 << 16      // pages: 256 MiB
	looks     = 64           // reads of pagemap in one scan: a cancellation is seen this often
	sparse    = 4 << 30      // bytes: in larger mappings the search ends when all pages are found
	chunkMask = chunk - 1    // of an address
)

func (r *run) newProcess(pid int) (*process, error) {
	p, err := r.passOf(pid)
	if err != nil {
		return nil, err
	}
	s := &process{r: r, id: pid, p: p, span: leastSpan, frames: r.frames, nodes: r.m.nodes}
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

func (s *process) pid() int { return s.id }

func (s *process) close() {
	if s.present != nil {
		s.present.close()
	}
}

func (s *process) scan(want int) (found, error) {
	s.here, s.found = s.here[:0], found{pages: s.found.pages[:0]}
	for range looks {
		if s.p.at == len(s.p.areas) || s.enough(want) {
			break
		}
		if err := s.look(want); err != nil {
			return s.found, err
		}
	}
	err := s.sort()
	s.found.more = s.p.at < len(s.p.areas)
	return s.found, err
}

func (s *process) enough(want int) bool { return len(s.here)+len(s.found.pages) >= want }

// look adds the pages of the next span of the present area.
func (s *process) look(want int) error {
	a := s.p.areas[s.p.at]
	end := a.end
	if a.sure && a.end-a.start > sparse && a.found >= a.elsewhere {
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

// read goes through everything up to end, in whole chunks, until there is enough.
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
	if known {
		if err := s.check(a, from); err != nil {
			return err
		}
	}
	before, seen := a.found, len(s.here)
	for a.next < end && (a.found == before && len(s.here) == seen || !s.enough(want)) {
		to := max(min(end, a.next&^chunkMask+chunk), a.next+a.size)
		if known {
			s.sift(a, from, to)
		} else {
			s.guess(a, to)
		}
		a.next = to
	}
	s.span = min(s.span*4, mostSpan)
	if a.found > before || len(s.here) > seen || !known {
		s.span = leastSpan
	}
	return nil
}

// guess treats every page as present.
func (s *process) guess(a *area, to uint64) {
	for at := a.next; at < to; at += a.size {
		s.here = append(s.here, candidate{addr: at, area: a})
	}
}

// sift goes through a chunk, or a part of one. Pages whose frames are shown are sorted at
// once (2).
func (s *process) sift(a *area, from, to uint64) {
	step := a.size / s.small()
	first := min((a.next-from)/s.small(), uint64(len(s.entries)))
	words := s.entries[first:min((to-from)/s.small(), uint64(len(s.entries)))]
	tells := s.nodes != nil && !(a.file != (fileID{}) && s.r.staysOf(a.file))
	if tells && len(words) == perChunk && a.size == smallPage && s.whole(a, words) {
		return
	}
	for i := uint64(0); i < uint64(len(words)); i += step {
		e, at := words[i], a.next+i*s.small()
		if !e.present() || a.foreign && e.file() {
			continue
		}
		if pfn, known := e.pfn(); tells && known && e.exclusive() {
			if node, known := s.nodes.of(pfn); known {
				if s.r.elsewhere(int(node)) {
					c := candidate{addr: at, entry: e, area: a}
					s.keep(c, page{addr: at, size: a.size, kind: c.kind(), area: a}, 1)
				}
				continue
			}
		}
		s.here = append(s.here, candidate{addr: at, entry: e, area: a})
	}
}

// whole sorts a chunk that is one huge page with a single mapping (4); false when it is
// none.
func (s *process) whole(a *area, words []entry) bool {
	if a.next&chunkMask != 0 || s.frames == nil {
		return false
	}
	e := words[0]
	pfn, known := e.pfn()
	if !known || pfn%perChunk != 0 || !e.exclusive() || a.foreign && e.file() || words[perChunk-1] != e+perChunk-1 {
		return false
	}
	for i, other := range words {
		if other != e+entry(i) {
			return false
		}
	}
	node, known := s.nodes.of(pfn)
	if !known {
		return false
	}
	if !s.r.elsewhere(int(node)) {
		return true
	}
	c := candidate{addr: a.next, entry: e, area: a}
	p, huge := s.hugeAt(c)
	if huge {
		s.keep(c, p, perChunk)
	}
	return huge
}

// check asks the kernel once where some pages are. If that differs from what the frames
// say, the frames are no longer used.
func (s *process) check(a *area, from uint64) error {
	const some = 64
	if s.checked || s.nodes == nil {
		return nil
	}
	s.addrs, s.where = s.addrs[:0], s.where[:0]
	for i := uint64(0); i < uint64(len(s.entries)) && len(s.addrs) < some; i += a.size / s.small() {
		if pfn, known := s.entries[i].pfn(); known && s.entries[i].exclusive() {
			if node, known := s.nodes.of(pfn); known {
				s.addrs, s.where = append(s.addrs, uintptr(from+i*s.small())), append(s.where, node)
			}
		}
	}
	if len(s.addrs) == 0 {
		return nil
	}
	said := make([]int32, len(s.addrs))
	if err := s.r.m.ask(s.id, s.addrs, said); err != nil {
		return err
	}
	s.checked = true
	for i, node := range said {
		if node >= 0 && node != s.where[i] {
			s.nodes = nil // moved meanwhile, perhaps: being wrong costs more than asking
		}
	}
	return nil
}

// sort asks where the candidates are and makes pages of those that are elsewhere.
func (s *process) sort() error {
	s.claim()
	if len(s.here) == 0 {
		return nil
	}
	if err := s.ask(); err != nil {
		s.p.at = min(s.p.at, s.here[0].area.index) // it is not done
		return err
	}
	for i := 0; i < len(s.here); {
		n := s.run512(i)
		if n > 0 {
			if p, huge := s.huge(i); huge {
				s.keep(s.here[i], p, n)
				i += n
				continue
			}
		}
		for n = max(1, n); n > 0; i, n = i+1, n-1 {
			s.one(i)
		}
	}
	return nil
}

// claim takes the pages that others may share, and leaves out those already taken. Where
// their frames are hidden it waits for those being moved.
func (s *process) claim() {
	if slices.ContainsFunc(s.here, func(c candidate) bool { return !c.entry.exclusive() && !c.identified() }) {
		s.r.settled(s.id)
	}
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	kept := s.here[:0]
	for _, c := range s.here {
		p := c.page()
		if c.entry.exclusive() && c.area.file == (fileID{}) || s.r.claim(&p) {
			c.claimed = p.claimed
			kept = append(kept, c)
		}
	}
	s.here = kept
}

// unclaim gives back what is not moved.
func (s *process) unclaim(p page) {
	if p.claimed {
		s.r.mu.Lock()
		defer s.r.mu.Unlock()
		s.r.release([]page{p})
	}
}

// page is a candidate as a page.
func (c candidate) page() page {
	p := page{addr: c.addr, size: c.area.size, kind: c.kind(), area: c.area, claimed: c.claimed}
	if !c.entry.exclusive() {
		p.shared, _ = c.entry.pfn()
	}
	return p
}

// identified reports that the identity of the page is known.
func (c candidate) identified() (known bool) {
	c.page().keys(func(pageKey) { known = true })
	return known
}

func (s *process) ask() error {
	n := len(s.here)
	s.addrs, s.where = slices.Grow(s.addrs[:0], n)[:n], slices.Grow(s.where[:0], n)[:n]
	for i, c := range s.here {
		s.addrs[i] = uintptr(c.addr)
	}
	return s.r.m.ask(s.id, s.addrs, s.where)
}

// one adds candidate i when it is elsewhere.
func (s *process) one(i int) {
	c := s.here[i]
	if s.where[i] < 0 || !s.r.elsewhere(int(s.where[i])) {
		s.unclaim(c.page())
		return
	}
	s.keep(c, c.page(), 1)
}

// keep adds a page, unless it is to be left.
func (s *process) keep(c candidate, p page, n int) {
	c.area.found, c.area.taken = c.area.found+uint64(n), c.area.taken+uint64(n)
	if hot := s.r.req.Hot; hot != nil && !hot.Hot(s.id, p.addr) || c.area.foreign && p.kind != migration.Anon && p.kind != migration.THP {
		s.unclaim(p)
		return
	}
	s.found.pages = append(s.found.pages, p)
}

// kind is the mapping's kind; for a file also what pagemap says of the page.
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

// run512 is 512 when candidate i begins a chunk whose small pages are all here,
// elsewhere, and on one node; otherwise 0.
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

// huge reports whether a chunk that run512 found is a huge page. It decides by its frame,
// or where frames are hidden by a guess, which is worthwhile only for memory without a
// file.
func (s *process) huge(i int) (page, bool) { return s.hugeAt(s.here[i]) }

func (s *process) hugeAt(c candidate) (page, bool) {
	p := c.page()
	p.size = hugePage
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

// staysOf counts pages of a file that failed: it looks up which.
func (r *run) staysOf(file fileID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.j.stay[file] != nil
}
