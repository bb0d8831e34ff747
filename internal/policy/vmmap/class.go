// SPDX-License-Identifier: Apache-2.0

package vmmap

import "homenode/internal/unit"

// Class is how a workload behaves beside others in a cache (Xie and Loh, CMP-MSI 2008). As
// in Lakew et al., there is no turtle, which hardly uses the cache: it is a sheep here.
type Class string

// The classes. Package sim/catalog uses the same words for the true classes of its
// applications.
const (
	Unknown Class = ""
	Sheep   Class = "sheep"  // neither slowed by sharing a cache, nor slows others
	Rabbit  Class = "rabbit" // fast with a whole cache, slowed with less
	Devil   Class = "devil"  // accesses much and misses often in any case: slows others
)

// Slowdowns are measured slowdowns of a program, each a share of its time alone: 0.25 is a
// quarter longer. An unknown slowdown is unknown, not 0.
//
// How to measure them: the program has half of the CPUs of one last-level cache, and its
// memory is local. The other half is idle ("alone") or runs the reference named in the
// line.
//
//	Hurt    its own slowdown beside the reference devil: one stream a CPU, each over
//	        at least four times the cache, modifying nothing
//	Harm    the slowdown of the reference rabbit beside it: chases without locality
//	        over half of the cache, all its CPUs together
//	Remote  its own slowdown alone, with all of its memory at a SLIT distance of 20
//	        (or the one nearest to that which the machine has; say which)
//
// Compare operations per second, not instructions: threads may spin.
type Slowdowns struct {
	Hurt   unit.Opt[float64] `json:"hurt"`
	Harm   unit.Opt[float64] `json:"harm"`
	Remote unit.Opt[float64] `json:"remote"`
}

// HurtLimit is the slowdown from which on it counts: 10 %. It is our choice. The spread of
// repeated runs is below it, and Lakew's least benefit (a sensitive program at distance 16
// or 22) is 5 to 10 %.
const HurtLimit = 0.10

// ClassOf defines the classes by measured slowdowns:
//
//  1. Neither slowed nor slowing others, both below HurtLimit: a sheep.
//  2. Else the larger one decides: a rabbit if it is slowed at least as much as it slows
//     others, a devil if it slows them more. So a program that fills the cache and uses what
//     it brought there is a rabbit, even if others feel it. A program that streams is a
//     devil, even if it feels another stream.
//  3. Sensitive: at least HurtLimit slower with remote memory.
//
// The class is unknown if Hurt or Harm is: one alone decides nothing, as the larger one
// decides. Sensitive is unknown with Remote.
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
