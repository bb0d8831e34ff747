// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"testing"
	"time"
)

// BenchmarkOwnWork measures the CPU time of a page besides the kernel's calls: the fake
// pager does nothing.
func BenchmarkOwnWork(b *testing.B) {
	const pages = 1 << 17
	s := newSim()
	s.fill(7, s.area(7, pages*smallPage, simArea{}), pages, 0)
	for _, how := range []struct {
		name  string
		prep  func(m *Mover)
		bound time.Duration
	}{
		{"frames", func(m *Mover) { m.nodes = s.nodes() }, 0},
		{"queries", func(*Mover) {}, 0},
		{"bounded", func(m *Mover) { m.nodes = s.nodes() }, time.Hour},
	} {
		b.Run(how.name, func(b *testing.B) {
			m := s.mover(b, all)
			m.pager = pagerFunc(func(_ int, addrs []uintptr, nodes, status []int32, _ int) (int, error) {
				if nodes == nil {
					clear(status)
				} else {
					copy(status, nodes)
				}
				return 0, nil
			})
			how.prep(m)
			var cpu time.Duration
			b.ResetTimer()
			for range b.N {
				r, err := m.Move(context.Background(), Request{PIDs: []int{7}, To: toOne, Budget: NoBudget, MaxStall: how.bound})
				cpu += r.CPU
				if err != nil || r.Moved() != pages*smallPage {
					b.Fatalf("%+v, %v", r, err)
				}
			}
			b.ReportMetric(float64(cpu.Nanoseconds())/float64(b.N)/pages, "ns/page")
		})
	}
}
