// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"errors"
	"fmt"
	"slices"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
)

// moveChunk does the next aligned 2 MiB of an area, or one page where pages are
// as large as that:
//
//  1. Ask where each page is; nothing is passed on that is home or not there.
//  2. Move what is elsewhere in batches.
//
// A budget that ends within the chunk leaves it for the next call.
func (m *Mover) moveChunk(pid int, a *area) error {
	end, where, err := m.askChunk(pid, a, a.next) // (1)
	if err != nil {
		return err
	}
	todo := m.pick(m.addrs, where)
	for len(todo) > 0 && m.budget() > 0 { // (2)
		n := min(len(todo), m.batch.pages, max(1, int(m.budget()/unit.Bytes(a.size))))
		if err := m.moveBatch(pid, a, todo[:n]); err != nil {
			return err
		}
		todo = todo[n:]
	}
	if len(todo) == 0 {
		a.next = end
	} else {
		a.next = uint64(todo[0])
	}
	return nil
}

// askChunk asks where the pages of the chunk at next are; m.addrs are theirs.
func (m *Mover) askChunk(pid int, a *area, next uint64) (end uint64, where []int32, err error) {
	end = min(a.end, (next/hugePage+1)*hugePage)
	if a.size >= hugePage {
		end = min(a.end, next+a.size)
	}
	m.addrs = m.addrs[:0]
	for at := next; at < end; at += a.size {
		m.addrs = append(m.addrs, uintptr(at))
	}
	where, err = m.ask(pid, m.addrs)
	return end, where, err
}

// hugeRun is how many huge pages go into one call: 16 MiB take 10 ms at MAO's
// 0.65 s/GB. Each call also has a fixed cost (lru_cache_disable in mm/swap.c
// waits for every CPU), which one huge page a call would pay 8 times as often.
const hugeRun = 8

// moveHuge moves the huge pages that come next in an area:
//
//  1. A chunk whose 512 pages are all elsewhere, on one node, may be a huge page.
//  2. Pass only the first page of each: a huge page moves as a whole (passing all
//     of its addresses is 20 times slower).
//  3. Ask for the last page of each. Home: so is the whole of it.
//
// It stops before the first chunk that is no huge page, or did not move as one:
// that is moveChunk's.
func (m *Mover) moveHuge(pid int, a *area) error {
	var heads, lasts []uintptr
	room := max(1, int(m.budget()/hugePage))
	for next := a.next; len(heads) < min(hugeRun, room) && next < a.end; next += hugePage { // (1)
		_, where, err := m.askChunk(pid, a, next)
		if err != nil {
			return err
		}
		if !m.maybeHuge(next, where, a) {
			break
		}
		heads = append(heads, uintptr(next))
		lasts = append(lasts, uintptr(next+hugePage-a.size))
	}
	if len(heads) == 0 {
		return nil
	}
	_, status, err := m.call(pid, heads, m.target(unit.Bytes(len(heads))*hugePage)) // (2)
	if err != nil {
		return err
	}
	moved := slices.Clone(status)
	where, err := m.ask(pid, lasts) // (3)
	if err != nil {
		return err
	}
	whole := true
	for i, last := range where {
		home := m.home(moved[i])
		if home && m.home(last) {
			m.account(a, int(hugePage/a.size))
		} else if whole = false; home {
			m.account(a, 1) // a small page that looked like a huge one's first
		}
		if whole {
			a.next += hugePage
		}
	}
	return nil
}

// home says that a status is a node the page may stay on.
func (m *Mover) home(status int32) bool { return status >= 0 && !m.elsewhere(int(status)) }

// pick returns the addresses of pages that are elsewhere, in a slice of its own.
func (m *Mover) pick(addrs []uintptr, where []int32) []uintptr {
	var todo []uintptr
	for i, node := range where {
		if node >= 0 && m.elsewhere(int(node)) {
			todo = append(todo, addrs[i])
		}
	}
	return todo
}

// maybeHuge is what a huge page looks like from outside.
func (m *Mover) maybeHuge(next uint64, where []int32, a *area) bool {
	return next%hugePage == 0 && len(where) > 1 && uint64(len(where))*a.size == hugePage &&
		where[0] >= 0 && m.elsewhere(int(where[0])) &&
		!slices.ContainsFunc(where, func(n int32) bool { return n != where[0] })
}

