// SPDX-License-Identifier: Apache-2.0

package vmmap

import "homenode/internal/unit"

// Class is how a workload behaves beside others in a cache (Xie and Loh, CMP-MSI
// 2008; Lakew et al. leave out their turtle, which hardly uses the cache: a sheep here).
type Class string

// The classes. Package sim/apps has the same words for what its applications truly are.
const (
	Unknown Class = ""
	Sheep   Class = "sheep"  // is not hurt by sharing a cache, and hurts none
	Rabbit  Class = "rabbit" // is fast with the cache it has alone, and hurt where it has less
	Devil   Class = "devil"  // accesses much and misses often anyhow: hurts others
)

// Slowdowns are what was measured of a program, each a share of its time alone:
// 0.25 is a quarter longer. Unknown figures are unknown, not 0.
//
// How to measure them: the program has half of the CPUs of one last-level cache, its
// memory is local; the other half idles ("alone"), or has the reference of the line.
//
//	Hurt    its own slowdown beside the reference devil: one stream a CPU, each over
//	        at least four times the cache, modifying nothing
//	Harm    the slowdown of the reference rabbit beside it: chases without locality
//	        over half of the cache, all its CPUs together
//	Remote  its own slowdown alone, with all of its memory at a SLIT distance of 20
//	        (or the one nearest to that which the machine has; say which)
//
// Operations a second are what is compared, not instructions: threads may spin.
type Slowdowns struct {
	Hurt   unit.Opt[float64] `json:"hurt"`
	Harm   unit.Opt[float64] `json:"harm"`
	Remote unit.Opt[float64] `json:"remote"`
}

// HurtLimit is from where on a slowdown counts: 10 %. It is our choice: the spread of
// repeated runs is below that, and Lakew's least benefit (a sensitive program at
// distance 16 or 22) is 5 to 10 %.
const HurtLimit = 0.10

// ClassOf is the definition of the classes, by what was measured:
//
//  1. Neither hurt nor hurting, both below HurtLimit: a sheep.
//  2. Else whichever is more: a rabbit where it is hurt at least as much as it hurts,
//     a devil where it hurts more. So a program that fills the cache and uses what it
//     brought there is a rabbit, even if others feel it; one that streams is a devil,
//     even if it feels another stream.
//  3. Sensitive: at least HurtLimit slower with remote memory.
//
// Unknown where a figure that decides is: one alone decides nothing, as whichever is
// more is asked for. Sensitive is unknown with Remote.
func ClassOf(s Slowdowns) (c Class, sensitive unit.Opt[bool]) {
	if remote, ok := s.Remote.Get(); ok { // 3
		sensitive = unit.Some(remote >= HurtLimit)
	}
	hurt, ok := s.Hurt.Get()
	harm, ok2 := s.Harm.Get()
	switch {
	case !ok || !ok2:
		return Unknown, sensitive
	case hurt < HurtLimit && harm < HurtLimit: // 1
		return Sheep, sensitive
	case hurt >= harm: // 2
		return Rabbit, sensitive
	}
	return Devil, sensitive
}
