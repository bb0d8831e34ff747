// SPDX-License-Identifier: Apache-2.0

package hotness

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"sort"

	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
)

// bitmapFile has a bit for each page frame: word i, 8 bytes in the machine's order,
// has frames 64·i to 64·i+63 (since 4.3, CONFIG_IDLE_PAGE_TRACKING;
// Documentation/admin-guide/mm/idle_page_tracking.rst). Writing 1 marks a page idle,
// writing 0 does nothing; an access clears the bit.
const bitmapFile = "/sys/kernel/mm/page_idle/bitmap"

// idle marks the pages of the processes idle and checks which did not stay so:
//
//  1. Read the frames of their present pages, from pagemap.
//  2. Mark them, and wait.
//  3. A page that is no longer marked, or was not markable at once: accessed.
//  4. But a page that is on no LRU list never takes a mark, nor does the tail of a huge
//     page (page_idle_get_folio in mm/page_idle.c). Their flags identify them, and they
//     are left out: nothing is known of them. The head stands for a huge page.
//  5. Find the addresses that have these frames now, from pagemap again. A page that was
//     moved meanwhile takes its mark along, but not its number, and is unknown.
type idle struct {
	*search
	bitmap bitmap
	marks  []word
}

// bitmap is bitmapFile, or a fake.
type bitmap interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
}

// word is a word of the bitmap. 64 adjacent frames take 16 bytes; 10 million scattered
// pages take 160 MB, the 256 Mi of a TiB 64 MiB.
type word struct {
	at   uint64 // its index
	bits uint64
}

func (i *idle) available() error {
	f, err := os.OpenFile(i.root.Path(bitmapFile), os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("the kernel has no %s (CONFIG_IDLE_PAGE_TRACKING, since Linux 4.3): %w", bitmapFile, unix.ErrNotSupported)
	}
	if err != nil {
		return unix.Explain("open", bitmapFile, "root", err)
	}
	return f.Close()
}

func (i *idle) find(ctx context.Context) (how unit.Source, err error) {
	if i.bitmap, err = os.OpenFile(i.root.Path(bitmapFile), os.O_RDWR, 0); err != nil {
		return 0, unix.Explain("open", bitmapFile, "root", err)
	}
	defer i.bitmap.Close()
	frames := frameSet{}
	if err := i.walk(ctx, func(_ int, _, frame uint64) { frames.add(frame) }); err != nil { // 1
		return 0, err
	}
	if i.marks = frames.words(); len(i.marks) == 0 {
		return 0, fmt.Errorf("no page of the processes has a frame number in pagemap: it needs CAP_SYS_ADMIN (%w)", unix.ErrNotPermitted)
	}
	if err := i.mark(ctx); err != nil { // 2
		return 0, err
	}
	i.note(tlbNote)
	if err := i.wait(ctx, i.cfg.For); err != nil {
		return 0, err
	}
	if err := i.compare(ctx); err != nil { // 3
		return 0, err
	}
	if err := i.leaveOut(ctx); err != nil { // 4
		return 0, err
	}
	return unit.HowMeasured, i.walk(ctx, func(pid int, addr, frame uint64) { // 5
		if accessed(i.marks, frame) {
			i.add1(pid, addr)
		}
	})
}

// add1 adds a page, which comes after all those before it: neighbours take no memory.
func (i *idle) add1(pid int, addr uint64) {
	i.found[pid] = join(i.found[pid], span{addr, addr + uint64(unix.PageSize())})
}

func (i *idle) mark(ctx context.Context) error {
	return unix.Explain("write", bitmapFile, "", i.runs(ctx, func(run []word, buf []byte) error {
		for k, w := range run {
			binary.NativeEndian.PutUint64(buf[8*k:], w.bits)
		}
		n, err := i.bitmap.WriteAt(buf, int64(8*run[0].at))
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return forget(run, n)
		}
		return err
	}))
}

// forget handles the last word, which has fewer than 64 frames where the machine's number
// of frames is not a multiple of 64. The kernel counts whole words only
// (page_idle_bitmap_read and _write in mm/page_idle.c end at max_pfn), and returns 0
// bytes. The content of that word is unknown. Any other missing word is an error.
func forget(run []word, n int) error {
	if n/8 != len(run)-1 {
		return fmt.Errorf("%d of %d bytes from word %d on: %w", n, 8*len(run), run[0].at, io.ErrUnexpectedEOF)
	}
	run[len(run)-1].bits = 0
	return nil
}

