// SPDX-License-Identifier: Apache-2.0

package pagecache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"unsafe"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/unix"
	"homenode/internal/migration"
	"homenode/internal/unit"
)

// windowSize is how much of a file is mapped at a time: larger ones cost memory for
// page tables (2 KiB a MiB) and addresses, smaller ones calls.
const windowSize = 64 << 20

// ErrCut means that a file was cut short during the walk: pages that were found may be
// gone.
var ErrCut = errors.New("it was cut short meanwhile")

// Part is cached pages of a file. It is valid until the next call of the view.
type Part struct {
	Addrs    []uintptr // of this process; each page is mapped here
	Offsets  []uint64  // in the file, of each of them; ascending
	PageSize uint64
}

// View goes through the cached pages of a file. It is not safe for concurrent use.
type View struct {
	// Skip reports that the page at an offset is not wanted; nil: all are. It saves
	// touching the page.
	Skip func(offset uint64) bool

	f      *os.File
	name   string
	page   uint64
	huge   bool
	shmem  bool
	block  bool
	step   int64 // of the file, bytes: a window
	at     int64 // next
	size   int64 // when last asked
	blocks int64 // of 512 bytes, when last asked
	cut    bool
	stat   bool  // cachestat answers
	span   int64 // that is looked at with it
	has    uint64

	window []byte
	in     []byte
	part   Part
}

func newView(f *os.File, file File) *View {
	step := int64(max(windowSize, file.PageSize))
	huge := file.Kind == migration.Hugetlb
	return &View{f: f, name: file.Name, page: file.PageSize, huge: huge, shmem: file.Kind == migration.Shmem, block: file.block, step: step, span: step, stat: !huge}
}

// Next returns the next cached pages, mapped here; io.EOF at the end, or ErrCut when the
// file became shorter in the meantime. Any other error ends the walk too.
//
//  1. The size is read again for each window: files grow and shrink.
//  2. Where the kernel has cachestat (since 6.5), it skips what is not cached, in steps
//     that double: a TiB without a page takes milliseconds. Without it tmpfs shows its
//     holes. Elsewhere pages over a hole may still be cached, and mincore has to
//     check each page, some 20 s a TiB. Files that are mostly hole are therefore left,
//     such as one of 8 EiB that a single call makes.
//  3. One window is mapped. A page that mincore reports as cached is touched, so that it
//     is in our page tables, where move_pages finds it.
//  4. The next call unmaps it.
func (v *View) Next(ctx context.Context) (Part, error) {
	for {
		v.unmap() // 4
		if err := ctx.Err(); err != nil {
			return Part{}, fmt.Errorf("look for pages of %q: %w", v.name, err)
		}
		if err := v.measure(); err != nil { // 1
			return Part{}, v.explain("ask for the size of", err)
		}
		v.skipHoles(ctx) // 2
		if v.at >= v.size {
			return Part{}, v.end()
		}
		if err := v.tooSparse(); err != nil {
			return Part{}, err
		}
		err := v.show() // 3
		v.at = plus(v.at, v.step)
		if err != nil {
			return Part{}, err
		}
		if len(v.part.Addrs) > 0 {
			return v.part, nil
		}
	}
}

// GoTo continues at an offset, or a little before.
func (v *View) GoTo(offset uint64) { v.at = int64(offset) / v.step * v.step }

// Position is behind what was returned, or was searched in vain.
func (v *View) Position() uint64 { return uint64(v.at) }

func (v *View) end() error {
	if v.cut {
		return fmt.Errorf("look for pages of %q: %w", v.name, ErrCut)
	}
	return io.EOF
}

func (v *View) explain(verb string, err error) error {
	return unix.Explain(verb, strconv.Quote(v.name), "", err)
}

// measure reads the size.
func (v *View) measure() error {
	var size int64
	if v.block {
		end, err := sys.Seek(int(v.f.Fd()), 0, io.SeekEnd)
		if err != nil {
			return err
		}
		size = end
	} else {
		st, err := statx(int(v.f.Fd()), "")
		if err != nil {
			return err
		}
		size, v.blocks = int64(st.Size), int64(st.Blocks)
	}
	v.cut = v.cut || size < v.size
	v.size = size
	return nil
}

// plus ends at the largest possible offset: any user can make a file of 2^63-1 bytes.
func plus(at, more int64) int64 {
	if at > math.MaxInt64-more {
		return math.MaxInt64
	}
	return at + more
}

// mostHole is how much of a file may be without blocks where each of its pages has to be
// checked: a second and a half for 64 GiB. A smaller value leaves out files of file
// systems that compress well.
const mostHole = 64 << 30

// tooSparse refuses to check a hole page by page. A file of shared memory has shown its
// holes.
func (v *View) tooSparse() error {
	if v.stat || v.shmem || v.huge || v.block || v.size < mostHole || v.blocks >= (v.size-mostHole)/512 {
		return nil
	}
	return fmt.Errorf("look for pages of %q: it is %v long, of which %v are on its disk, and to find the cached ones takes cachestat, which this kernel does not have (%w)",
		v.name, unit.Bytes(v.size), unit.Bytes(v.blocks)*512, unix.ErrNotSupported)
}

