// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"errors"
	"fmt"
	"io"
	"os"
	"unsafe"

	"homenode/internal/kernel/unix"
)

// entry is a page's word in /proc/PID/pagemap (since 2.6.25;
// Documentation/admin-guide/mm/pagemap.rst):
//
//	bits 0-54 frame number (0 without CAP_SYS_ADMIN, since 4.2) · 56 mapped by no
//	other mapping · 61 of a file, or shared memory · 62 swapped out · 63 present
type entry uint64

func (e entry) present() bool { return e>>63&1 == 1 }
func (e entry) swapped() bool { return e>>62&1 == 1 }

// file reports a page of a file or of shared memory; otherwise it is private.
func (e entry) file() bool { return e>>61&1 == 1 }

// exclusive reports that no other mapping has the page.
func (e entry) exclusive() bool { return e>>56&1 == 1 }

// pfn is the frame; false when the kernel hides it.
func (e entry) pfn() (uint64, bool) {
	pfn := uint64(e) & (1<<55 - 1)
	return pfn, e.present() && pfn != 0
}

// pagemap reads which pages of a process are present.
type pagemap struct {
	f    *os.File
	page uint64 // bytes
}

func openPagemap(root unix.Root, pid int) (*pagemap, error) {
	path := root.Path(fmt.Sprintf("/proc/%d/pagemap", pid))
	f, err := os.Open(path)
	if err != nil {
		return nil, unix.Explain("open", path, "CAP_SYS_PTRACE", err)
	}
	return &pagemap{f: f, page: uint64(unix.PageSize())}, nil
}

// read fills into with the pages from start on, and returns their number: fewer where the
// address space ends, none of a process that is ending.
func (p *pagemap) read(start uint64, into []entry) (int, error) {
	if len(into) == 0 {
		return 0, nil
	}
	raw := unsafe.Slice((*byte)(unsafe.Pointer(&into[0])), 8*len(into)) // as the kernel writes it
	n, err := p.f.ReadAt(raw, int64(start/p.page*8))
	if n == 0 && err != nil {
		return 0, unix.Explain("read", p.f.Name(), "", ending(err))
	}
	return n / 8, nil
}

func (p *pagemap) close() { _ = p.f.Close() }

// ending turns the end of pagemap into ErrGone: for a process without memory pagemap_read
// in fs/proc/task_mmu.c returns 0.
func ending(err error) error {
	if errors.Is(err, io.EOF) {
		return unix.ErrGone
	}
	return err
}

// frames reads the kernel's flags of page frames.
type frames struct{ f *os.File }

// openFrames needs CAP_SYS_ADMIN.
func openFrames(root unix.Root) (*frames, error) {
	path := root.Path("/proc/kpageflags")
	f, err := os.Open(path)
	if err != nil {
		return nil, unix.Explain("open", path, "CAP_SYS_ADMIN", err)
	}
	return &frames{f}, nil
}

// Bits of /proc/kpageflags (since 2.6.25; thp since 3.6), from
// include/uapi/linux/kernel-page-flags.h.
const (
	frameHead = 1 << 15
	frameTHP  = 1 << 22
)

// thpHead reports whether a frame is the first of a transparent huge page.
func (f *frames) thpHead(pfn uint64) (bool, error) {
	flags, err := f.flags(pfn)
	return flags&frameTHP != 0 && flags&frameHead != 0, err
}

func (f *frames) close() { _ = f.f.Close() }
