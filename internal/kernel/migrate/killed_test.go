// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	sys "golang.org/x/sys/unix"

	"homenode/internal/migration"
	"homenode/internal/unit"
)

// kill ends a process: its memory is gone, and the kernel no longer knows it.
func (s *sim) kill(t *testing.T, m *Mover, pid int) {
	s.spaces[pid], s.whole[pid] = nil, sys.ESRCH
	if err := os.RemoveAll(m.root.Path(fmt.Sprintf("/proc/%d", pid))); err != nil {
		t.Error(err)
	}
}

// private are processes that share nothing.
func private(r *rand.Rand, s *sim, pids int) (all []int) {
	for pid := 7; pid < 7+pids; pid++ {
		all = append(all, pid)
		at := s.area(pid, 3*hugePage, simArea{})
		for c := range uint64(3) {
			randomChunk(r, s, pid, at+c*hugePage)
		}
	}
	return all
}

// elsewhere is what is to be moved of processes.
func (s *sim) elsewhere(req Request, pids ...int) (sum unit.Bytes) {
	seen := map[*frame]bool{}
	for _, pid := range pids {
		for _, f := range s.spaces[pid] {
			if !seen[f] && migration.Elsewhere(int(f.node), req.From, req.To) {
				seen[f] = true
				sum += unit.Bytes(f.pages) * smallPage
			}
		}
	}
	return sum
}

// TestKilledAnywhere kills the process that is being moved at a random system call: each
// byte that was elsewhere ends as moved, gone or failed.
func TestKilledAnywhere(t *testing.T) {
	killed, halfway := 0, 0
	for seed := range 3 * seeds() {
		r := rand.New(rand.NewPCG(seed, 5))
		s := newSim()
		pids := private(r, s, 1+r.IntN(2))
		req := Request{PIDs: pids, To: toOne, Budget: NoBudget, Workers: 1 + r.IntN(3), MaxStall: time.Duration(r.IntN(2)) * 5 * time.Millisecond}
		s.took = func(n int) time.Duration { return time.Duration(20+n) * 10 * time.Microsecond }
		show := []see{all, {pagemap: true}, {}}[r.IntN(3)]
		want := s.elsewhere(req, pids...)
		m := s.mover(t, show)
		if r.IntN(2) == 0 && show.frames {
			m.nodes = s.nodes()
		}
		dead := map[int]bool{}
		m.pager = s.killing(t, m, r, dead)
		res, err := m.Move(context.Background(), req)
		got := countsOf(res)
		if err != nil || got.moved+got.gone+got.failed != want || !res.Complete {
			t.Fatalf("seed %d, %+v, %d workers, killed %v: %+v comes to %v, want %v, %v", seed, show, req.Workers, dead, got, got.moved+got.gone+got.failed, want, err)
		}
		killed += len(dead)
		if len(dead) > 0 && got.moved > 0 && got.gone > 0 {
			halfway++
		}
	}
	if killed < int(seeds()) || halfway < int(seeds()) {
		t.Errorf("%d were killed, %d of them halfway: too few", killed, halfway)
	}
}

// killing sometimes kills the process that a system call is about.
func (s *sim) killing(t *testing.T, m *Mover, r *rand.Rand, dead map[int]bool) pagerFunc {
	in := 1 + r.IntN(12)
	return func(pid int, addrs []uintptr, nodes, status []int32, flags int) (int, error) {
		s.mu.Lock()
		if in--; in == 0 && pid != 0 {
			dead[pid] = true
			s.kill(t, m, pid)
			in = 1 + r.IntN(12)
		}
		s.mu.Unlock()
		return s.MovePages(pid, addrs, nodes, status, flags)
	}
}

// What is of a file outlives a process that is killed: it is moved where another maps it,
// and counted once.
func TestKilledBesideAnother(t *testing.T) {
	s := newSim()
	shared := []*frame{}
	for _, pid := range []int{7, 8} {
		s.fill(pid, s.area(pid, hugePage, simArea{}), 100, 0)
		at := s.area(pid, hugePage, simArea{path: "/dev/shm/x", ino: 4})
		if len(shared) == 0 {
			shared = s.fill(pid, at, 50, 0)
		}
		for i, f := range shared {
			f.file, f.shared = true, true
			s.put(pid, at+uint64(i)*smallPage, f)
		}
	}
	m := s.mover(t, all)
	m.pager = pagerFunc(func(pid int, addrs []uintptr, nodes, status []int32, flags int) (int, error) {
		if pid == 7 && nodes != nil {
			s.kill(t, m, 7)
		}
		return s.MovePages(pid, addrs, nodes, status, flags)
	})
	r := move(t, m, Request{PIDs: []int{7, 8}})
	if got := countsOf(r); got != (counts{moved: 150 * smallPage, gone: 100 * smallPage}) {
		t.Errorf("%+v", got)
	}
	if !slices.Contains(r.Problems, "process 7 ended while it was moved") {
		t.Errorf("%q", r.Problems)
	}
}
