// SPDX-License-Identifier: Apache-2.0

package unix

import (
	"iter"
	"runtime/debug"
	"unsafe"

	sys "golang.org/x/sys/unix"
)

// Mincore reports for each page of a mapping of ours whether it is in memory, whichever
// process read it (mincore_page in mm/mincore.c): bit 0 of in's bytes. part begins at a
// page. For a file that we neither own nor may write it reports every page
// (can_do_mincore, since 5.2). For huge pages it reports only those mapped here.
func Mincore(part []byte, in []byte) error {
	_, _, errno := sys.Syscall(sys.SYS_MINCORE, uintptr(unsafe.Pointer(&part[0])), uintptr(len(part)), uintptr(unsafe.Pointer(&in[0])))
	if errno != 0 {
		return errno
	}
	return nil
}

// TouchEach reads a byte of a mapping at each offset, so that its page is there. It stops
// at a page that cannot be had (SIGBUS): the file ends before it, its disk fails, or there
// is no memory for it. It returns how many were read, and the offset that it tried last.
func TouchEach(mem []byte, offsets iter.Seq[int]) (done, last int) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			if _, fault := r.(interface{ Addr() uintptr }); !fault {
				panic(r)
			}
		}
	}()
	var sum byte
	for last = range offsets {
		sum += mem[last]
		done++
	}
	sink = sum
	return done, last
}

// sink keeps the reads of TouchEach.
var sink byte //nolint:unused // writing it is its use
