// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"homenode/internal/migration"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// crowd is how full the fullest node of a workload's home would be once its memory is
// there, and by what factor its work takes longer than now because of that:
//
//  1. What each node serves now: measured of its memory controllers, else what all
//     workloads read, each where its pages are. Workloads whose reads are not counted are
//     missing in that, so it is the least.
//  2. Afterwards the workload's own part is at home, in equal shares.
//  3. Both against what the nodes' memory delivers, by the profile or the firmware. If that
//     is not known of a node that its pages are on or would be on, nothing is claimed.
func (r *round) crowd(j *Job, wl *window.Workload, p pages) (fill, crowded unit.Value[float64]) {
	own, ok := r.traffic(wl)
	if !ok || p.total <= 0 {
		why := unit.UnknownValue[float64]("its reads from memory are not counted")
		return why, why
	}
	var before, after migration.Pressure
	home := 0.0
	for i := range r.w.Nodes {
		n := &r.w.Nodes[i]
		is := float64(bytesOn(wl, i)) / float64(p.total)
		will := 0.0
		if j.Nodes.Has(n.ID) {
			will = is + float64(p.all)/float64(p.total)/float64(j.Nodes.Len())
		}
		if is == 0 && will == 0 {
			continue
		}
		limit := r.costs.Bandwidth(n.ID) // 3
		width, ok := limit.Get()
		if !ok || width <= 0 {
			why := unit.UnknownValue[float64](limit.From)
			return why, why
		}
		others := r.servedBesides(i, wl, own*is) // 1
		before.Node = max(before.Node, (others+float64(own*is))/float64(width))
		if will > 0 { // 2
			home = max(home, (others+float64(own*will))/float64(width))
		}
		after.Node = max(after.Node, (others+float64(own*will))/float64(width))
	}
	busy := 1 - float64(window.FeaturesOf(*wl, r.w.Length).MSR.Or(0))
	factor, _, _ := migration.Longer(before, after, busy)
	return unit.Estimated(home, "reads by node, and what the node delivers"), unit.Estimated(factor, "time of the same work on fuller nodes")
}

// traffic is bytes/s that a workload moves between its CPUs and memory.
func (r *round) traffic(wl *window.Workload) (float64, bool) {
	return window.FeaturesOf(*wl, r.w.Length).MBW.Get()
}

// servedBesides is what other workloads move from and to a node, bytes/s.
func (r *round) servedBesides(i int, wl *window.Workload, own float64) float64 {
	if bytes, ok := r.w.Nodes[i].Traffic.Get(); ok && r.w.Length > 0 {
		return max(0, float64(bytes)/r.w.Length.Seconds()-own)
	}
	sum := 0.0
	for k := range r.w.Workloads {
		o := &r.w.Workloads[k]
		bytes, ok := r.traffic(o)
		if all := bytesAll(o, len(r.w.Nodes)); ok && all > 0 && o.ID != wl.ID {
			sum += float64(bytes * float64(bytesOn(o, i)) / all)
		}
	}
	return sum
}

func bytesAll(wl *window.Workload, nodes int) (sum float64) {
	for i := range nodes {
		sum += float64(bytesOn(wl, i))
	}
	return sum
}
