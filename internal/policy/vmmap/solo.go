// SPDX-License-Identifier: Apache-2.0

package vmmap

import (
	"fmt"
	"math"

	"homenode/internal/unit"
)

// Range is an estimate and its interval. 16 of 18 measured programs lie in theirs.
type Range struct {
	Expected float64 `json:"expected"`
	Low      float64 `json:"low"`
	High     float64 `json:"high"`
}

// Solo has the constants of what is expected of a program that was never seen with less of
// a cache than it takes. Fitted on 18 programs beside themselves on a Xeon E5-2683 v4
// (measured facts, part A; TestMeasured leaves one program out at a time).
type Solo struct {
	Lines  float64 // share of its time that a line of memory in 1000 cycles costs beside others, where all requests miss
	Power  float64 // by which the miss ratio weighs that
	Lost   float64 // share of its hits that it loses beside others
	Most   float64 // the same, at most
	Spread float64 // factor by which the part of the misses may be off, either way
}

// DefaultSolo is fitted on all 18. Lost: with half of the cache none of the 18 loses more
// than 14 % of its hits. Most: one that was seen with a twentieth of the cache lost 52 %,
// which is some 30 % at a third.
func DefaultSolo() Solo {
	return Solo{Lines: 0.072, Power: 1.5, Lost: 0.1, Most: 0.3, Spread: 2.2}
}

// hitCycles is a hit of the last-level cache (measured with the machine of the fit: 54).
const hitCycles = 54

// Expect is what a program's own counters say about it beside others:
//
//  1. It waits no longer than its stall cycles, and no longer than all its requests take
//     one after the other: stalls may have any reason.
//  2. Its lines wait for memory that others use, too: in proportion to the lines a cycle that
//     it moves, and the more the larger the part of its requests that misses. Lines are the
//     traffic where that is counted, as write-backs and prefetches fill memory, too, and
//     misses are counted that memory never sees; else they are its reads.
//  3. Its hits turn into misses: a share of the waiting for hits, each longer by DRAM − 1.
//     What the program holds of an idle cache says nothing about that: nearly all programs
//     fill one.
//  4. Harm is number 2 for a neighbour whose requests all miss.
//
// False: requests, reads or waits are not counted.
func (f Solo) Expect(s Sample, dram float64) (hurt, harm Range, ok bool) {
	requests, ok1 := s.Requests.Get()
	loads, ok2 := s.Loads.Get()
	waits, ok3 := s.Waits.Get()
	if !ok1 || !ok2 || !ok3 {
		return hurt, harm, false
	}
	requests = max(requests, loads)
	misses := f.Lines * s.Traffic.Or(loads) * 1000 // 2
	own := 0.0
	if requests > 0 {
		own = misses * math.Pow(loads/requests, f.Power)
	}
	all := requests - loads + float64(dram*loads)
	waits = min(waits, hitCycles*all) // 1
	lost := 0.0                       // 3
	if all > 0 {
		lost = waits * (requests - loads) / all * (dram - 1)
	}
	hurt = Range{own + float64(f.Lost*lost), own / f.Spread, float64(own*f.Spread) + float64(f.Most*lost)}
	harm = Range{misses, misses / f.Spread, misses * f.Spread} // 4
	return hurt, harm, true
}

// Class is the class that both intervals leave, how far they are from another one (0 … 1),
// and why there is none:
//
//  1. A sheep: neither figure reaches the limit.
//  2. A devil: it slows others by the limit and more, and more than it could lose by its
//     hits. Its own misses are what both have in common.
//  3. Else unknown: a rabbit shows only once it was seen with less of the cache.
func (f Solo) Class(s Sample, dram float64) (class Class, certain unit.Opt[float64], doubt string) {
	hurt, harm, ok := f.Expect(s, dram)
	hits := hurt.High - float64(hurt.Low*f.Spread*f.Spread)
	switch {
	case !ok:
		return Unknown, certain, "its requests, reads or waits are not counted"
	case hurt.High < HurtLimit && harm.High < HurtLimit: // 1
		return Sheep, unit.Some(apart(max(hurt.High, harm.High), HurtLimit)), ""
	case harm.Low >= HurtLimit && hits < harm.Low: // 2
		return Devil, unit.Some(min(apart(harm.Low, HurtLimit), apart(hits, harm.Low))), ""
	case hits >= HurtLimit: // 3
		return Unknown, certain, fmt.Sprintf("it was never seen with less of a cache than it takes: the hits that it would lose slow it by %v at most", unit.Ratio(hits))
	}
	return Unknown, certain, fmt.Sprintf("beside others it is slowed by %v to %v, and slows them by %v to %v: the limit between classes is %v",
		unit.Ratio(hurt.Low), unit.Ratio(hurt.High), unit.Ratio(harm.Low), unit.Ratio(harm.High), unit.Ratio(HurtLimit))
}

// StallsOfElse says that its stall cycles count more than waiting for its requests.
func StallsOfElse(s Sample, dram float64) bool {
	waits, ok := s.Waits.Get()
	requests, ok2 := s.Requests.Get()
	loads, ok3 := s.Loads.Get()
	most := hitCycles * (max(0, requests-loads) + float64(2*dram*loads)) // twice: a full memory
	return ok && ok2 && ok3 && waits > most+0.05
}
