// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"homenode/internal/kernel/unix"
	"homenode/internal/migration"
	"homenode/internal/unit"
)

// lockedMaps is a kernel in which move_pages waits for the mmap_lock of some processes.
type lockedMaps struct {
	*sim
	mu     sync.Mutex
	locked map[int]chan struct{}
	within map[int]int // calls that a process is in
	most   int
}

func (l *lockedMaps) lock(pid int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.locked[pid] == nil {
		l.locked[pid] = make(chan struct{})
	}
}

func (l *lockedMaps) free(pid int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.locked[pid] != nil {
		close(l.locked[pid])
		delete(l.locked, pid)
	}
}

func (l *lockedMaps) MovePages(pid int, addrs []uintptr, nodes, status []int32, flags int) (int, error) {
	l.mu.Lock()
	wait := l.locked[pid]
	l.within[pid]++
	l.most = max(l.most, l.within[pid])
	l.mu.Unlock()
	if wait != nil {
		<-wait
	}
	defer func() {
		l.mu.Lock()
		l.within[pid]--
		l.mu.Unlock()
	}()
	return l.sim.MovePages(pid, addrs, nodes, status, flags)
}

// patientOf has one process for each number of pages, from 7 on, all on node 0.
func patientOf(t *testing.T, pages ...int) (*Patient, *lockedMaps) {
	l := &lockedMaps{sim: newSim(), locked: map[int]chan struct{}{}, within: map[int]int{}}
	for i, n := range pages {
		at := l.area(7+i, uint64(n+1)*smallPage, simArea{})
		l.fill(7+i, at, n, 0)
	}
	root := l.mover(t, all).root
	p := newPatient(func() *Mover {
		m := newMover(root, Config{Pager: l, Clock: l.sim})
		m.sleep = l.sleep
		return m
	})
	p.after = time.Millisecond
	t.Cleanup(func() {
		for i := range pages {
			l.free(7 + i)
		}
		l.settled(p)
	})
	return p, l
}

// settled waits until all moves that were left have returned.
func (l *lockedMaps) settled(p *Patient) {
	for _, m := range p.left {
		<-m.done
	}
	for n := 1; n > 0; time.Sleep(time.Millisecond) { // Patience has it a little later
		n = 0
		for _, pid := range []int{7, 8, 9} {
			if left, err := p.waits.Do([]int{pid}, nil, func() {}); left || err != nil {
				n++
			}
		}
	}
}

func short(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

// A process whose memory map is locked holds up neither its own move nor those of others.
// It is moved to its end, once, when the lock is free.
func TestPatientLeavesWhatIsLocked(t *testing.T) {
	p, l := patientOf(t, 3000, 500)
	locked, other := Request{PIDs: []int{7}, To: toOne, Budget: NoBudget}, Request{PIDs: []int{8}, To: toOne, Budget: NoBudget}
	l.lock(7)
	within(t, 30*time.Second, func() {
		for i := range 3 {
			if r, err := p.Move(short(t), locked); err != nil || r.Complete || r.Moved() != 0 || !strings.Contains(r.Stopped, "locked") {
				t.Errorf("move %d: %+v, %v", i, r, err)
			}
		}
		if len(p.left) != 1 {
			t.Errorf("%d moves were begun of a process that does not answer", len(p.left))
		}
		if r, err := p.Move(context.Background(), other); err != nil || !r.Complete || r.Moved() != 500*smallPage {
			t.Errorf("another process: %+v, %v", r, err)
		}
	})
	l.free(7)
	l.settled(p)
	var moved unit.Bytes
	for range 10 {
		r, err := p.Move(context.Background(), locked)
		if err != nil {
			t.Fatal(err)
		}
		if moved += r.Moved(); r.Complete {
			break
		}
	}
	if moved != 3000*smallPage || l.passed != 3500 || l.on(1) != 3500 || l.sim.most == 0 || l.most != 1 {
		t.Errorf("%v of 3000 pages are in the results, %d pages were passed, %d calls at a time", moved, l.passed, l.most)
	}
}

// Whichever processes are locked when: each page is moved once and is in one result, and no
// process is in two calls.
func TestPropertyPatient(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 43))
		p, l := patientOf(t, 900, 700, 400)
		var moved unit.Bytes
		for range 12 {
			pid := 7 + r.IntN(3)
			if r.IntN(2) == 0 {
				l.lock(pid)
			}
			pids := []int{7 + r.IntN(3)}
			if r.IntN(3) == 0 {
				pids = []int{7, 8, 9}
			}
			res, err := p.Move(short(t), Request{PIDs: pids, To: toOne, Budget: unit.Bytes(1+r.IntN(300)) * smallPage})
			if err != nil {
				t.Fatal(err)
			}
			if moved += res.Moved(); r.IntN(2) == 0 {
				l.free(pid)
			}
		}
		for pid := 7; pid < 10; pid++ {
			l.free(pid)
		}
		l.settled(p)
		for range 100 {
			res, err := p.Move(context.Background(), Request{PIDs: []int{7, 8, 9}, To: toOne, Budget: NoBudget})
			if err != nil {
				t.Fatal(err)
			}
			if moved += res.Moved(); res.Complete {
				break
			}
		}
		if moved != 2000*smallPage || l.passed != 2000 || l.on(1) != 2000 || l.most != 1 || len(p.left) != 0 {
			t.Fatalf("seed %d: %v of 2000 pages in results, %d passed, %d moved, %d calls of a process at a time, %d left", seed, moved/smallPage, l.passed, l.on(1), l.most, len(p.left))
		}
	}
}

