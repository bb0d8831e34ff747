// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
	"homenode/internal/machine"
	"homenode/internal/snapshot"
	"homenode/internal/unit"
)

// nodes reads what a window does not have about each node.
func (s *Snapshotter) nodes(m machine.Machine, d delta) []snapshot.Node {
	low, err := parsed(s, "/proc/zoneinfo", procfs.ParseZoneinfo)
	out := make([]snapshot.Node, len(m.Nodes))
	for i, n := range m.Nodes {
		v := &out[i]
		v.ID = n.ID
		v.Pools = s.pools(n.ID)
		v.Memory = s.kindsOf(n.ID, v.Pools)
		v.Numastat = numastatSince(d, n.ID)
		pages, ok := low[n.ID]
		v.LowFree = opt(unit.OptOf(unit.Bytes(pages)*s.reader.pageSize(), ok), err, "/proc/zoneinfo")
		v.Traffic = unknownTraffic("the memory controllers' counters were not requested")
	}
	return out
}

// kindsOf splits a node's memory so that no byte is in two kinds:
//
//  1. FilePages includes shmem and the swap cache. A page of the swap cache that is
//     mapped is in AnonPages too; one that is not ends up in Other.
//  2. AnonPages and Shmem include their huge pages.
//  3. hugetlb pages are in none of the others: all pools, of all sizes.
func (s *Snapshotter) kindsOf(id int, pools []snapshot.HugePool) snapshot.Kinds {
	const from = "node meminfo"
	m, err := parsed(s, fmt.Sprintf("/sys/devices/system/node/node%d/meminfo", id), procfs.ParseNodeMeminfo)
	k := snapshot.Kinds{
		Total: opt(m.Total, err, from), Free: opt(m.Free, err, from), Anon: opt(m.Anon, err, from),
		Shmem: opt(m.Shmem, err, from), Slab: opt(m.Slab, err, from), SlabReclaimable: opt(m.SlabReclaimable, err, from),
		AnonHuge: opt(m.AnonHuge, err, from), Dirty: opt(m.Dirty, err, from), MappedFile: opt(m.Mapped, err, from),
	}
	k.File = opt(minus(m.File, m.Shmem, unit.Some(m.SwapCached.Or(0))), err, from)
	k.Kernel = opt(plus(m.KernelStack, m.PageTables, unit.Some(m.SecPageTables.Or(0))), err, from)
	k.Huge, k.HugeFree = poolBytes(pools)
	if len(pools) == 0 && m.HugeTotal.Or(0) > 0 {
		k.Huge = unit.UnknownValue[unit.Bytes]("node meminfo counts huge pages, but nodeN/hugepages, which has their sizes, is missing")
		k.HugeFree = k.Huge
	}
	k.Other = rest(k)
	return k
}

func plus(parts ...procfs.Bytes) procfs.Bytes {
	var sum unit.Bytes
	for _, p := range parts {
		b, ok := p.Get()
		if !ok {
			return procfs.Bytes{}
		}
		sum += b
	}
	return unit.Some(sum)
}

// minus is never below 0: the kernel's counters are not read at one instant.
func minus(whole procfs.Bytes, parts ...procfs.Bytes) procfs.Bytes {
	w, ok1 := whole.Get()
	p, ok2 := plus(parts...).Get()
	return unit.OptOf(max(0, w-p), ok1 && ok2)
}

// rest is what no kind accounts for.
func rest(k snapshot.Kinds) unit.Value[unit.Bytes] {
	left, ok := k.Total.Get()
	for _, v := range []unit.Value[unit.Bytes]{k.Free, k.Anon, k.File, k.Shmem, k.Slab, k.Kernel, k.Huge} {
		b, known := v.Get()
		if ok = ok && known; !ok {
			return unit.UnknownValue[unit.Bytes]("not all kinds of memory are known")
		}
		left -= b
	}
	return unit.Measured(max(0, left), "node meminfo, what is left")
}

// poolBytes adds up the pools of all sizes. nr_hugepages includes the surplus.
func poolBytes(pools []snapshot.HugePool) (all, free unit.Value[unit.Bytes]) {
	const from = "node hugepages"
	var a, f unit.Bytes
	for _, p := range pools {
		total, ok1 := p.Total.Get()
		unused, ok2 := p.Free.Get()
		if !ok1 || !ok2 {
			why := unit.UnknownValue[unit.Bytes]("a pool of huge pages could not be read")
			return why, why
		}
		a += unit.Bytes(total) * p.PageSize
		f += unit.Bytes(unused) * p.PageSize
	}
	return unit.Measured(a, from), unit.Measured(f, from)
}

// pools reads nodeN/hugepages/hugepages-SIZEkB (since 2.6.32). No directory: the
// kernel has no huge pages.
func (s *Snapshotter) pools(id int) []snapshot.HugePool {
	dir := fmt.Sprintf("/sys/devices/system/node/node%d/hugepages", id)
	entries, err := os.ReadDir(s.cfg.Reader.Root.Path(dir))
	if err != nil && unix.Classify(err) != ErrGone {
		s.problem(unix.Explain("read", dir, "", err))
	}
	var out []snapshot.HugePool
	for _, e := range entries {
		text, _ := strings.CutPrefix(strings.TrimSuffix(e.Name(), "kB"), "hugepages-")
		kib, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			continue
		}
		read := func(file string) unit.Value[uint64] { return number[uint64](s, dir+"/"+e.Name()+"/"+file) }
		out = append(out, snapshot.HugePool{PageSize: unit.Bytes(kib) * unit.KiB,
			Total: read("nr_hugepages"), Free: read("free_hugepages"), Surplus: read("surplus_hugepages")})
	}
	slices.SortFunc(out, func(a, b snapshot.HugePool) int { return cmp.Compare(a.PageSize, b.PageSize) })
	return out
}

func numastatSince(d delta, id int) snapshot.Numastat {
	if d.was == nil {
		return numastatUnknown(oneReading)
	}
	a, b := d.was.numastat[id], d.now.numastat[id]
	if err := errors.Join(a.err, b.err); err != nil {
		return numastatUnknown(err.Error())
	}
	const from = "numastat"
	return snapshot.Numastat{
		Hit: since(a.v.Hit, b.v.Hit, from), Miss: since(a.v.Miss, b.v.Miss, from), Foreign: since(a.v.Foreign, b.v.Foreign, from),
		InterleaveHit: since(a.v.InterleaveHit, b.v.InterleaveHit, from),
		LocalNode:     since(a.v.LocalNode, b.v.LocalNode, from), OtherNode: since(a.v.OtherNode, b.v.OtherNode, from),
	}
}

func numastatUnknown(why string) snapshot.Numastat {
	u := unit.UnknownValue[uint64](why)
	return snapshot.Numastat{Hit: u, Miss: u, Foreign: u, InterleaveHit: u, LocalNode: u, OtherNode: u}
}
