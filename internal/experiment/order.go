// SPDX-License-Identifier: Apache-2.0

package experiment

import "math/rand/v2"

// Run is one run of one arm.
type Run struct {
	Arm    int  // index of the arm
	Repeat int  // from 0; warm-ups are counted separately
	Warm   bool // it is a warm-up, and does not count
}

// Plan is warm-ups and then Order, so that the cost of the first runs for
// caches, page cache and clock frequency falls on no run that counts. A seed
// gives the measured runs the same order with warm-ups and without.
func Plan(arms, warmups, repeats int, seed uint64) []Run {
	plan := make([]Run, 0, arms*(warmups+repeats))
	for r := range warmups {
		for a := range arms {
			plan = append(plan, Run{Arm: a, Repeat: r, Warm: true})
		}
	}
	return append(plan, Order(arms, repeats, seed)...)
}

// Order interleaves the arms: every repeat runs each arm once, in an order
// drawn from the seed, so that a drift of the machine affects all arms alike.
// Every second repeat runs the mirror image of the one before (ABBA).
func Order(arms, repeats int, seed uint64) []Run {
	rng := rand.New(rand.NewPCG(seed, 0x686f6d656e6f6465))
	order := make([]Run, 0, arms*repeats)
	var perm []int
	for r := range repeats {
		if r%2 == 0 {
			perm = rng.Perm(arms)
		} else {
			for i, j := 0, len(perm)-1; i < j; i, j = i+1, j-1 {
				perm[i], perm[j] = perm[j], perm[i]
			}
		}
		for _, a := range perm {
			order = append(order, Run{Arm: a, Repeat: r})
		}
	}
	return order
}
