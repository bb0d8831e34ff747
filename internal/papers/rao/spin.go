// SPDX-License-Identifier: Apache-2.0

package rao

import (
	"math"

	"homenode/internal/profile"
	"homenode/internal/sim/memsys"
	"homenode/internal/unit"
)

// Spinning is one placement of threads that meet at barriers: some on the first node, the
// others on the second, all memory on the first. The slowest thread sets the pace.
type Spinning struct {
	WS      unit.Bytes
	Threads int
	Away    int     // threads on the second node
	Time    float64 // cycles per operation, of the slowest thread
	// Penalty and MissRate cover all threads. A thread that spins makes no requests.
	Penalty, MissRate float64
	Spins, Sleeps     float64 // IPC, if a waiting thread spins (an instruction a cycle), or sleeps
}

// Spins are the placements of four threads by the number of threads away from their memory.
func Spins(sys *memsys.System) []Spinning {
	g := grid{sys: sys}
	const threads = 4
	if len(sys.Nodes) < 2 || g.threadsOf(threads, profile.Intra) == nil {
		return nil
	}
	var out []Spinning
	for _, ws := range workingSets {
		for away := range threads + 1 {
			out = append(out, g.spinning(ws, threads, away))
		}
	}
	return out
}

// spinning: a faster thread does as many operations as the slowest, and waits for the rest
// of the time. It takes two rounds, since a waiting thread makes less traffic.
func (g *grid) spinning(ws unit.Bytes, threads, away int) Spinning {
	work := workOf(ws, 0)
	loads := g.loads([]int{threads - away, away}, profile.Local, work)
	for i := range loads {
		for m := range loads[i].Home {
			loads[i].Home[m] = 0
		}
		loads[i].Home[0] = 1
	}
	pace := 0.0
	var res *memsys.Result
	for range spinRounds {
		res = g.solver.Solve(g.sys, loads)
		pace = paceOf(loads, res)
		for i := range loads {
			loads[i].Ops = pace * loads[i].Threads
		}
	}
	t := totalOf(g.sys, work, res)
	s := Spinning{WS: ws, Threads: threads, Away: away, Time: g.sys.Hz / pace, Penalty: t.waits / t.requests, MissRate: t.reads / t.requests}
	all := s.Time * float64(threads) // CPU cycles of all threads, for one operation of each
	worked := t.cycles * float64(threads)
	done := work.Instructions * float64(threads)
	s.Spins = (done + all - worked) / all
	s.Sleeps = done / worked
	return s
}

// spinRounds is how often pace and traffic are computed in turn. A third round changes less
// than a thousandth.
const spinRounds = 4

// paceOf is the operations per second of a thread that does not wait, where that is lowest.
func paceOf(loads []memsys.Load, res *memsys.Result) float64 {
	pace := math.Inf(1)
	for i, l := range res.Loads {
		pace = min(pace, l.Ops/l.CPUs*loads[i].CPUs/loads[i].Threads)
	}
	return pace
}
