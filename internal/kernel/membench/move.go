// SPDX-License-Identifier: Apache-2.0

package membench

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unsafe"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// movedAtOnce is pages a call: the same as migrate's mover.
const movedAtOnce = 512

// Move maps memory on one node and moves it to another; only the calls of move_pages
// are timed. For huge pages the first 4 KiB are passed: they move whole.
func (p *Prober) Move(ctx context.Context, m Move) (Moved, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fail := func(err error) (Moved, error) {
		return Moved{}, fmt.Errorf("move %v from node %d to node %d: %w", m.Bytes, m.From, m.To, err)
	}
	if m.From < 0 || m.To < 0 || m.From == m.To || m.From > set.MaxNode || m.To > set.MaxNode {
		return fail(fmt.Errorf("between these nothing can be moved: %w", ErrNoNode))
	}
	b := Buffer{Bytes: m.Bytes, Policy: Bind, Nodes: set.FromNodes(m.From), Huge: m.Huge}
	if err := p.checkMove(m, b); err != nil {
		return fail(err)
	}
	if err := stage(p.clock, Staged.Prepare); err != nil {
		return fail(err)
	}
	r, err := p.region(ctx, b, key{ordinal: noOrdinal})
	if err == nil {
		defer p.cache.drop(r)
		err = p.huge(r, m)
	}
	if err = errors.Join(err, stage(p.clock, Staged.Measure)); err != nil {
		return fail(err)
	}
	moved := Moved{Size: pageOf(m)}
	err = onCPU(m.CPU, func() error { return p.move(ctx, m, r.mem, &moved) })
	if err != nil {
		return fail(err)
	}
	return moved, nil
}

// noOrdinal is for a buffer that no job may find.
const noOrdinal = -1

func pageOf(m Move) unit.Bytes {
	if m.Huge {
		return hugePage
	}
	return unit.Bytes(unix.PageSize())
}

func (p *Prober) checkMove(m Move, b Buffer) error {
	cpus, err := p.online()
	if err != nil {
		return err
	}
	nodes, err := p.nodes()
	if err != nil {
		return err
	}
	if m.Bytes < pageOf(m) {
		return fmt.Errorf("it has no whole page of %v (%w)", pageOf(m), ErrBadJob)
	}
	for _, err := range []error{checkNodes(set.FromNodes(m.From, m.To), nodes), checkCPU(m.CPU, cpus), checkBuffer(b, cpus, nodes)} {
		if err != nil {
			return err
		}
	}
	b.Nodes = set.FromNodes(m.To)
	return p.room(b)
}

// huge makes sure that the pages are huge.
func (p *Prober) huge(r *region, m Move) error {
	if !m.Huge {
		return nil
	}
	from := uint64(uintptr(unsafe.Pointer(&r.mem[0])))
	areas, err := procfs.ReadSmaps(&p.buf, p.root.Path("/proc/self/smaps"), procfs.MapsBudget())
	if err != nil {
		return unix.Explain("read", "/proc/self/smaps", "", err)
	}
	var got unit.Bytes
	for _, a := range areas {
		if a.Start < from+uint64(len(r.mem)) && a.End > from {
			got += a.AnonHuge
		}
	}
	if want := m.Bytes / hugePage * hugePage; got < want {
		return fmt.Errorf("%v of %v are huge pages: no more were free, or /sys/kernel/mm/transparent_hugepage/enabled is never (%w)", got, want, ErrNoRoom)
	}
	return nil
}

// move moves all pages, a batch at a time, and counts the results.
func (p *Prober) move(ctx context.Context, m Move, mem []byte, res *Moved) error {
	size := int(pageOf(m))
	addrs, nodes, status := make([]uintptr, 0, movedAtOnce), make([]int32, movedAtOnce), make([]int32, movedAtOnce)
	for i := range nodes {
		nodes[i] = int32(m.To)
	}
	for at := 0; at+size <= len(mem); {
		if err := ctx.Err(); err != nil {
			return err
		}
		for addrs = addrs[:0]; len(addrs) < movedAtOnce && at+size <= len(mem); at += size {
			addrs = append(addrs, uintptr(unsafe.Pointer(&mem[at])))
		}
		n := len(addrs)
		took, err := p.moveSome(m.CPU, addrs, nodes[:n], status[:n])
		if err != nil {
			return err
		}
		res.Elapsed += took
		for _, s := range status[:n] {
			if s == int32(m.To) {
				res.Pages++
			} else {
				res.Failed++
			}
		}
	}
	return nil
}

func (p *Prober) moveSome(cpu int, addrs []uintptr, nodes, status []int32) (time.Duration, error) {
	for i := range status {
		status[i] = -int32(sys.EBUSY) // when the kernel gives up, it writes nothing
	}
	began := p.clock.Now(cpu)
	_, err := p.pager.MovePages(0, addrs, nodes, status, unix.MoveOwn)
	took := p.clock.Now(cpu) - began
	if errors.Is(err, sys.EACCES) {
		return 0, fmt.Errorf("move pages: %w: this process may not use the node (Mems_allowed_list in /proc/self/status)", err)
	}
	return took, unix.Explain("move", "pages", "CAP_SYS_NICE where a container's filter guards move_pages", err)
}

// drop unmaps a region now.
func (c *cache) drop(r *region) {
	for i, k := range c.kept {
		if k == r {
			c.kept = append(c.kept[:i], c.kept[i+1:]...)
			r.unmap()
			return
		}
	}
}
