// SPDX-License-Identifier: Apache-2.0

package migrate

import "homenode/internal/migration"

// pageKey is a place in a file, or a frame. It identifies a page that several mappings
// share.
type pageKey struct {
	fileID
	offset uint64 // bytes; of a frame as if all frames were one file
}

// frameKey is the device of no file.
var frameKey = fileID{Dev: 1<<64 - 1}

// keys are those of a page, or of all small pages of a huge one, which others may map one
// by one. A page that nothing else can share has none, nor does one that the kernel
// hides.
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

// add reports whether the key is new.
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

// claim takes a page that other mappings may share, before asking where it is. It returns
// false when another worker has it already, or it is known to stay. So each page is
// counted once: a later claim asks after it was moved.
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

// remember prevents that a page that stays is tried and counted again where another
// process maps it, or as page cache.
func (r *run) remember(p page) {
	p.keys(func(k pageKey) { r.j.stay.add(k) })
}
