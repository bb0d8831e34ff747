// SPDX-License-Identifier: Apache-2.0

package membench

import (
	"context"
	"fmt"
	"slices"
	"unsafe"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
	"homenode/internal/set"
	"homenode/internal/unit"
)

const hugePage = 2 << 20 // bytes; PMD size on x86-64, and on arm64 with 4 KiB pages

// region is a buffer in memory.
type region struct {
	key    key
	mapped []byte // with room to align
	mem    []byte // whole pages
	lines  int
	cycle  bool // the chase's pointers are there
	// next is where the chase of the last job that was alone on it ended. The next
	// chase continues there: a cache still has the lines just passed, which are the
	// last of the cycle to come again. If it always began at the same place, a short
	// chase would find its own lines of the job before.
	next unsafe.Pointer
	busy bool // in a job
}

// key identifies kept buffers that are as good as a new one. ordinal distinguishes
// those of one job.
type key struct {
	bytes   unit.Bytes
	policy  Policy
	nodes   set.NodeSet
	huge    bool
	cpu     int // of the first touch; with local only
	ordinal int
}

func (r *region) base() unsafe.Pointer { return unsafe.Pointer(&r.mem[0]) }

// cache keeps regions, the least recently used first.
type cache struct {
	kept  []*region
	limit unit.Bytes
}

// cacheLimit is an eighth of the memory: kept buffers are not available to the programs
// of this machine.
func (p *Prober) cacheLimit() (limit unit.Bytes) {
	nodes, err := p.nodes()
	if err != nil {
		return 0
	}
	for n := range nodes.All() {
		m, err := unix.Parsed(&p.buf, p.root.Path(fmt.Sprintf("/sys/devices/system/node/node%d/meminfo", n)), procfs.ParseNodeMeminfo)
		if err == nil {
			limit += m.Total.Or(0) / 8
		}
	}
	return limit
}

// take finds a region that no job uses.
func (c *cache) take(k key) *region {
	i := slices.IndexFunc(c.kept, func(r *region) bool { return r.key == k && !r.busy })
	if i < 0 {
		return nil
	}
	r := c.kept[i]
	c.kept = append(slices.Delete(c.kept, i, i+1), r)
	r.busy = true
	return r
}

// release ends a job's use of its regions, and drops regions above the limit.
func (c *cache) release(used []*region) {
	for _, r := range used {
		r.busy = false
	}
	c.shrink(c.limit)
}

func (c *cache) shrink(limit unit.Bytes) {
	for c.size() > limit && c.dropOldest() {
	}
}

func (c *cache) size() (n unit.Bytes) {
	for _, r := range c.kept {
		n += unit.Bytes(len(r.mem))
	}
	return n
}

// dropOldest unmaps a region that no job uses; false if there is none.
func (c *cache) dropOldest() bool {
	i := slices.IndexFunc(c.kept, func(r *region) bool { return !r.busy })
	if i < 0 {
		return false
	}
	c.kept[i].unmap()
	c.kept = slices.Delete(c.kept, i, i+1)
	return true
}

func (r *region) unmap() {
	sys.Munmap(r.mapped) // fails only for what is not mapped
	r.mapped, r.mem = nil, nil
}

// regions makes a job's buffers, and the cycles of those that are chased.
func (p *Prober) regions(ctx context.Context, j Job) ([]*region, error) {
	var all []*region
	count := map[key]int{}
	for i, b := range j.Buffers {
		k := key{bytes: b.Bytes, policy: b.policy(), nodes: b.Nodes, huge: b.Huge}
		if k.policy == Local {
			k.cpu = b.TouchCPU
		}
		same := k
		k.ordinal = count[same]
		count[same]++
		r, err := p.region(ctx, b, k)
		if err == nil {
			all = append(all, r)
			err = r.link(ctx, j.Threads, i)
		}
		if ctx.Err() != nil {
			return all, ctx.Err()
		}
		if err != nil {
			return all, fmt.Errorf("map buffer %d: %w", i, err)
		}
	}
	return all, nil
}

func (p *Prober) region(ctx context.Context, b Buffer, k key) (*region, error) {
	if r := p.cache.take(k); r != nil {
		return r, nil
	}
	if err := p.room(b); err != nil {
		return nil, err
	}
	r, err := mapRegion(b)
	if err != nil {
		return nil, err
	}
	r.key, r.busy = k, true
	err = place(r.mem, b.policy(), b.Nodes)
	if err == nil {
		err = touch(ctx, r, b)
	}
	if err == nil {
		err = p.verify(r, b)
	}
	if err != nil {
		r.unmap()
		return nil, err
	}
	p.cache.kept = append(p.cache.kept, r)
	return r, nil
}

// mapRegion reserves addresses. Huge pages need memory that begins at a multiple of
// their size.
func mapRegion(b Buffer) (*region, error) {
	size, slack := int(b.size()), 0
	if b.Huge {
		slack = hugePage
	}
	mapped, err := sys.Mmap(-1, 0, size+slack, sys.PROT_READ|sys.PROT_WRITE, sys.MAP_PRIVATE|sys.MAP_ANONYMOUS|sys.MAP_NORESERVE)
	if err != nil {
		return nil, unix.Explain("map", b.size().String(), "a larger limit of addresses (ulimit -v)", err)
	}
	r := &region{mapped: mapped, lines: int(b.Bytes) / line}
	skip := 0
	if b.Huge {
		skip = int(-uintptr(unsafe.Pointer(&mapped[0])) % hugePage)
	}
	r.mem = mapped[skip : skip+size]
	if err := advise(r.mem, b.Huge); err != nil {
		r.unmap()
		return nil, err
	}
	return r, nil
}

// advise requests huge pages, or forbids them. A kernel without them returns EINVAL:
// then they are forbidden anyway.
func advise(mem []byte, huge bool) error {
	advice := sys.MADV_NOHUGEPAGE
	if huge {
		advice = sys.MADV_HUGEPAGE
	}
	if err := sys.Madvise(mem, advice); err != nil && huge {
		return fmt.Errorf("ask for huge pages: %w: this kernel has no transparent huge pages", err)
	}
	return nil
}

// link builds the cycle if a thread chases this buffer.
func (r *region) link(ctx context.Context, threads []Thread, index int) error {
	chased := slices.ContainsFunc(threads, func(t Thread) bool {
		return t.Buffer == index && (t.Work == Chase || t.Work == Transfer)
	})
	if !chased || r.cycle {
		return nil
	}
	err := buildCycle(r.base(), r.lines, uint64(r.key.ordinal)+1, ctx.Err)
	r.cycle = err == nil
	return err
}
