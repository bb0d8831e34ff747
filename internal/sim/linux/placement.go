// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"math"

	"homenode/internal/sim/detmath"
)

// placement ends a pass of the scanner (task_numa_placement).
//
//  1. update_task_scan_period: faster while less than 70 % of faults are local; slower
//     when more are local, when faults are private, or when moves fail.
//  2. Faults by node count half as much with every pass.
//  3. numa_migrate_preferred: threads go to their memory.
//  4. In the pass that begins, each page that had one fault has its second.
func (h *Host) placement(g *Group) {
	p := &g.pass
	g.adapt() // 1
	used := detmath.Sum(g.Used)
	for k := range p.cpus {
		p.cpus[k] = (p.cpus[k] + g.Used[k]/used) / 2 // 2
	}
	if g.free() {
		h.follow(g) // 3
	}
	n := len(h.Nodes) // 4
	copy(g.Scan.Marked, g.Memory.Private)
	copy(g.Scan.Marked[n*n:], g.Memory.Shared)
	*p = pass{started: true, cpus: p.cpus}
}

// periods are the shortest and the longest scan period of a group: task_scan_min and
// task_scan_max. Memory shared by many threads may be scanned more rarely.
func (g *Group) periods() (least, most float64) {
	m := &g.Memory
	private, shared := detmath.Sum(m.Private), detmath.Sum(m.Shared)
	windows := max(math.Ceil((private+shared+detmath.Sum(m.Mapped))/scanPages), 1)
	least = max(scanFloor, scanPeriodMin/windows)
	most = scanPeriodMax / windows
	if shared > 0 {
		most *= max(g.Threads*(shared/(private+shared)), 1)
	}
	return least, max(least, most)
}

// adapt is update_task_scan_period. Its ratios are whole numbers of slots.
func (g *Group) adapt() {
	p := &g.pass
	least, most := g.periods()
	period := &g.Scan.Period
	if p.local+p.shared <= 0 || p.failed {
		*period = min(*period*2, most)
		return
	}
	local := math.Floor(periodSlots*p.local/(p.local+p.remote) + 1e-9)
	private := math.Floor(periodSlots*p.private/(p.private+p.shared) + 1e-9)
	slots := max(local, private) - periodThreshold
	switch {
	case private >= periodThreshold:
		slots = max(private-periodThreshold, 1)
	case local >= periodThreshold:
		slots = max(local-periodThreshold, 1)
	}
	*period += *period / periodSlots * slots
	*period = min(max(*period, least), most)
}

// follow moves threads to where most of their memory is: private pages, and their part of
// shared ones (task_numa_migrate, task_numa_find_cpu). A CPU must be idle there, and the
// node must offer a tenth more.
func (h *Host) follow(g *Group) {
	s, n := &h.scratch, len(h.Nodes)
	to, each := s.a, detmath.Sum(g.Used)/g.Threads
	copy(to, g.wander.base)
	h.spare(s.b)
	for _, t := range s.order {
		threads := g.wander.base[t]
		if threads <= 0 {
			continue
		}
		offer := func(k int) float64 {
			return g.Memory.Private[t*n+k] + g.Memory.Shared[k]*(threads/g.Threads)
		}
		best, most := t, 1.1*offer(t)
		for _, k := range s.order {
			if k != t && g.CPUs[k] > 0 && s.b[k] > 0 && offer(k) > most {
				best, most = k, offer(k)
			}
		}
		if best == t {
			continue
		}
		go2 := min(taskMove*threads, s.b[best]/each)
		to[t], to[best] = to[t]-go2, to[best]+go2
		s.b[best] -= go2 * each
	}
	g.rearrange(to)
}
