// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"encoding/binary"
	"errors"
	"runtime"
	"unsafe"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/unix"
)

// errNoScan: the kernel has no PAGEMAP_SCAN.
var errNoScan = errors.New("no PAGEMAP_SCAN")

// scanArg is struct pm_scan_arg, and scanRegion struct page_region, of
// include/uapi/linux/fs.h (since 6.7).
type (
	scanArg struct {
		size, flags, start, end, walkEnd, vec, vecLen, maxPages uint64
		inverted, mask, anyOf, returned                         uint64
	}
	scanRegion struct{ start, end, categories uint64 } //nolint:unused // the kernel writes all three
)

const (
	ioctlPagemapScan = 0xc0606610 // _IOWR('f', 16, struct pm_scan_arg)
	scanPresent      = 1 << 3     // PAGE_IS_PRESENT
	scanSwapped      = 1 << 4     // PAGE_IS_SWAPPED
)

// scan returns the ranges between two addresses that have pages, present or swapped out.
// It skips holes by whole page tables, where reading pagemap takes 8 bytes a page: 2 GiB
// for a TiB.
func (p *pagemap) scan(start, end uint64, each func(from, to uint64) error) error {
	var found [512]scanRegion
	var pin runtime.Pinner // the kernel gets its address as a number
	pin.Pin(&found)
	defer pin.Unpin()
	for start < end {
		arg := scanArg{size: uint64(unsafe.Sizeof(scanArg{})), start: start, end: end, vec: uint64(uintptr(unsafe.Pointer(&found))), vecLen: uint64(len(found)),
			anyOf: scanPresent | scanSwapped, returned: scanPresent | scanSwapped}
		n, _, errno := sys.Syscall(sys.SYS_IOCTL, p.f.Fd(), ioctlPagemapScan, uintptr(unsafe.Pointer(&arg)))
		switch {
		case errno == sys.EINTR:
			continue
		case errno == sys.ENOTTY || errno == sys.EINVAL:
			return errNoScan
		case errno != 0:
			return unix.Explain("scan", p.f.Name(), "", errno)
		case arg.walkEnd <= start: // a process that is ending has no page tables
			return unix.ErrGone
		}
		if err := eachRegion(found[:n], each); err != nil {
			return err
		}
		start = arg.walkEnd
	}
	return nil
}

// eachRegion joins regions that differ only in their categories.
func eachRegion(found []scanRegion, each func(from, to uint64) error) error {
	for i := 0; i < len(found); {
		r := found[i]
		for i++; i < len(found) && found[i].start == r.end; i++ {
			r.end = found[i].end
		}
		if err := each(r.start, r.end); err != nil {
			return err
		}
	}
	return nil
}

// frameTail is another bit of /proc/kpageflags: the frame is not the first of its page.
const frameTail = 1 << 16

// flags returns the kernel's flags of a frame.
func (f *frames) flags(pfn uint64) (uint64, error) {
	var word [8]byte
	if _, err := f.f.ReadAt(word[:], int64(8*pfn)); err != nil {
		return 0, unix.Explain("read", f.f.Name(), "", err)
	}
	return binary.NativeEndian.Uint64(word[:]), nil
}