// moveBatch moves pages to one node. Where the kernel gives up midway, it is
// asked where the pages are, and what is still elsewhere is tried again as long
// as that gets somewhere; pages that failed for a reason are counted by it.
func (m *Mover) moveBatch(pid int, a *area, todo []uintptr) error {
	node := m.target(unit.Bytes(len(todo)) * unit.Bytes(a.size))
	for try := 0; len(todo) > 0; try++ {
		left, status, err := m.call(pid, todo, node)
		if err != nil {
			return err
		}
		again, busy := m.sort(a, todo, status)
		if len(again) == 0 {
			return nil
		}
		if left > 0 || busy {
			if again, err = m.stillElsewhere(pid, a, again); err != nil {
				return err
			}
		}
		if try > 0 && len(again) == len(todo) || try == tries {
			m.fail(a, len(again), -int32(sys.EBUSY))
			return nil
		}
		todo = again
	}
	return nil
}

// unset marks a status the kernel did not write: it did not get that far.
const unset = -9999

// sort counts what moved and what failed, and returns what to try again.
func (m *Mover) sort(a *area, todo []uintptr, status []int32) (again []uintptr, busy bool) {
	for i, s := range status {
		switch {
		case s == -int32(sys.EBUSY) || s == unset:
			again, busy = append(again, todo[i]), true
		case s == -int32(sys.ENOENT) || s == -int32(sys.EFAULT):
			m.forget(a, 1) // unmapped or swapped out meanwhile
		case s < 0:
			m.fail(a, 1, s)
		case m.elsewhere(int(s)):
			again = append(again, todo[i])
		default:
			m.account(a, 1)
		}
	}
	return again, busy
}

// stillElsewhere asks where pages are and counts those that are home by now.
func (m *Mover) stillElsewhere(pid int, a *area, addrs []uintptr) ([]uintptr, error) {
	where, err := m.ask(pid, addrs)
	if err != nil {
		return nil, err
	}
	rest := m.pick(addrs, where)
	for _, node := range where {
		switch {
		case node < 0:
			m.forget(a, 1)
		case !m.elsewhere(int(node)):
			m.account(a, 1)
		}
	}
	return rest, nil
}

func (m *Mover) account(a *area, pages int) {
	m.res.Moved += unit.Bytes(uint64(pages) * a.size)
	m.forget(a, pages)
}

// forget takes pages out of what numa_maps counted; new ones may have come since.
func (m *Mover) forget(a *area, pages int) { a.elsewhere -= min(a.elsewhere, uint64(pages)) }

func (m *Mover) fail(a *area, pages int, status int32) {
	m.res.Failed[name(status)] += unit.Bytes(uint64(pages) * a.size)
}

// ask returns the node of each page, or a negated errno. The slice is reused.
func (m *Mover) ask(pid int, addrs []uintptr) ([]int32, error) {
	m.where = slices.Grow(m.where[:0], len(addrs))[:len(addrs)]
	for i := range m.where {
		m.where[i] = -int32(sys.ENOENT)
	}
	_, err := m.pager.MovePages(pid, addrs, nil, m.where, 0)
	return m.where, m.explain(pid, err)
}

// call moves and times, and adapts the size of the next batch.
func (m *Mover) call(pid int, addrs []uintptr, node int32) (left int, status []int32, err error) {
	m.where = slices.Grow(m.where[:0], len(addrs))[:len(addrs)]
	m.nodes = slices.Grow(m.nodes[:0], len(addrs))[:len(addrs)]
	for i := range addrs {
		m.where[i], m.nodes[i] = unset, node
	}
	began := m.now()
	left, err = m.pager.MovePages(pid, addrs, m.nodes, m.where, m.flags)
	took := m.now().Sub(began)
	m.res.Calls++
	m.res.LongestCall = max(m.res.LongestCall, took)
	m.batch.observe(len(addrs), took)
	return left, m.where, m.explain(pid, err)
}

// explain tells what the errnos of the whole call mean (kernel_move_pages and
// do_pages_move in mm/migrate.c).
func (m *Mover) explain(pid int, err error) error {
	object := fmt.Sprintf("pages of process %d", pid)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sys.EINVAL): // find_mm_struct: it has let go of its memory, it is ending
		return fmt.Errorf("move %s: it is ending (%w)", object, unix.ErrGone)
	case errors.Is(err, sys.EACCES):
		return fmt.Errorf("move %s: %w: its cpuset.mems does not have all of nodes %s (%w)", object, err, m.req.To, unix.ErrNotPermitted)
	case errors.Is(err, sys.ENODEV):
		return fmt.Errorf("move %s: %w: one of nodes %s is offline or has no memory", object, errOffline, m.req.To)
	}
	return unix.Explain("move", object, "CAP_SYS_NICE and CAP_SYS_PTRACE", err)
}

var errOffline = errors.New("no such node")