// compare keeps what is not marked now.
func (i *idle) compare(ctx context.Context) error {
	return unix.Explain("read", bitmapFile, "", i.runs(ctx, func(run []word, buf []byte) error {
		n, err := i.bitmap.ReadAt(buf, int64(8*run[0].at))
		if errors.Is(err, io.EOF) && n < len(buf) {
			err = forget(run, n)
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		for k := range run[:n/8] {
			run[k].bits &^= binary.NativeEndian.Uint64(buf[8*k:])
		}
		return nil
	}))
}

// flagsFile has 8 bytes for each frame (since 2.6.25; the zero page's bit since 4.0).
const flagsFile = "/proc/kpageflags"

// Bits of it, from include/uapi/linux/kernel-page-flags.h.
const (
	flagLRU  = 1 << 5
	flagTail = 1 << 16
	flagHuge = 1 << 17 // of hugetlbfs
	flagZero = 1 << 24
)

// markable reports whether a page with these flags takes a mark.
func markable(flags uint64) bool {
	return flags&flagLRU != 0 && flags&(flagTail|flagHuge|flagZero) == 0
}

// leaveOut keeps only pages that would have stayed marked.
func (i *idle) leaveOut(ctx context.Context) error {
	f, err := os.Open(i.root.Path(flagsFile))
	if err != nil {
		return unix.Explain("open", flagsFile, "CAP_SYS_ADMIN", err)
	}
	defer f.Close()
	var buf [8 * 64]byte
	for k := range i.marks {
		w := &i.marks[k]
		if k%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if w.bits == 0 {
			continue
		}
		n, err := f.ReadAt(buf[:], int64(8*64*w.at))
		if err != nil && !errors.Is(err, io.EOF) {
			return unix.Explain("read", flagsFile, "CAP_SYS_ADMIN", err)
		}
		w.bits &= markables(buf[:n])
	}
	return nil
}

// markables has a bit for each frame whose flags show that it takes a mark.
func markables(flags []byte) (bits uint64) {
	for k := range min(64, len(flags)/8) {
		if markable(binary.NativeEndian.Uint64(flags[8*k:])) {
			bits |= 1 << k
		}
	}
	return bits
}

// runWords bounds a call: the kernel looks up the mappings of each of its 64 × 128 pages.
const runWords = 128

// runs goes through adjacent words.
func (i *idle) runs(ctx context.Context, do func(run []word, buf []byte) error) error {
	buf := make([]byte, 8*runWords)
	for from := 0; from < len(i.marks); {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		to := from + 1
		for to < len(i.marks) && to-from < runWords && i.marks[to].at == i.marks[to-1].at+1 {
			to++
		}
		if err := do(i.marks[from:to], buf[:8*(to-from)]); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// chunkWords are 4 KiB, for the frames of 128 MiB: 1 TiB takes 32 MiB at most, in any
// order of its frames. Longer chunks take more where few frames are used.
const chunkWords = 512

// frameSet has a bit for each frame, by chunk.
type frameSet map[uint64]*[chunkWords]uint64

func (s frameSet) add(frame uint64) {
	at := frame / 64
	c := s[at/chunkWords]
	if c == nil {
		c = new([chunkWords]uint64)
		s[at/chunkWords] = c
	}
	c[at%chunkWords] |= 1 << (frame % 64)
}

// words are the marks of frames, ascending. It empties the set, so that there is no
// memory for both.
func (s frameSet) words() []word {
	n := 0
	for _, c := range s {
		for _, bits := range c {
			n += int(min(bits, 1))
		}
	}
	all := make([]word, 0, n)
	for _, chunk := range slices.Sorted(maps.Keys(s)) {
		for k, bits := range s[chunk] {
			if bits != 0 {
				all = append(all, word{chunk*chunkWords + uint64(k), bits})
			}
		}
		delete(s, chunk)
	}
	return all
}

func accessed(marks []word, frame uint64) bool {
	at := sort.Search(len(marks), func(i int) bool { return marks[i].at >= frame/64 })
	return at < len(marks) && marks[at].at == frame/64 && marks[at].bits>>(frame%64)&1 == 1
}

// walk goes through the present pages of all processes, ascending in each.
func (i *idle) walk(ctx context.Context, each func(pid int, addr, frame uint64)) error {
	for _, pid := range i.pids {
		err := i.walkOne(ctx, pid, func(addr, frame uint64) { each(pid, addr, frame) })
		if err != nil && !errors.Is(err, unix.ErrGone) {
			return err
		}
	}
	return nil
}

// tooSparse leaves out what is reserved and hardly used, as by address sanitizers: 64 Mi
// entries of pagemap take half a second to read, 16 TiB a minute.
func tooSparse(a procfs.SmapsArea) bool {
	size := a.End - a.Start
	return size > 256<<30 && uint64(a.RSS)*1024 < size
}

func (i *idle) walkOne(ctx context.Context, pid int, each func(addr, frame uint64)) error {
	areas, err := i.smaps(pid)
	if err != nil {
		return err
	}
	f, err := os.Open(i.proc(pid, "pagemap"))
	if err != nil {
		return unix.Explain("open", i.proc(pid, "pagemap"), "CAP_SYS_PTRACE", err)
	}
	defer f.Close()
	for _, a := range areas {
		if a.RSS == 0 && a.HugeTLB == 0 || tooSparse(a) {
			continue
		}
		if err := readFrames(ctx, f, a.Range, each); err != nil {
			return err
		}
	}
	return nil
}

// readFrames passes the frame of each present page of a range; see presentFrame.
func readFrames(ctx context.Context, pagemap *os.File, r procfs.Range, each func(addr, frame uint64)) error {
	size := uint64(unix.PageSize())
	buf := make([]byte, 32<<10)
	for at := r.Start; at < r.End; {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		n, err := pagemap.ReadAt(buf[:min(uint64(len(buf)), (r.End-at)/size*8)], int64(at/size*8))
		if err != nil && !errors.Is(err, io.EOF) {
			return unix.Explain("read", pagemap.Name(), "", err)
		}
		for k := range n / 8 {
			if frame, ok := presentFrame(binary.NativeEndian.Uint64(buf[8*k:])); ok {
				each(at+uint64(k)*size, frame)
			}
		}
		if n < 8 { // it is ending: pagemap_read in fs/proc/task_mmu.c returns 0
			return nil
		}
		at += uint64(n/8) * size
	}
	return nil
}

// presentFrame reads an entry of /proc/PID/pagemap (since 2.6.25): bit 63 present,
// bits 0-54 the frame, 0 without CAP_SYS_ADMIN (since 4.2).
func presentFrame(entry uint64) (uint64, bool) {
	frame := entry & (1<<55 - 1)
	return frame, entry>>63 == 1 && frame != 0
}
