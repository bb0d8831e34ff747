// SPDX-License-Identifier: Apache-2.0

package unix

import (
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
