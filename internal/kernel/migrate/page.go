// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"fmt"

	sys "golang.org/x/sys/unix"

	"homenode/internal/migration"
	"homenode/internal/unit"
)

const (
	smallPage = 4096    // bytes, where the machine says nothing else
	hugePage  = 2 << 20 // bytes; PMD size on x86-64 and on arm64 with 4 KiB pages
)

// page is what one address stands for in a call: a small page, or a huge one by its first
// byte.
type page struct {
	addr uint64
	size uint64 // bytes
	kind migration.Kind
	// looks like a transparent huge page, but the kernel hides whether it is one.
	looks bool
	area  *area // of a process; nil: of a file that is mapped here
	// shared is its frame when other mappings may share it. 0: none does, or the kernel
	// hides it.
	shared  uint64
	claimed bool // by its key, so that no other worker moves it
}

// class is what the pages of one call have in common.
type class struct {
	size uint64
	pool bool // hugetlb
	file bool // of a file, or shared memory: another price
}

func (p *page) class() class {
	switch p.kind {
	case migration.Hugetlb:
		return class{size: p.size, pool: true}
	case migration.File, migration.Shmem, migration.Cache:
		return class{size: p.size, file: true}
	}
	return class{size: p.size}
}

// noun is the name of a page of this class in texts.
func (c class) noun() string {
	if c.size >= hugePage {
		return "huge page of " + unit.Bytes(c.size).String()
	}
	return "page of " + unit.Bytes(c.size).String()
}

// mayBeSplit reports that the first address of a transparent huge page may not stand for
// all of it.
func (p page) mayBeSplit() bool {
	return p.area != nil && p.kind != migration.Hugetlb && p.size > p.area.size
}

// smalls are the small pages of what looked like a huge one, beginning at index first.
func (p page) smalls(first int) []page {
	small := p.area.size
	kind := p.kind
	if kind == migration.THP {
		kind = migration.Anon
	}
	var all []page
	for i := uint64(first); i < p.size/small; i++ {
		one := page{addr: p.addr + i*small, size: small, kind: kind, area: p.area, claimed: p.claimed}
		if p.shared != 0 {
			one.shared = p.shared + i
		}
		all = append(all, one)
	}
	return all
}

func bytesOf(pages []page) (sum unit.Bytes) {
	for _, p := range pages {
		sum += unit.Bytes(p.size)
	}
	return sum
}

// outlives reports that a page may remain when the process ends: it belongs to a file, to
// shared memory, or to another process too.
func (p page) outlives() (yes bool) {
	p.keys(func(pageKey) { yes = true })
	return yes
}

// tally is the outcome of pages.
type tally struct {
	moved, gone sums
	failed      map[reason]unit.Bytes
}

type reason struct {
	kind migration.Kind
	why  string
}

func (t *tally) move(p page) { t.moved.addBytes(p.kind, p.size) }
func (t *tally) lose(p page) { t.gone.addBytes(p.kind, p.size) }
func (t *tally) fail(p page, why string) {
	if t.failed == nil {
		t.failed = map[reason]unit.Bytes{}
	}
	t.failed[reason{p.kind, why}] += unit.Bytes(p.size)
}

// sums are bytes by kind: few, and mostly one.
type sums []kindSum

type kindSum struct {
	kind  migration.Kind
	bytes unit.Bytes
}

func (s *sums) addBytes(kind migration.Kind, size uint64) {
	for i := range *s {
		if one := &(*s)[i]; one.kind == kind {
			one.bytes += unit.Bytes(size)
			return
		}
	}
	*s = append(*s, kindSum{kind, unit.Bytes(size)})
}

// addTo adds the tally to a result, and returns how much of it moved.
func (t tally) addTo(res *migration.Result) (moved unit.Bytes) {
	for _, s := range t.moved {
		res.Of(s.kind).Moved += s.bytes
		moved += s.bytes
	}
	for _, s := range t.gone {
		res.Of(s.kind).Gone += s.bytes
	}
	for r, b := range t.failed {
		res.Of(r.kind).Fail(r.why, b)
	}
	return moved
}

// LeftForeign is the reason of pages that were left because of Request.LeaveForeign. It
// is the only reason that the user asked for.
const LeftForeign = "left: processes outside of it use it too"

// noPool is a reason that is not an errno.
func noPool(nodes string, c class) string {
	return fmt.Sprintf("no free %s on node %s", c.noun(), nodes)
}

// name is an errno's name for texts.
func name(status int32) string {
	if n := sys.ErrnoName(sys.Errno(-status)); n != "" {
		return n
	}
	return fmt.Sprintf("error %d", -status)
}
