// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"homenode/internal/migration"
)

// kernelCost is a kernel's price of a call.
type kernelCost struct {
	name        string
	fixed, page time.Duration
	later       time.Duration // per page, from the middle on; 0: no change
	laterFixed  time.Duration
	outlier     float64 // one call in 50 takes so many times as long; 0: none
	noise       float64 // share by which calls vary, evenly, up and down
}

func (k kernelCost) took(r *rand.Rand, call, calls, pages int) time.Duration {
	fixed, page := k.fixed, k.page
	if call > calls/2 {
		if k.later > 0 {
			page = k.later
		}
		if k.laterFixed > 0 {
			fixed = k.laterFixed
		}
	}
	t := float64(fixed + time.Duration(pages)*page)
	if k.outlier > 0 && r.IntN(50) == 0 {
		t *= k.outlier
	}
	if k.noise > 0 {
		t *= 1 + k.noise*(2*r.Float64()-1)
	}
	return time.Duration(t)
}

// best is the throughput, pages a second, of the best batch whose calls are all within
// the bound. It is found by trying each.
func (k kernelCost) best(bound time.Duration, late bool) (best float64) {
	fixed, page, outlier := k.fixed, k.page, max(1, k.outlier)
	if late && k.later > 0 {
		page = k.later
	}
	if late && k.laterFixed > 0 {
		fixed = k.laterFixed
	}
	for n := 1; n <= mostPages; n++ {
		t := float64(fixed + time.Duration(n)*page)
		if t*outlier*(1+k.noise) <= float64(bound) {
			best = max(best, float64(n)/t*float64(time.Second))
		}
	}
	return best
}

var costs = []kernelCost{
	{name: "hardware", fixed: 50 * time.Microsecond, page: 2500 * time.Nanosecond},
	{name: "busy CPUs", fixed: 4 * time.Millisecond, page: 5 * time.Microsecond},
	{name: "very busy CPUs", fixed: 12 * time.Millisecond, page: 20 * time.Microsecond},
	{name: "slow pages", fixed: 100 * time.Microsecond, page: 700 * time.Microsecond},
	{name: "outliers", fixed: time.Millisecond, page: 10 * time.Microsecond, outlier: 1.8},
	{name: "rough outliers", fixed: time.Millisecond, page: 10 * time.Microsecond, outlier: 4},
	{name: "noise", fixed: 2 * time.Millisecond, page: 10 * time.Microsecond, noise: 0.3},
	{name: "noise and outliers", fixed: 2 * time.Millisecond, page: 10 * time.Microsecond, noise: 0.2, outlier: 2},
	{name: "pages get dear", fixed: time.Millisecond, page: 5 * time.Microsecond, later: 20 * time.Microsecond},
	{name: "pages get cheap", fixed: time.Millisecond, page: 20 * time.Microsecond, later: 5 * time.Microsecond},
	{name: "CPUs get busy", fixed: 500 * time.Microsecond, page: 5 * time.Microsecond, laterFixed: 8 * time.Millisecond},
	{name: "CPUs get idle", fixed: 10 * time.Millisecond, page: 5 * time.Microsecond, laterFixed: 500 * time.Microsecond},
}

// TestCallsKeepTheBound is a decision test: at least 99 % of the calls after the first
// ten are within the bound, and no less than 70 % of what the best batch would give.
func TestCallsKeepTheBound(t *testing.T) {
	const calls, bound = 2000, 20 * time.Millisecond
	for _, k := range costs {
		early, late := k.best(bound, false), k.best(bound, true)
		for seed := range uint64(20) {
			r := rand.New(rand.NewPCG(seed, 1))
			s := newSizer(bound, mostPages)
			over := 0
			var pages, spent, ideal float64
			for call := range calls {
				n := s.pages()
				took := k.took(r, call, calls, n)
				if s.observe(n, took); took > bound && call >= 10 {
					over++
				}
				if call == 0 && took > bound {
					t.Errorf("%s: the first call has %d pages", k.name, n)
				}
				pages, spent = pages+float64(n), spent+took.Seconds()
				if call > calls/2 {
					ideal += took.Seconds() * late
				} else {
					ideal += took.Seconds() * early
				}
			}
			if over > (calls-10)/100 || pages < 0.7*ideal || s.why("page") != "" {
				t.Errorf("%s, seed %d: %d calls over, %.0f %% of the best, %q", k.name, seed, over, 100*pages/ideal, s.why("page"))
			}
		}
	}
}

