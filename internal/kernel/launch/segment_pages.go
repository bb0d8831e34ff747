// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"bytes"
	"fmt"
	"iter"
	"math/bits"
	"os"
	"strconv"
	"unsafe"

	"homenode/internal/kernel/unix"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// pages are pages of a part of a segment, a bit each: a list of offsets would take 2
// GiB for a TiB of 4 KiB pages, this takes 32 MiB.
type pages struct {
	size int      // of a page
	of   int      // pages that the part has
	in   []uint64 // bit i%64 of word i/64: page i is one of them; nil with all
	all  bool
}

func noPages(part []byte, size int) pages {
	return pages{size: size, of: (len(part) + size - 1) / size}
}

// every are all pages.
func every(part []byte, size int) pages {
	p := noPages(part, size)
	p.all = true
	return p
}

func (p *pages) addPage(i int) {
	if p.in == nil {
		p.in = make([]uint64, (p.of+63)/64)
	}
	p.in[i/64] |= 1 << (i % 64)
}

func (p pages) count() (n int) {
	if p.all {
		return p.of
	}
	for _, w := range p.in {
		n += bits.OnesCount64(w)
	}
	return n
}

func (p pages) bytes() unit.Bytes { return unit.Bytes(p.count()) * unit.Bytes(p.size) }

// offsets are where they begin, ascending.
func (p pages) offsets() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := 0; p.all && i < p.of; i++ {
			if !yield(i * p.size) {
				return
			}
		}
		for word, w := range p.in {
			for ; w != 0; w &= w - 1 {
				if !yield((word*64 + bits.TrailingZeros64(w)) * p.size) {
					return
				}
			}
		}
	}
}

// presentPages are the pages that exist: in memory, mapped by any process (mincore_page
// in mm/mincore.c). For huge pages this is unknown.
func presentPages(m *mapped, part []byte) (pages, error) {
	present := noPages(part, m.page)
	if m.huge || m.created { // a new one has none, and looking takes a minute a TiB
		return present, nil
	}
	const window = 1 << 30
	in := make([]byte, (min(window, len(part))+m.page-1)/m.page)
	for at := 0; at < len(part); at += window {
		piece := part[at:min(at+window, len(part))]
		if err := unix.Mincore(piece, in); err != nil {
			return pages{}, unix.Explain("look at the pages of", m.name, "", err)
		}
		for i, b := range in[:(len(piece)+m.page-1)/m.page] {
			if b&1 == 1 {
				present.addPage(at/m.page + i)
			}
		}
	}
	return present, nil
}

// touch reads a byte of each page, which allocates the pages of shared memory. A page
// that cannot be allocated (full tmpfs, no huge page left, truncated file) is SIGBUS.
func touch(part []byte, which pages) error {
	if done, at := unix.TouchEach(part, which.offsets()); done < which.count() {
		return fmt.Errorf("no page can be allocated for offset %v: the file system is full, there are no huge pages left, or the file was truncated", unit.Bytes(at))
	}
	return nil
}

// elsewhere queries the nodes of pages, and adds up those that are not on nodes. The
// place of a page is known only once it is mapped here.
func elsewhere(part []byte, which pages, nodes set.NodeSet) (map[int]unit.Bytes, error) {
	const batch = 4096
	out := map[int]unit.Bytes{}
	addrs, where := make([]uintptr, 0, batch), make([]int32, batch)
	ask := func() error {
		if len(addrs) == 0 {
			return nil
		}
		if _, err := (unix.LivePager{}).MovePages(0, addrs, nil, where[:len(addrs)], 0); err != nil {
			return err
		}
		for _, node := range where[:len(addrs)] {
			if node >= 0 && !nodes.Has(int(node)) {
				out[int(node)] += unit.Bytes(which.size)
			}
		}
		addrs = addrs[:0]
		return nil
	}
	for at := range which.offsets() {
		if addrs = append(addrs, uintptr(unsafe.Pointer(&part[at]))); len(addrs) == batch {
			if err := ask(); err != nil {
				return nil, err
			}
		}
	}
	return out, ask()
}

// isHuge looks a mapping up in numa_maps, which marks hugetlb ones.
func isHuge(all []byte) bool {
	data, err := os.ReadFile("/proc/self/numa_maps")
	if err != nil {
		return false
	}
	start := strconv.FormatUint(uint64(uintptr(unsafe.Pointer(&all[0]))), 16) + " "
	for line := range bytes.Lines(data) {
		if bytes.HasPrefix(line, []byte(start)) {
			return bytes.Contains(line, []byte(" huge"))
		}
	}
	return false
}
