// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	sys "golang.org/x/sys/unix"

	"homenode/internal/migration"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// TestEveryPageOnce is the property: each page that was elsewhere, and no other, ends in
// exactly one of the counts, and what moved is what a brute-force twin moves.
func TestEveryPageOnce(t *testing.T) {
	for seed := range seeds() {
		r := rand.New(rand.NewPCG(seed, 2))
		s := newSim()
		pids := randomSpaces(r, s)
		req := Request{PIDs: pids, To: set.FromNodes(1), Budget: NoBudget, Workers: 1 + r.IntN(4), MaxStall: time.Duration(r.IntN(2)) * 5 * time.Millisecond}
		if r.IntN(2) == 0 {
			req.To = set.FromNodes(1, 2)
		}
		if r.IntN(3) == 0 {
			req.From = set.FromNodes(0)
		}
		s.took = func(n int) time.Duration { return time.Duration(20+n) * 10 * time.Microsecond }
		show := []see{all, all, {pagemap: true}, {}}[r.IntN(4)]
		if r.IntN(4) == 0 {
			s.abort = 5 + r.IntN(100)
		}
		want, home := s.twin(req)
		m := s.mover(t, show)
		if r.IntN(2) == 0 {
			m.nodes = s.nodes()
		}
		var got counts
		if res := move(t, m, req); !res.Complete {
			t.Fatalf("seed %d: %+v", seed, res)
		} else {
			got = countsOf(res)
		}
		if show == all && got != want || got.moved != want.moved || s.home(req) != home {
			t.Errorf("seed %d, %+v, %d workers: %+v, want %+v; %d pages home, want %d", seed, show, req.Workers, got, want, s.home(req), home)
		}
		s.once(t, seed)
	}
}

// seeds is 40, or the value of HOMENODE_SEEDS.
func seeds() uint64 {
	if n, err := strconv.ParseUint(os.Getenv("HOMENODE_SEEDS"), 10, 32); err == nil {
		return n
	}
	return 40
}

// randomSpaces are up to three processes that share some of their pages.
func randomSpaces(r *rand.Rand, s *sim) (pids []int) {
	var shared []*frame
	for i := range 600 {
		f := behaving(r, s.frame(int32(r.IntN(3)), 1), i)
		f.file, f.shared = true, true
		shared = append(shared, f)
	}
	for pid := 7; pid < 8+r.IntN(3); pid++ {
		pids = append(pids, pid)
		for range 1 + r.IntN(3) {
			at := s.area(pid, 4*hugePage, simArea{})
			for c := range uint64(4) {
				randomChunk(r, s, pid, at+c*hugePage)
			}
		}
		for range r.IntN(3) { // twice, too
			at := s.area(pid, 2*hugePage, simArea{path: "/dev/shm/s", ino: 99})
			for i, f := range shared {
				s.put(pid, at+uint64(i)*smallPage, f)
			}
		}
	}
	return pids
}

func randomChunk(r *rand.Rand, s *sim, pid int, at uint64) {
	switch node := int32(r.IntN(3)); r.IntN(4) {
	case 0:
		s.put(pid, at, behaving(r, s.frame(node, 512), r.IntN(100)))
	case 1: // looks huge
		for i, f := range s.fill(pid, at, 512, node) {
			behaving(r, f, i)
		}
	case 2:
		for i := range 512 {
			if r.IntN(3) > 0 {
				s.put(pid, at+uint64(i)*smallPage, behaving(r, s.frame(int32(r.IntN(3)), 1), i))
			}
		}
	}
}

func behaving(r *rand.Rand, f *frame, i int) *frame {
	switch r.IntN(60) {
	case 0:
		f.busy = 1 + r.IntN(2)
	case 1:
		f.busy = 1 << 30
	case 2:
		f.errno = []int32{-int32(sys.EACCES), -int32(sys.EIO)}[i%2]
	case 3:
		f.gone = true
	}
	return f
}

// twin returns the expected result: each page on its own.
func (s *sim) twin(req Request) (want counts, home int) {
	seen := map[*frame]bool{}
	for _, space := range s.spaces {
		for _, f := range space {
			if seen[f] {
				continue
			}
			seen[f] = true
			size := unit.Bytes(f.pages) * smallPage
			switch {
			case req.To.Has(int(f.node)):
				home += f.pages
			case !migration.Elsewhere(int(f.node), req.From, req.To):
			case f.gone:
				want.gone += size
			case f.errno != 0 || f.busy > 100:
				want.failed += size
			default:
				want.moved += size
				home += f.pages
			}
		}
	}
	return want, home
}

func (s *sim) home(req Request) (pages int) {
	for node := range req.To.All() {
		pages += s.on(int32(node))
	}
	return pages
}

func (s *sim) once(t *testing.T, seed uint64) {
	for _, space := range s.spaces {
		for at, f := range space {
			if f.moves > 1 {
				t.Errorf("seed %d: page %x was moved %d times", seed, at, f.moves)
			}
		}
	}
}
