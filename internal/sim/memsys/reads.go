// SPDX-License-Identifier: Apache-2.0

package memsys

// OwnReads is how many DRAM reads to regions an operation of load i had in the last Solve,
// with these Work.Regions: to regions that each thread has of its own, and to all.
func (s *Solver) OwnReads(i int, regions []Region) (own, all float64) {
	l := &s.loads[i]
	d := &s.domains[l.domain]
	stay, full, at := d.stay*l.rate, d.full, l.first
	if l.over {
		stay, full, _ = s.within(l, stay, full)
	}
	for k := range regions {
		if regions[k].Accesses <= 0 || regions[k].Bytes <= 0 {
			continue // layWork leaves these out
		}
		r := &s.regions[at]
		at++
		if r.reads <= 0 {
			continue
		}
		misses, _, _, _ := inLLC(full, r.laps, stay*r.reads/r.lines)
		reads := r.reads * misses
		all += reads
		if !regions[k].Shared {
			own += reads
		}
	}
	return own, all
}

// NearStall is how many of load i's Stall cycles in the last Solve were for hits in its own
// L2: they wait for nothing beyond it.
func (s *Solver) NearStall(i int) float64 {
	l := &s.loads[i]
	return l.slow * (l.near + l.adds*l.adding.own*s.sys.L2Cycles)
}
