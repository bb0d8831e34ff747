// SPDX-License-Identifier: Apache-2.0

package migrate

import "homenode/internal/migration"

// pageKey is a place in a file, or a frame: a page is known by it that several mappings
// have.
type pageKey struct {
	fileID
	offset uint64 // bytes; of a frame as if all frames were one file
}

// frameKey is none of a file's: there is no such device.
var frameKey = fileID{Dev: 1<<64 - 1}

// keys are of a page, or of all small ones of a huge page: others may map them one by
// one. None of a page that nothing else can have, and where the kernel hides it.
func (p page) keys(each func(pageKey)) {
	if p.area == nil {
		return
	}
	first := pageKey{p.area.file, p.area.offset + p.addr - p.area.start}
	if p.kind == migration.Anon || p.kind == migration.THP || p.area.file == (fileID{}) {
		if p.shared == 0 {
			return
		}
		first = pageKey{frameKey, p.shared * smallPage}
	}
	for at := uint64(0); at < p.size; at += p.area.size {
		each(pageKey{first.fileID, first.offset + at})
	}
}

// keySet is a set of pages, a bit each: 1 GiB of them takes 32 KiB.
type keySet map[fileID]*pageSet

// add says whether it is new.
func (s keySet) add(k pageKey) bool {
	in := s[k.fileID]
	if in == nil {
		n := newPageSet()
		in = &n
		s[k.fileID] = in
	}
	return in.add(k.offset / smallPage)
}

func (s keySet) has(k pageKey) bool {
	in := s[k.fileID]
	return in != nil && in.has(k.offset/smallPage)
}

func (s keySet) remove(k pageKey) {
	if in := s[k.fileID]; in != nil {
		in.remove(k.offset / smallPage)
	}
}

func (s *pageSet) remove(n uint64) {
	if part := s.find(n, false); part != nil {
		part[n>>6&511] &^= 1 << (n & 63)
	}
}

// claim takes a page that other mappings may have, before it is asked where that is;
// false when somebody has it already, or it is known to stay. So each is counted once:
// whoever claims it later asks after it was moved.
func (r *run) claim(p *page) bool {
	free := true
	p.keys(func(k pageKey) {
		if free = !r.j.stay.has(k) && r.claims.add(k); free {
			p.claimed = true
		}
	})
	return free
}

// reclaim takes what came back of a batch that was released.
func (r *run) reclaim(pages []page) {
	for _, p := range pages {
		if p.claimed {
			p.keys(func(k pageKey) { r.claims.add(k) })
		}
	}
}

func (r *run) release(pages []page) {
	for i := range pages {
		if p := &pages[i]; p.claimed {
			p.keys(r.claims.remove)
		}
	}
}

// remember keeps a page that stays from being tried and counted again where another
// process maps it, or as page cache.
func (r *run) remember(p page) {
	p.keys(func(k pageKey) { r.j.stay.add(k) })
}