// Without an end of its time a move waits as a Mover does, and an error is the Mover's.
func TestPatientIsAMover(t *testing.T) {
	p, _ := patientOf(t, 10)
	if r, err := p.Move(context.Background(), Request{PIDs: []int{7}, To: toOne, Budget: NoBudget}); err != nil || !r.Complete || r.Moved() != 10*smallPage {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := p.Move(context.Background(), Request{PIDs: []int{7}}); err == nil {
		t.Error("moved to no node")
	}
	if _, err := NewPatient(unix.Live{}, Config{}); err == nil {
		t.Error("a recorded machine was acted upon")
	}
}

// So many processes may hang, and no more threads.
func TestPatientThreadsAreBounded(t *testing.T) {
	pages := make([]int, unix.MostHung+3)
	for i := range pages {
		pages[i] = 1
	}
	p, l := patientOf(t, pages...)
	for i := range pages {
		l.lock(7 + i)
		if r, err := p.Move(short(t), Request{PIDs: []int{7 + i}, To: toOne, Budget: NoBudget}); err != nil || r.Complete {
			t.Errorf("%+v, %v", r, err)
		}
	}
	if len(p.left) != unix.MostHung {
		t.Errorf("%d moves hang, want %d", len(p.left), unix.MostHung)
	}
}

// What nothing asks for any more is dropped.
func TestPatientForgets(t *testing.T) {
	p, l := patientOf(t, 5, 1)
	l.lock(7)
	if _, err := p.Move(short(t), Request{PIDs: []int{7}, To: toOne, Budget: NoBudget}); err != nil {
		t.Fatal(err)
	}
	l.free(7)
	l.settled(p)
	for range passLife + 2 {
		if _, err := p.Move(context.Background(), Request{PIDs: []int{8}, To: toOne, Budget: NoBudget}); err != nil {
			t.Fatal(err)
		}
	}
	if len(p.left) != 0 {
		t.Errorf("%d moves are kept", len(p.left))
	}
}

func TestTogether(t *testing.T) {
	var a, b migration.Result
	a.Of(migration.Anon).Moved, b.Of(migration.Anon).Moved = 3, 4
	a.Of(migration.THP).Fail("EBUSY", 5)
	if r := together(a, b); r.Moved() != 7 || r.Failed() != 5 || a.Moved() != 3 {
		t.Errorf("%+v", r)
	}
	if errors.Is(unix.ErrNoAnswer, unix.ErrGone) {
		t.Error("a process that does not answer is not gone")
	}
}
