// SPDX-License-Identifier: Apache-2.0

package hotness

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"homenode/internal/kernel/migrate"
	"homenode/internal/kernel/procfs"
	"homenode/internal/unit"
)

func mapped(start, end uint64, huge unit.Bytes) procfs.SmapsArea {
	return procfs.SmapsArea{Area: procfs.Area{Range: procfs.Range{Start: start, End: end}}, PageSize: 4096, RSS: unit.Bytes(end - start), Huge: huge}
}

func TestDecisionSettle(t *testing.T) {
	const m = 2 << 20
	areas := []procfs.SmapsArea{mapped(0x1000, 0x9000, 0), mapped(m-0x1000, 3*m+0x1000, m), mapped(^uint64(0)-0xfff, ^uint64(0), 0)}
	for _, c := range []struct {
		about       string
		found, want []span
	}{
		{"nothing", nil, nil},
		{"side by side, out of order, twice", []span{{0x4000, 0x5000}, {0x3000, 0x4000}, {0x3000, 0x4000}}, []span{{0x3000, 0x5000}}},
		{"cut to the mapping", []span{{0, 0x2000}, {0x8000, 0xb000}}, []span{{0x1000, 0x2000}, {0x8000, 0x9000}}},
		{"the kernel's", []span{{1 << 63, 1<<63 + 4096}}, nil},
		{"a page of a huge one", []span{{2*m + 0x5000, 2*m + 0x6000}}, []span{{2 * m, 3 * m}}},
		{"at a mapping's unaligned ends", []span{{m - 0x1000, m}, {3 * m, 3*m + 0x1000}}, []span{{m - 0x1000, m}, {3 * m, 3*m + 0x1000}}},
		{"at the end of all", []span{{^uint64(0) - 0xfff, ^uint64(0)}}, []span{{^uint64(0) - 0xfff, ^uint64(0)}}},
	} {
		if got := settle(c.found, areas, 0); !reflect.DeepEqual(got, c.want) && len(got)+len(c.want) > 0 {
			t.Errorf("%s: %x, want %x", c.about, got, c.want)
		}
	}
}

// A grain heats what is around a hit, within the mapping.
func TestDecisionGrain(t *testing.T) {
	areas := []procfs.SmapsArea{mapped(0x3000, 0x29000, 0)}
	got := settle([]span{{0x4000, 0x5000}, {0x21000, 0x22000}}, areas, 64*unit.KiB)
	if want := []span{{0x3000, 0x10000}, {0x20000, 0x29000}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%x, want %x", got, want)
	}
	if err := (Config{For: 1, Grain: 3000}).check(); err == nil {
		t.Error("a grain of 3000 bytes was taken")
	}
}

// A slow twin that goes page by page gives the same result.
func TestDecisionSettleBruteForce(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	const pages = 4 * 512
	for range 500 {
		var areas []procfs.SmapsArea
		for at := r.IntN(300); at < pages; {
			end := min(pages, at+1+r.IntN(900))
			areas = append(areas, mapped(uint64(at)<<12, uint64(end)<<12, unit.Bytes(r.IntN(2))*hugePage))
			at = end + r.IntN(3)*r.IntN(200)
		}
		var found []span
		hit := [pages]bool{}
		for range r.IntN(8) {
			at := r.IntN(pages)
			end := min(pages, at+1+r.IntN(40))
			found = append(found, span{uint64(at) << 12, uint64(end) << 12})
			for i := at; i < end; i++ {
				hit[i] = true
			}
		}
		want := [pages]bool{}
		for _, a := range areas {
			for i := a.Start >> 12; i < a.End>>12; i++ {
				size := unitOf(a) >> 12
				for j := i / size * size; j < (i/size+1)*size; j++ {
					want[i] = want[i] || j >= a.Start>>12 && j < a.End>>12 && hit[j]
				}
			}
		}
		p := Pages{spans: map[int][]span{7: settle(found, areas, 0)}}
		for i := range uint64(pages) {
			if got := p.Hot(7, i<<12); got != want[i] {
				t.Fatalf("page %d: %v, want %v; areas %x, found %x, spans %x", i, got, want[i], areas, found, p.spans[7])
			}
		}
	}
}

func TestDecisionHot(t *testing.T) {
	var _ migrate.Hot = Pages{}
	p := Pages{spans: map[int][]span{7: {{0x1000, 0x3000}, {0x5000, 0x6000}}}}
	for addr, want := range map[uint64]bool{0: false, 0x1000: true, 0x2fff: true, 0x3000: false, 0x5000: true, 0x6000: false} {
		if p.Hot(7, addr) != want || p.Hot(8, addr) {
			t.Errorf("%#x: %v, want %v", addr, !want, want)
		}
	}
	if (Pages{}).Hot(7, 0) {
		t.Error("nothing is hot in no pages")
	}
}

func TestDecisionMappings(t *testing.T) {
	a := mapped(0x1000, 0x9000, 0)
	a.RSS, a.Path = 0x2000, "[heap]"
	got := mappingsOf(7, []span{{0, 0x2000}, {0x5000, 0x7000}, {0x8000, 0xa000}}, []procfs.SmapsArea{a})
	if want := []Mapping{{PID: 7, Start: 0x1000, End: 0x9000, Path: "[heap]", RSS: 0x2000, Hot: 0x2000}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// Half of 20 million pages, every second one, is the worst case for spans.
func BenchmarkHotManyPages(b *testing.B) {
	const pages = 10_000_000
	s := make([]span, pages)
	for i := range s {
		s[i] = span{uint64(i) << 13, uint64(i)<<13 + 4096}
	}
	p := Pages{spans: map[int][]span{1: s}}
	b.ResetTimer()
	for i := range b.N {
		p.Hot(1, uint64(i%pages)<<13)
	}
}
