// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"bytes"

	"homenode/internal/kernel/unix"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// NumaStat is a cgroup's resident memory by node, those below it included.
type NumaStat struct {
	Anon, File map[int]unit.Bytes
}

// ParseNumaStat reads memory.numa_stat. v2 (since 5.9) counts bytes:
//
//	anon N0=1048576 N1=0
//	file N0=4096 N1=0
//
// v1 (since 3.0; the hierarchical_ lines since 3.17) counts pages of pageSize:
//
//	hierarchical_file=14406 N0=14406
//	hierarchical_anon=1935 N0=1935
//
// Without hierarchical_ lines (older v1 kernels), the plain ones are taken.
func ParseNumaStat(data []byte, v2 bool, pageSize unit.Bytes) (NumaStat, error) {
	scale, prefix := pageSize, "hierarchical_"
	if v2 {
		scale, prefix = 1, ""
	}
	if !bytes.Contains(data, []byte(prefix+"anon")) {
		prefix = ""
	}
	var s NumaStat
	for key, rest := range keyed(data) {
		name, _, _ := bytes.Cut([]byte(key), []byte("="))
		var into *map[int]unit.Bytes
		switch string(name) {
		case prefix + "anon":
			into = &s.Anon
		case prefix + "file":
			into = &s.File
		default:
			continue
		}
		by, err := parseByNode(rest, scale)
		if err != nil {
			return NumaStat{}, malformed("memory.numa_stat", rest, err)
		}
		*into = by
	}
	if s.Anon == nil || s.File == nil {
		return NumaStat{}, malformed("memory.numa_stat", data, errNoLine)
	}
	return s, nil
}

// NumaKinds is a v2 cgroup's memory by node, those below it included, with the kernel's
// own names (Documentation/admin-guide/cgroup-v2.rst, memory.numa_stat). File includes
// Shmem, Anon its huge pages; FileMapped is the part of File that processes map.
type NumaKinds struct {
	Anon, File, FileMapped, Shmem, KernelStack, PageTables, SlabReclaimable, SlabUnreclaimable map[int]unit.Bytes
}

// ParseNumaKinds reads more of memory.numa_stat than ParseNumaStat does. A line
// that is missing is nil: pagetables came with 5.11.
//
//	anon N0=1048576 N1=0
//	kernel_stack N0=16384 N1=0
func ParseNumaKinds(data []byte) (NumaKinds, error) {
	var k NumaKinds
	for key, rest := range keyed(data) {
		into := k.line(key)
		if into == nil {
			continue
		}
		by, err := parseByNode(rest, 1)
		if err != nil {
			return NumaKinds{}, malformed("memory.numa_stat", rest, err)
		}
		*into = by
	}
	return k, nil
}

func (k *NumaKinds) line(key string) *map[int]unit.Bytes {
	switch key {
	case "anon":
		return &k.Anon
	case "file":
		return &k.File
	case "file_mapped":
		return &k.FileMapped
	case "shmem":
		return &k.Shmem
	case "kernel_stack":
		return &k.KernelStack
	case "pagetables":
		return &k.PageTables
	case "slab_reclaimable":
		return &k.SlabReclaimable
	case "slab_unreclaimable":
		return &k.SlabUnreclaimable
	}
	return nil
}

// parseByNode reads "N0=12 N2=3".
func parseByNode(rest []byte, scale unit.Bytes) (map[int]unit.Bytes, error) {
	by := map[int]unit.Bytes{}
	for f := range bytes.FieldsSeq(rest) {
		key, val, _ := bytes.Cut(f, []byte("="))
		id, ok := bytes.CutPrefix(key, []byte("N"))
		node, err1 := number(id)
		n, err2 := number(val)
		if !ok || err1 != nil || err2 != nil || node > set.MaxNode || n > 1<<62/int64(scale) {
			return nil, errNumber
		}
		by[int(node)] = unit.Bytes(n) * scale
	}
	return by, nil
}

// MappedElsewhere is the memory mapped by a cgroup's processes that is not on these
// nodes. The kernel moves it, while the writer waits, when these become its cpuset.mems
// on v2 (cpuset_migrate_mm in kernel/cgroup/cpuset.c). 0 on v1, whose files do not show
// it.
func (l Layout) MappedElsewhere(id string, nodes set.NodeSet, buf *unix.Buffer) (elsewhere unit.Bytes, err error) {
	if !l.Memory.V2 {
		return 0, nil
	}
	data, err := buf.ReadFile(l.Path(l.Memory, id, "memory.numa_stat"))
	if err != nil {
		return 0, unix.Explain("read", id+" memory.numa_stat", "", err)
	}
	stat, err := ParseNumaKinds(data)
	if err != nil {
		return 0, err
	}
	for _, by := range []map[int]unit.Bytes{stat.Anon, stat.FileMapped} {
		for node, bytes := range by {
			if !nodes.Has(node) {
				elsewhere += bytes
			}
		}
	}
	return elsewhere, nil
}
