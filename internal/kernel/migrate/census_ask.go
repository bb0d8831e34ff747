// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/unix"
	"homenode/internal/migration"
	"homenode/internal/unit"
)

// askAtOnce is the number of pages in one query. The kernel takes mmap_lock again for each
// 16 of them (do_pages_stat in mm/migrate.c): larger queries save only calls.
const askAtOnce = 4096

// question is pages whose node is not known yet.
type question struct {
	addrs  []uintptr
	about  []asked
	status []int32
}

// asked is how a page is counted.
type asked struct {
	kind  migration.Kind
	file  *countedFile // nil: private
	bytes unit.Bytes
	guess *spread // instead: private, small or huge
}

func (q *question) drop() { q.addrs, q.about = q.addrs[:0], q.about[:0] }

// askAbout puts a page into the question, and asks when the question is long enough.
func (c *counter) askAbout(pid int, addr uint64, a asked) error {
	c.ask.addrs, c.ask.about = append(c.ask.addrs, uintptr(addr)), append(c.ask.about, a)
	if len(c.ask.addrs) < askAtOnce {
		return nil
	}
	return c.answer(pid)
}

// answer asks, and counts what has a node.
func (c *counter) answer(pid int) error {
	q := &c.ask
	if len(q.addrs) == 0 {
		return nil
	}
	q.status = slices.Grow(q.status[:0], len(q.addrs))[:len(q.addrs)]
	for i := range q.status {
		q.status[i] = -int32(sys.ENOENT)
	}
	if _, err := c.pager.MovePages(pid, q.addrs, nil, q.status, 0); err != nil {
		return whyNoAnswer(pid, err)
	}
	for i, node := range q.status {
		if a := q.about[i]; node >= 0 {
			if a.guess != nil {
				a.guess.addBytes(int(node), a.bytes)
				continue
			}
			c.count(a.kind, int(node), a.file, a.bytes, a.bytes)
		}
	}
	q.drop()
	return nil
}

func whyNoAnswer(pid int, err error) error {
	object := fmt.Sprintf("the nodes of pages of process %d", pid)
	if errors.Is(err, sys.EINVAL) { // find_mm_struct: it has released its memory
		return fmt.Errorf("ask for %s: it is ending (%w)", object, unix.ErrGone)
	}
	return unix.Explain("ask for", object, "CAP_SYS_PTRACE", err)
}

// spread is the private pages of one mapping for which only the number of huge ones is
// known.
type spread struct{ nodes []unit.Bytes }

func (s *spread) addBytes(node int, b unit.Bytes) { sum(&s.nodes, node, b) }

// split counts the huge ones on each node in proportion, in whole pages.
func (s *spread) split(c *counter, huge, page unit.Bytes) {
	var all unit.Bytes
	for _, b := range s.nodes {
		all += b
	}
	huge = min(huge, all)
	left := huge
	for node, b := range s.nodes {
		if b == 0 {
			continue
		}
		h := min(left, b, unit.Bytes(float64(huge)*float64(b)/float64(all))/page*page)
		left -= h
		c.count(migration.THP, node, nil, h, page)
		c.count(migration.Anon, node, nil, b-h, page)
	}
}

// pageSet is a set of numbers that come in runs. It takes 4 KiB for each block of 32,768
// numbers with at least one member.
type pageSet struct {
	parts map[uint64]*[512]uint64
	last  uint64
	part  *[512]uint64
}

func newPageSet() pageSet { return pageSet{parts: map[uint64]*[512]uint64{}} }

func (s *pageSet) find(n uint64, create bool) *[512]uint64 {
	key := n >> 15
	if s.part != nil && s.last == key {
		return s.part
	}
	part := s.parts[key]
	if part == nil {
		if !create {
			return nil
		}
		part = new([512]uint64)
		s.parts[key] = part
	}
	s.last, s.part = key, part
	return part
}

// add reports whether the number is new.
func (s *pageSet) add(n uint64) bool {
	word, bit := &s.find(n, true)[n>>6&511], uint64(1)<<(n&63)
	fresh := *word&bit == 0
	*word |= bit
	return fresh
}

func (s *pageSet) has(n uint64) bool {
	part := s.find(n, false)
	return part != nil && part[n>>6&511]>>(n&63)&1 == 1
}

func addressOf(c *counter) uintptr { return uintptr(unsafe.Pointer(c)) }
