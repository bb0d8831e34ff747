// SPDX-License-Identifier: Apache-2.0

package membench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"unsafe"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// place sets the policy of a mapping.
func place(mem []byte, policy Policy, nodes set.NodeSet) error {
	err := unix.Mbind(mem, policy, nodes, 0)
	object := fmt.Sprintf("memory by policy %s of nodes %s", policy, nodes)
	switch {
	case errors.Is(err, sys.EINVAL) && policy.Since() != "":
		return fmt.Errorf("place %s: %w: the kernel is older than %s, or this process may not use these nodes (Mems_allowed_list in /proc/self/status)", object, err, policy.Since())
	case errors.Is(err, sys.EINVAL):
		return fmt.Errorf("place %s: %w: this process may not use these nodes (Mems_allowed_list in /proc/self/status)", object, err)
	}
	return unix.Explain("place", object, "CAP_SYS_NICE where a container's filter guards mbind", err)
}

// spare is left on a node beyond a buffer: page tables, the kernel, and what other
// programs take meanwhile.
func spare(b unit.Bytes) unit.Bytes { return 16*unit.MiB + b/256 }

// Free is the memory that a buffer on the node can have at once: what is free, down to
// the low watermark, below which the kernel begins to reclaim (and may swap); page
// cache that could be dropped is not included. It is no more than this process's
// cgroups allow: a cgroup kills a process where a node would reclaim.
func (p *Prober) Free(node int) (unit.Bytes, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	free, err := p.free(node)
	if err != nil {
		return 0, err
	}
	limit, err := cgroup.ReadMemoryRoom(p.root)
	if r, ok := limit.Get(); ok {
		free = min(free, r.Left())
	}
	return free, err
}

func (p *Prober) free(node int) (unit.Bytes, error) {
	path := fmt.Sprintf("/sys/devices/system/node/node%d/meminfo", node)
	m, err := unix.Parsed(&p.buf, p.root.Path(path), procfs.ParseNodeMeminfo)
	if errors.Is(err, sys.ENOENT) {
		return 0, fmt.Errorf("read free memory of node %d: %w: there is no %s", node, ErrNoNode, path)
	}
	if err != nil {
		return 0, err
	}
	free, known := m.Free.Get()
	if !known {
		return 0, fmt.Errorf("parse %s: no MemFree (%w)", path, unix.ErrMalformed)
	}
	return max(0, free-p.lowWatermark(node)), nil
}

// lowWatermark is the node's, of all zones; 0 if it cannot be read.
func (p *Prober) lowWatermark(node int) unit.Bytes {
	low, err := unix.Parsed(&p.buf, p.root.Path("/proc/zoneinfo"), procfs.ParseZoneinfo)
	if err != nil {
		return 0
	}
	return unit.Bytes(low[node]) * unit.Bytes(unix.PageSize())
}

// room refuses what does not fit. Interleaving needs its share on each node. Memory
// that other policies spread over several nodes, or may put anywhere, fits if all of
// these together have room. The cgroups of this process must allow it as well. Kept
// buffers are dropped for it.
func (p *Prober) room(b Buffer) error {
	nodes := b.Nodes
	if pol := b.policy(); pol == Local || pol == Preferred || pol == PreferredMany {
		all, err := p.nodes()
		if err != nil {
			return err
		}
		nodes = all
	}
	for {
		err := p.fits(b, nodes)
		if err == nil {
			err = p.allowed(b)
		}
		if !errors.Is(err, ErrNoRoom) || !p.cache.dropOldest() {
			return err
		}
	}
}

func (p *Prober) fits(b Buffer, nodes set.NodeSet) error {
	var all unit.Bytes
	share := b.size() / unit.Bytes(max(1, nodes.Len()))
	for n := range nodes.All() {
		free, err := p.free(n)
		if err != nil {
			return err
		}
		if b.policy() == Interleave {
			if err := short(share, free, fmt.Sprintf("node %d", n)); err != nil {
				return err
			}
		}
		all += free
	}
	where := "node " + nodes.String()
	if nodes.Len() > 1 {
		where = "nodes " + nodes.String() + " together"
	}
	return short(b.size(), all, where)
}

