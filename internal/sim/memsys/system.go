// SPDX-License-Identifier: Apache-2.0

package memsys

import "homenode/internal/unit"

// LineBytes is a cache line.
const LineBytes = 64

// System is the part of a machine that decides the cost of memory. Nodes and domains are
// indexes: node i is the machine's Nodes[i], whatever its id. It is a value that does not
// change.
type System struct {
	Name    string
	How     unit.Source // source of its figures: modelled (a shape), measured (a profile), estimated
	From    string      // where the figures come from, in words
	Hz      float64     // core cycles per second
	Nodes   []Node
	Domains []Domain // CPUs that share an LLC; in order of their nodes
	Links   []Server // directed
	// Latency[c][m] is the cycles of a dependent read by a CPU of node c from the memory of
	// node m, with nothing else running. Transfer is the same for a line that another core
	// on node m, below another LLC, has modified.
	Latency, Transfer [][]float64
	// InLLC[c] is Transfer between cores below one LLC of node c; nil: as Transfer[c][c].
	InLLC []float64
	// Path[c][m] lists the links that a line takes from m's memory to c's CPUs.
	Path [][][]int

	L2        float64 // bytes, private to a core, where a domain does not say otherwise
	L2Cycles  float64 // of a hit
	LLCCycles float64
	Atomic    float64 // cycles of a locked read-modify-write beyond its line
	Misses    Misses
	Threads   int // CPUs of a core
	// Queue is how latency grows with the load of a server.
	Queue Queue
}

// Misses is how many lines a core can wait for at once, by where their buffers are; its
// threads share them. 0: no limit is known.
type Misses struct {
	L1 float64 // beyond L1: fill buffers. They hold what a program asks for, hit or miss
	L2 float64 // beyond L2: the queue to the LLC, also for lines that a prefetcher asks for
}

// Node is one NUMA node.
type Node struct {
	ID     int
	CPUs   float64 // online
	Memory float64 // bytes; 0: it has none
	Server         // its memory controllers, together
}

// Domain is the CPUs below one last-level cache.
type Domain struct {
	Node int
	CPUs float64
	LLC  float64 // bytes
	L2   float64 `json:",omitempty"` // bytes, private to one of its cores; 0: System.L2
	// Fabric carries what it reads from memory, any node's, and writes back: a CCD's way to
	// the rest of its package. Idle is the part of the idle latency that is spent there.
	Fabric Server
	Idle   float64
}

// l2Of is the L2 of a core below this domain's cache.
func (s *System) l2Of(domain int) float64 {
	if own := s.Domains[domain].L2; own > 0 {
		return own
	}
	return s.L2
}

// Server serves lines: a controller or one direction of a link.
type Server struct {
	Cycles float64 // per line: 1 / capacity. 0: no limit is known
	// Curve is the latency, as a multiple of the idle one, by utilisation (0 … 1):
	// measured. Empty: Queue decides.
	Curve []Point
}

// Point of a curve; X ascends.
type Point struct{ X, Y float64 }

// Queue is the law of waiting at a server.
type Queue int

// The laws.
const (
	// For measured machines: the normalised curve of a two-socket Skylake (facts of
	// latency.md, Intel's MLC), where the server has none of its own. It was measured with
	// all reads local. That a link's waits follow the same curve, as multiples of what the
	// link adds to the idle latency, is a guess.
	PublishedCurve Queue = iota
	// The lab's: M/D/1 up to a load of 0.95, then whatever wait keeps the load at 0.98
	// of the capacity (lab/plugin/queue.c).
	MD1
)