// cached asks how many pages of a range are cached.
func (v *View) cached(at, length int64) (uint64, error) {
	var out sys.Cachestat_t
	err := sys.Cachestat(uint(v.f.Fd()), &sys.CachestatRange{Off: uint64(at), Len: uint64(length)}, &out, 0)
	return out.Cache, err
}

// skipHoles goes to the next window that has cached pages.
func (v *View) skipHoles(ctx context.Context) {
	for v.stat && v.at < v.size && ctx.Err() == nil {
		n, err := v.cached(v.at, min(v.span, v.size-v.at))
		switch {
		case err != nil:
			v.stat = false
		case n == 0:
			v.at = plus(v.at, v.span)
			v.span = min(2*v.span, 1<<50)
		case v.span > v.step:
			v.span /= 2
		default:
			v.has = n
			return
		}
	}
	if !v.stat && v.shmem && v.at < v.size {
		v.seekData()
	}
}

// seekData goes to the next window of a tmpfs file that has data: these are its pages
// (mapping_seek_hole_data in mm/filemap.c).
func (v *View) seekData() {
	const seekData = 3 // SEEK_DATA
	at, err := sys.Seek(int(v.f.Fd()), v.at, seekData)
	switch {
	case err == nil:
		v.at = max(v.at, at/v.step*v.step)
	case errors.Is(err, sys.ENXIO): // there is none
		v.at = plus((v.size-1)/v.step*v.step, v.step)
	}
}

// show maps the window at v.at and makes the part of it.
func (v *View) show() error {
	length := int(min(v.step, v.size-v.at))
	if v.huge {
		length = int((uint64(length) + v.page - 1) / v.page * v.page)
	}
	flags := sys.MAP_SHARED
	if v.huge {
		flags |= sys.MAP_NORESERVE // otherwise pages of the pool would be reserved for us
	}
	window, err := sys.Mmap(int(v.f.Fd()), v.at, length, sys.PROT_READ, flags)
	if err != nil {
		return v.explain("map", err)
	}
	v.window = window
	// A page that is dropped before it is touched is read again: without this, together
	// with all pages that follow it.
	_ = sys.Madvise(window, sys.MADV_RANDOM)
	pages := (uint64(length) + v.page - 1) / v.page
	if err := v.look(pages); err != nil {
		return err
	}
	v.part = Part{v.part.Addrs[:0], v.part.Offsets[:0], v.page}
	for i, in := range v.in[:pages] {
		at := uint64(i) * v.page
		if in&1 == 0 || v.Skip != nil && v.Skip(uint64(v.at)+at) {
			continue
		}
		v.part.Addrs = append(v.part.Addrs, uintptr(unsafe.Pointer(&window[at])))
		v.part.Offsets = append(v.part.Offsets, uint64(v.at)+at)
	}
	return v.touch()
}

// look finds the cached pages of the window. Of a pool all are: Open made sure of that.
func (v *View) look(pages uint64) error {
	if uint64(len(v.in)) < pages {
		v.in = make([]byte, pages)
	}
	if v.huge {
		for i := range v.in {
			v.in[i] = 1
		}
		return nil
	}
	if err := unix.Mincore(v.window, v.in); err != nil {
		return v.explain("look for pages of", err)
	}
	var said uint64
	for _, in := range v.in[:pages] {
		said += uint64(in & 1)
	}
	if v.stat && said == pages && v.has < pages/2 { // another user namespace's: mincore did not trust us
		return unix.Explain("look for pages of", strconv.Quote(v.name), "to own the file, to be allowed to write it, or CAP_FOWNER", sys.EPERM)
	}
	return nil
}

// touch reads a byte of each page of the part. Where the file ends before it, or its disk
// fails, that is SIGBUS: the rest of the window is dropped.
func (v *View) touch() error {
	done, _ := unix.TouchEach(v.window, func(yield func(int) bool) {
		for _, offset := range v.part.Offsets {
			if !yield(int(offset - uint64(v.at))) {
				return
			}
		}
	})
	if done == len(v.part.Offsets) {
		return nil
	}
	at := v.part.Offsets[done]
	v.part.Addrs, v.part.Offsets = v.part.Addrs[:done], v.part.Offsets[:done]
	if err := v.measure(); err != nil {
		return v.explain("ask for the size of", err)
	}
	if at < uint64(v.size) { // the page exists, and cannot be read
		return fmt.Errorf("read the page at offset %d of %q: %w", at, v.name, sys.EIO)
	}
	v.cut = true
	return nil
}

func (v *View) unmap() {
	if v.window != nil {
		_ = sys.Munmap(v.window)
		v.window = nil
	}
	v.part.Addrs, v.part.Offsets = v.part.Addrs[:0], v.part.Offsets[:0]
}

// Close unmaps and closes the file.
func (v *View) Close() error {
	v.unmap()
	return v.f.Close()
}
