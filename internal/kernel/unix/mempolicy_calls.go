// SPDX-License-Identifier: Apache-2.0

package unix

import (
	"unsafe"

	sys "golang.org/x/sys/unix"

	"homenode/internal/set"
)

// nodemask is the pair of arguments that set_mempolicy and mbind take. Policies without
// nodes need none, not an empty mask.
func nodemask(nodes set.NodeSet) (unsafe.Pointer, uintptr) {
	if nodes.IsEmpty() {
		return nil, 0
	}
	mask := nodes.Words()
	return unsafe.Pointer(&mask[0]), maxnode(mask)
}

// maxnode is one more than the number of bits: get_nodes in mm/mempolicy.c reads
// maxnode − 1 of them (TestLiveHighestBit).
func maxnode(mask []uint64) uintptr { return uintptr(len(mask)*64 + 1) }

// GetMemPolicy reads the calling thread's policy. The mask must have room for every node
// that the kernel could have (kernel_get_mempolicy in mm/mempolicy.c refuses less).
func GetMemPolicy() (mode int, nodes set.NodeSet, err error) {
	var number int32
	var mask [(set.MaxNode + 64) / 64]uint64
	_, _, errno := sys.RawSyscall6(sys.SYS_GET_MEMPOLICY, uintptr(unsafe.Pointer(&number)), uintptr(unsafe.Pointer(&mask[0])),
		maxnode(mask[:]), 0, 0, 0)
	if errno != 0 {
		return 0, set.NodeSet{}, errno
	}
	return int(number), set.FromNodes(set.IDsOf(mask[:])...), nil
}

// SetMemPolicy sets the policy of the calling thread, which the caller holds with
// runtime.LockOSThread. The mode is a number, so that the one that
// GetMemPolicy returned can be restored.
func SetMemPolicy(mode int, nodes set.NodeSet) error {
	at, bits := nodemask(nodes)
	_, _, errno := sys.RawSyscall(sys.SYS_SET_MEMPOLICY, uintptr(mode), uintptr(at), bits)
	return orNil(errno)
}

// Mbind sets the policy of whole pages of this process. The flags are those of
// Pager.MovePages: with 0, pages that exist stay where they are.
func Mbind(mem []byte, p MemPolicy, nodes set.NodeSet, flags int) error {
	at, bits := nodemask(nodes)
	_, _, errno := sys.Syscall6(sys.SYS_MBIND, uintptr(unsafe.Pointer(&mem[0])), uintptr(len(mem)), uintptr(p.Number()),
		uintptr(at), bits, uintptr(flags))
	return orNil(errno)
}

func orNil(errno sys.Errno) error {
	if errno != 0 {
		return errno
	}
	return nil
}
