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

// page is what the kernel is given one address of: a small page, or a huge one by its
// first byte.
type page struct {
	addr uint64
	size uint64 // bytes
	kind migration.Kind
	// looks like a transparent huge page, but the kernel hides whether it is one.
	looks bool
	area  *area // of a process; nil: of a file that is mapped here
	// shared is its frame when other mappings may have it too; 0: they have not, or the
	// kernel hides it.
	shared uint64
}

// class is what pages have in common that are moved in one call.
type class struct {
	size uint64
	pool bool // hugetlb: the target's pool must have a free one
}

func (p page) class() class { return class{p.size, p.kind == migration.Hugetlb} }

// noun is a page of this class for people.
func (c class) noun() string {
	if c.size >= hugePage {
		return "huge page of " + unit.Bytes(c.size).String()
	}
	return "page of " + unit.Bytes(c.size).String()
}

// smalls are the small pages of something that looked like a huge one, from the one at
// index first on.
func (p page) smalls(first int) []page {
	small := p.area.size
	kind := p.kind
	if kind == migration.THP {
		kind = migration.Anon
	}
	var all []page
	for at := p.addr + uint64(first)*small; at < p.addr+p.size; at += small {
		all = append(all, page{addr: at, size: small, kind: kind, area: p.area})
	}
	return all
}

// pageKey is a place in a file, or a frame: a page is known by it that several mappings
// have.
type pageKey struct {
	fileID
	offset uint64
}

// frameKey is none of a file's: there is no such device.
var frameKey = fileID{Dev: 1<<64 - 1}

func (p page) key() (pageKey, bool) {
	switch {
	case p.area == nil:
		return pageKey{}, false
	case p.kind == migration.Anon || p.kind == migration.THP || p.area.file == (fileID{}):
		return pageKey{frameKey, p.shared}, p.shared != 0
	}
	return pageKey{p.area.file, p.area.offset + p.addr - p.area.start}, true
}

func bytesOf(pages []page) (sum unit.Bytes) {
	for _, p := range pages {
		sum += unit.Bytes(p.size)
	}
	return sum
}

// tally is what became of pages.
type tally struct {
	moved, gone map[migration.Kind]unit.Bytes
	failed      map[reason]unit.Bytes
}

type reason struct {
	kind migration.Kind
	why  string
}

func (t *tally) move(p page) { t.moved = add(t.moved, p.kind, p.size) }
func (t *tally) lose(p page) { t.gone = add(t.gone, p.kind, p.size) }
func (t *tally) fail(p page, why string) {
	t.failed = add(t.failed, reason{p.kind, why}, p.size)
}

func add[K comparable](m map[K]unit.Bytes, key K, size uint64) map[K]unit.Bytes {
	if m == nil {
		m = map[K]unit.Bytes{}
	}
	m[key] += unit.Bytes(size)
	return m
}

// addTo adds the tally to a result, and returns how much of it moved.
func (t tally) addTo(res *migration.Result) (moved unit.Bytes) {
	for kind, b := range t.moved {
		res.Of(kind).Moved += b
		moved += b
	}
	for kind, b := range t.gone {
		res.Of(kind).Gone += b
	}
	for r, b := range t.failed {
		res.Of(r.kind).Fail(r.why, b)
	}
	return moved
}

// LeftForeign is the reason of pages that were left because of Request.LeaveForeign:
// the only one that a person asked for.
const LeftForeign = "left: processes outside of it use it too"

// noPool is a reason that is no errno.
func noPool(nodes string, c class) string {
	return fmt.Sprintf("no free %s on node %s", c.noun(), nodes)
}

// name is an errno's, for people.
func name(status int32) string {
	if n := sys.ErrnoName(sys.Errno(-status)); n != "" {
		return n
	}
	return fmt.Sprintf("error %d", -status)
}
