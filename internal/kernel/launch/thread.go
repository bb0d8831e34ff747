// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"errors"
	"fmt"
	"unsafe"

	sys "golang.org/x/sys/unix"

	"homenode/internal/set"
)

// thread is the calling thread, for which the kernel keeps CPUs and policy. The
// caller holds it with runtime.LockOSThread. Tests have a fake one.
type thread interface {
	affinity() (set.CPUSet, error)
	setAffinity(set.CPUSet) error
	policy() (mode int, nodes set.NodeSet, err error)
	setPolicy(mode int, nodes set.NodeSet) error
}

// liveThread is that of the running kernel.
type liveThread struct{}

const wordBits = 64

// words are a set's bits as the kernel reads them, one word at least.
func words[K set.Kind](s set.Set[K]) []uint64 {
	mask := make([]uint64, 1)
	for id := range s.All() {
		for id/wordBits >= len(mask) {
			mask = append(mask, 0)
		}
		mask[id/wordBits] |= 1 << (id % wordBits)
	}
	return mask
}

// ids are the bits that are set.
func ids(mask []uint64) (out []int) {
	for i := range len(mask) * wordBits {
		if mask[i/wordBits]>>(i%wordBits)&1 == 1 {
			out = append(out, i)
		}
	}
	return out
}

func (liveThread) affinity() (set.CPUSet, error) {
	var mask [(set.MaxCPU + wordBits) / wordBits]uint64
	n, _, errno := sys.RawSyscall(sys.SYS_SCHED_GETAFFINITY, 0, unsafe.Sizeof(mask), uintptr(unsafe.Pointer(&mask[0])))
	if errno != 0 {
		return set.CPUSet{}, errno
	}
	return set.FromCPUs(ids(mask[:n/8])...), nil
}

func (liveThread) setAffinity(cpus set.CPUSet) error {
	mask := words(cpus)
	_, _, errno := sys.RawSyscall(sys.SYS_SCHED_SETAFFINITY, 0, uintptr(8*len(mask)), uintptr(unsafe.Pointer(&mask[0])))
	return orNil(errno)
}

// policy needs room for every node that the kernel could have (kernel_get_mempolicy
// in mm/mempolicy.c refuses less).
func (liveThread) policy() (int, set.NodeSet, error) {
	var mode int32
	var mask [(set.MaxNode + wordBits) / wordBits]uint64
	_, _, errno := sys.RawSyscall6(sys.SYS_GET_MEMPOLICY, uintptr(unsafe.Pointer(&mode)), uintptr(unsafe.Pointer(&mask[0])),
		maxnode(mask[:]), 0, 0, 0)
	if errno != 0 {
		return 0, set.NodeSet{}, errno
	}
	return int(mode), set.FromNodes(ids(mask[:])...), nil
}

func (liveThread) setPolicy(mode int, nodes set.NodeSet) error {
	at, bits := nodemask(nodes)
	_, _, errno := sys.RawSyscall(sys.SYS_SET_MEMPOLICY, uintptr(mode), uintptr(at), bits)
	return orNil(errno)
}

// nodemask is the pair of arguments that set_mempolicy and mbind take. Policies
// without nodes want none, not an empty mask.
func nodemask(nodes set.NodeSet) (unsafe.Pointer, uintptr) {
	if nodes.IsEmpty() {
		return nil, 0
	}
	mask := words(nodes)
	return unsafe.Pointer(&mask[0]), maxnode(mask)
}

// maxnode is one more than the bits there are: get_nodes in mm/mempolicy.c reads
// maxnode − 1 of them (TestLiveHighestBit).
func maxnode(mask []uint64) uintptr { return uintptr(len(mask)*wordBits + 1) }

func orNil(errno sys.Errno) error {
	if errno != 0 {
		return errno
	}
	return nil
}

// apply places the thread and returns how to put back what was replaced. On error
// nothing is left changed.
func apply(t thread, p Placement) (restore func() error, err error) {
	var undo []func() error
	restore = func() error {
		var errs []error
		for _, u := range undo {
			errs = append(errs, u())
		}
		return errors.Join(errs...)
	}
	if !p.CPUs.IsEmpty() {
		before, err := t.affinity()
		if err == nil {
			err = t.setAffinity(p.CPUs)
		}
		if err != nil {
			return nil, fmt.Errorf("run on CPUs %s: %w", p.CPUs, err)
		}
		undo = append(undo, func() error { return t.setAffinity(before) })
	}
	if p.Policy != "" {
		mode, nodes, err := t.policy()
		if err == nil {
			err = t.setPolicy(p.Policy.number(), p.Nodes)
		}
		if err != nil {
			return nil, errors.Join(refused(p.Policy, err), restore())
		}
		undo = append(undo, func() error { return t.setPolicy(mode, nodes) })
	}
	return restore, nil
}