// allowed refuses a buffer for which the memory limit of a cgroup would kill this
// process.
func (p *Prober) allowed(b Buffer) error {
	limit, err := cgroup.ReadMemoryRoom(p.root)
	r, limited := limit.Get()
	if err != nil || !limited {
		return err
	}
	size := b.size()
	if need := size + spare(size); need > r.Left() {
		return fmt.Errorf("%w: the test needs %v (%v and %v to spare), %v: %v short", ErrNoRoom, need, size, spare(size), r, need-r.Left())
	}
	return nil
}

func short(size, free unit.Bytes, where string) error {
	need := size + spare(size)
	if free >= need {
		return nil
	}
	return fmt.Errorf("%w: the test needs %v on %s (%v and %v to spare), %v are free: %v short", ErrNoRoom, need, where, size, spare(size), free, need-free)
}

// touch writes to each page. With local that decides the node, so it is done on the
// CPU.
func touch(ctx context.Context, r *region, b Buffer) error {
	work := func() error {
		page := unix.PageSize()
		for i := 0; i < len(r.mem); i += page {
			if i/page%linesToLook == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			*(*uint64)(unsafe.Pointer(&r.mem[i+second])) = 1
		}
		return nil
	}
	if b.policy() != Local {
		return work()
	}
	return onCPU(b.TouchCPU, work)
}

// onCPU runs work on a thread pinned to a CPU.
func onCPU(cpu int, work func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its pinning
		err := pin(cpu)
		if err == nil {
			err = work()
		}
		done <- err
	}()
	return <-done
}

func pin(cpu int) error {
	err := unix.LiveAffinity{}.SetAffinity(0, set.FromCPUs(cpu).Words())
	if err == sys.EINVAL {
		return fmt.Errorf("pin a thread to CPU %d: %w: it is offline, or not in this process's cpuset (Cpus_allowed_list in /proc/self/status)", cpu, ErrNoCPU)
	}
	return unix.Explain("pin", fmt.Sprintf("a thread to CPU %d", cpu), "CAP_SYS_NICE", err)
}

// lookedAt is the number of pages whose node is read.
const lookedAt = 128

// verify reads the nodes of some pages from the kernel. Only bind and interleaving
// promise them.
func (p *Prober) verify(r *region, b Buffer) error {
	if pol := b.policy(); pol != Bind && pol != Interleave && pol != WeightedInterleave {
		return nil
	}
	where, err := p.whereabouts(r.mem)
	if err != nil {
		return err
	}
	elsewhere, count := 0, map[int32]int{}
	for _, n := range where {
		count[n]++
		if n < 0 || !b.Nodes.Has(int(n)) {
			elsewhere++
		}
	}
	if elsewhere == 0 {
		return nil
	}
	return fmt.Errorf("place %v on nodes %s: of %d pages looked at %s: the nodes have no room, or the policy did not hold", b.size(), b.Nodes, len(where), spell(count))
}

// spell is "12 are on node 0, 3 are nowhere (ENOENT)".
func spell(count map[int32]int) string {
	var parts []string
	for _, n := range slices.Sorted(maps.Keys(count)) {
		if n < 0 {
			parts = append(parts, fmt.Sprintf("%d are nowhere (%s)", count[n], sys.ErrnoName(sys.Errno(-n))))
			continue
		}
		parts = append(parts, fmt.Sprintf("%d are on node %d", count[n], n))
	}
	return strings.Join(parts, ", ")
}

func (p *Prober) whereabouts(mem []byte) ([]int32, error) {
	page := unix.PageSize()
	pages := len(mem) / page
	n := min(pages, lookedAt)
	addrs, where := make([]uintptr, n), make([]int32, n)
	for i := range addrs {
		addrs[i] = uintptr(unsafe.Pointer(&mem[pages*i/n*page]))
		where[i] = -int32(sys.ENOENT)
	}
	_, err := p.pager.MovePages(0, addrs, nil, where, 0)
	return where, unix.Explain("ask", "the nodes of pages with move_pages", "CAP_SYS_NICE where a container's filter guards it", err)
}