// TestHopelessBound: where the fixed price alone is too long, batches stay useful, and
// the result says so.
func TestHopelessBound(t *testing.T) {
	for _, k := range []kernelCost{
		{name: "as in the lab", fixed: 25 * time.Millisecond, page: 250 * time.Microsecond},
		{name: "nearly all of it", fixed: 19 * time.Millisecond, page: 10 * time.Microsecond},
		{name: "a page alone", fixed: 0, page: 25 * time.Millisecond},
	} {
		s := newSizer(20*time.Millisecond, mostPages)
		for range 300 {
			n := s.pages()
			s.observe(n, k.took(nil, 0, 1, n))
		}
		useful := float64(k.page) * float64(s.fits()) / float64(k.fixed+1)
		if why := s.why("page"); !strings.Contains(why, "20ms cannot be held") || useful < 1 {
			t.Errorf("%s: %d pages, %q", k.name, s.fits(), why)
		}
	}
}

// A few slow calls at the start, and single long ones, look like a high fixed price. That
// must not lead to large batches, which are over the bound and hide that it is wrong.
func TestSlowStartIsForgiven(t *testing.T) {
	const pages, bound = 2560, 20 * time.Millisecond
	k := kernelCost{fixed: 500 * time.Microsecond, page: 1300 * time.Microsecond, noise: 0.2}
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1))
		s, over, most := newSizer(bound, mostPages), 0, 0
		for call, left := 0, pages; left > 0; call++ {
			n := min(left, s.pages())
			took := k.took(r, call, math.MaxInt, n)
			if call < 6 {
				took *= 3
			}
			if r.IntN(30) == 0 {
				took *= 4
			}
			if s.observe(n, took) {
				over++
			}
			left, most = left-n, max(most, n)
		}
		if over > 12 || most > 16 {
			t.Errorf("seed %d: %d calls over the bound, up to %d pages", seed, over, most)
		}
	}
}

// TestHugePagesStartWithOne: eight would be 16 MiB in the first call.
func TestHugePagesStartWithOne(t *testing.T) {
	j := &journey{bound: 5 * time.Millisecond, sizers: map[class]*sizer{}}
	s := j.sizer(class{size: hugePage})
	for call := range 20 {
		n := s.pages()
		if s.observe(n, time.Duration(n)*1300*time.Microsecond) {
			t.Errorf("call %d: %d huge pages", call, n)
		}
	}
	if n := s.fits(); n != 1 {
		t.Errorf("%d huge pages at the end, want 1: half of the bound is less than two take", n)
	}
}

func TestNoBound(t *testing.T) {
	s := newSizer(0, mostPages)
	if n := s.pages(); n != mostPages || s.observe(n, time.Hour) || s.why("page") != "" {
		t.Errorf("%d pages", n)
	}
}

// Workers that share the pages of a process end within one small batch of each other,
// whatever their number and the pages'. A bound keeps batches as the sizer makes them.
func TestWorkersEndTogether(t *testing.T) {
	for workers := 2; workers <= 8; workers++ {
		for _, pages := range []int{1, 127, 600, 2071, 2560, 6144} {
			l := &lane{pid: 1}
			l.put(slices.Repeat([]page{{size: smallPage, kind: migration.Anon}}, pages))
			r := &run{req: Request{Workers: workers}, j: &journey{several: true, sizers: map[class]*sizer{}}, lanes: []*lane{l}, budget: NoBudget}
			ends := make([]int, workers) // in pages: each takes as long
			for !l.empty() {
				b, ok := r.pick(l)
				if !ok || len(b.pages) == 0 {
					t.Fatalf("%d workers, %d pages: no batch of what is left", workers, pages)
				}
				ends[slices.Index(ends, slices.Min(ends))] += len(b.pages)
				r.drop(b)
			}
			if most, even := slices.Max(ends), (pages+workers-1)/workers; most > even+fewestShared {
				t.Errorf("%d workers, %d pages: the last ends after %d, want at most %d", workers, pages, most, even+fewestShared)
			}
		}
	}
	l := &lane{pid: 1}
	l.put(slices.Repeat([]page{{size: smallPage, kind: migration.Anon}}, 1000))
	r := &run{req: Request{Workers: 3}, j: &journey{several: true, bound: time.Second, sizers: map[class]*sizer{}}, lanes: []*lane{l}, budget: NoBudget}
	want := r.want(class{size: smallPage})
	if b, _ := r.pick(l); len(b.pages) != want {
		t.Errorf("with a bound: %d pages, want %d", len(b.pages), want)
	}
}
