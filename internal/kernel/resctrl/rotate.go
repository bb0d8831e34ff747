// SPDX-License-Identifier: Apache-2.0

package resctrl

import (
	"cmp"
	"slices"
	"strings"
)

// candidate is a workload that has a group, or might have one.
type candidate struct {
	id       string
	held     int     // rounds with its group; 0: no group
	waited   int     // rounds since the last measurement
	never    bool    // never measured
	size     float64 // what it moves, or its CPU time, as a share of all
	approved bool
}

// choose decides which workloads give up a group and which get one, with budget groups in
// all:
//
//  1. Free groups go to the workloads with the greatest need.
//  2. Workloads that had a group for a turn give way to those in greater need. The least
//     needy goes first, at most a quarter of the budget in a round: each freed RMID rests
//     in limbo until its lines have left the caches.
//  3. Where there are more groups than the budget (other processes took RMIDs), some are
//     given up.
//
// Need: a workload that was never measured comes first; then rounds waited × weight. A
// weight lies between 1/4 and 5/4 by size, doubled for approved services: so no workload
// waits more than ten times as long as another.
func choose(all []candidate, budget, turn int) (drop, add []string) {
	all = slices.Clone(all)
	largest := 0.0
	for _, c := range all {
		largest = max(largest, c.size)
	}
	var held, waiting []candidate
	for _, c := range all {
		if c.held > 0 {
			held = append(held, c)
		} else {
			waiting = append(waiting, c)
		}
	}
	slices.SortFunc(waiting, func(a, b candidate) int { return moreNeed(a, b, largest) })
	slices.SortFunc(held, func(a, b candidate) int { // the first to give way first
		return cmp.Or(cmp.Compare(weight(a, largest)*float64(b.held), weight(b, largest)*float64(a.held)), strings.Compare(a.id, b.id))
	})
	for len(held) > budget { // 3
		drop, held = append(drop, held[0].id), held[1:]
	}
	for len(waiting) > 0 && len(held)+len(add) < budget { // 1
		add, waiting = append(add, waiting[0].id), waiting[1:]
	}
	left := max(1, budget/4) // 2
	for _, c := range held {
		if len(waiting) == 0 || left == 0 {
			break
		}
		if c.held < turn {
			continue
		}
		drop, add = append(drop, c.id), append(add, waiting[0].id)
		waiting, left = waiting[1:], left-1
	}
	return drop, add
}

func weight(c candidate, largest float64) float64 {
	w := 0.25
	if largest > 0 {
		w += c.size / largest
	}
	if c.approved {
		w *= 2
	}
	return w
}

// moreNeed orders the waiting workloads.
func moreNeed(a, b candidate, largest float64) int {
	switch {
	case a.never != b.never && a.never:
		return -1
	case a.never != b.never:
		return 1
	}
	wa, wb := weight(a, largest), weight(b, largest)
	if !a.never {
		wa, wb = wa*float64(a.waited), wb*float64(b.waited)
	}
	return cmp.Or(cmp.Compare(wb, wa), strings.Compare(a.id, b.id))
}
