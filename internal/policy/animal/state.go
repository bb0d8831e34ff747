// SPDX-License-Identifier: Apache-2.0

package animal

import (
	"cmp"
	"slices"
	"time"

	"homenode/internal/set"
	"homenode/internal/unit"
)

// State is what is remembered between windows: a plain value. The zero State is a fresh
// start. Who is not in a window is forgotten.
type State struct {
	VMs []Memory `json:"vms,omitempty"` // by workload
	// Price is seconds of a CPU that moving a GB of memory took lately; unknown: none was.
	Price unit.Opt[float64] `json:"price,omitzero"`
}

// Memory is what is remembered of a workload.
type Memory struct {
	Workload string `json:"workload"`
	// Its place: CPUs that are nobody else's, their nodes and those of its memory, and
	// how its memory is spread there. Empty: it has none.
	Nodes set.NodeSet `json:"nodes,omitzero"`
	CPUs  set.CPUSet  `json:"cpus,omitzero"`
	Share []Share     `json:"share,omitempty"` // by node, of 1
	// Pending: what it had is being given back; it is bound to its place once that is done.
	Pending bool `json:"pending,omitempty"`
	// Settling: its memory follows; it is not judged until enough is there, or nothing
	// came for Affected windows.
	Settling bool       `json:"settling,omitempty"`
	Since    time.Time  `json:"since,omitzero"`  // settling
	Still    int        `json:"still,omitempty"` // settling: windows in which nothing came
	Away     unit.Bytes `json:"away,omitempty"`  // settling: bytes elsewhere, the least seen
	Moved    time.Time  `json:"moved,omitzero"`  // when it was last given a place while it had one
	Moves    int        `json:"moves,omitempty"` // since the last horizon without one
	Retry    time.Time  `json:"retry,omitzero"`  // not before; zero: now
	Refusals int        `json:"refusals,omitempty"`

	Look Look `json:"look"`
	Pace Pace `json:"pace"`
}

// Share of a VM's memory on a node.
type Share struct {
	Node int     `json:"node"`
	Of   float64 `json:"of"`
}

// Look is what its class comes from.
type Look struct {
	Mean    Sample  `json:"mean"`
	Windows int     `json:"windows"` // in Mean
	Odd     int     `json:"odd,omitempty"`
	Says    Verdict `json:"says"`
	// Else is another class, and for how many windows in a row the figures have said so.
	Else Verdict `json:"else,omitzero"`
	Row  int     `json:"row,omitempty"`
}

// Pace is its performance by the metric.
type Pace struct {
	Now  unit.Opt[float64] `json:"now"`  // the last window's
	Best unit.Opt[float64] `json:"best"` // sustained, for its present behaviour
	// Run are the last windows, the oldest first, as many as Best must hold for.
	Run      []float64 `json:"run,omitempty"`
	Affected int       `json:"affected,omitempty"` // windows in a row
	// Vain is how often a better place was looked for in vain, and Again how many windows
	// it must be affected for until it is looked for again.
	Vain  int `json:"vain,omitempty"`
	Again int `json:"again,omitempty"`
}

// calm: it is not affected, or something was done.
func (p *Pace) calm() { p.Affected, p.Vain, p.Again = 0, 0, 0 }

// find is the place of a workload, and whether it is there.
func (s State) find(id string) (int, bool) {
	return slices.BinarySearchFunc(s.VMs, id, func(m Memory, id string) int { return cmp.Compare(m.Workload, id) })
}

// of returns what is remembered of a workload.
func (s State) of(id string) Memory {
	if i, ok := s.find(id); ok {
		m := s.VMs[i]
		m.Pace.Run = slices.Clone(m.Pace.Run) // Share is never changed
		return m
	}
	return Memory{Workload: id}
}

// Verdict is what a workload is taken for at present, as far as its counters tell.
func (s State) Verdict(id string) (Verdict, bool) {
	i, ok := s.find(id)
	if !ok {
		return Verdict{}, false
	}
	return s.VMs[i].Look.Says, true
}

// placed says that it has a place, or is on its way there.
func (m *Memory) placed() bool { return !m.CPUs.IsEmpty() }

// leave forgets its place.
func (m *Memory) leave() {
	m.Nodes, m.CPUs, m.Share, m.Pending, m.Settling = set.NodeSet{}, set.CPUSet{}, nil, false, false
}

// see is one more window of its counters:
//
//  1. A change of behaviour: the figures so far are of another program.
//  2. The mean goes on.
//  3. Another class is said once the figures say it for Windows windows in a row; what
//     makes it surer of the same one is taken at once.
func (l *Look) see(f Infer, now Sample) (changed bool) {
	if is, ok := now.Intensity.Get(); ok { // 1
		was := l.Mean.Intensity.Or(is)
		if l.Odd++; is <= was*(1+f.Change) && was <= is*(1+f.Change) {
			l.Odd = 0
		}
		if l.Odd > 0 && l.Odd < f.Changed {
			return false
		}
		if changed = l.Odd > 0; changed {
			*l = Look{Says: l.Says}
		}
	}
	weight := max(f.Weight, 1/float64(l.Windows+1)) // 2: the plain mean at first
	l.Mean = l.Mean.mix(now, weight)
	if now.Waits.Known() {
		l.Windows++
	}
	v := f.verdict(l.Mean, l.Windows) // 3
	switch same := v.Class == l.Says.Class && v.Sensitive == l.Says.Sensitive; {
	case l.Windows < f.Windows:
	case same:
		l.Says, l.Row = v, 0
	case l.Says.Class == Unknown && l.Says.Windows == 0:
		l.Says, l.Row = v, 0
	default:
		if v.Class != l.Else.Class || v.Sensitive != l.Else.Sensitive {
			l.Row = 0
		}
		if l.Else, l.Row = v, l.Row+1; l.Row >= f.Windows {
			l.Says, l.Else, l.Row = v, Verdict{}, 0
		}
	}
	return changed
}

// see is one more window of its performance. The best is what held for some windows in
// a row: the worst of them.
func (p *Pace) see(now unit.Opt[float64], metric Metric, sustained int) {
	p.Now = now
	v, ok := now.Get()
	if !ok {
		p.Run = nil
		return
	}
	if p.Run = append(p.Run, v); len(p.Run) > sustained {
		p.Run = p.Run[len(p.Run)-sustained:]
	}
	switch {
	case len(p.Run) < sustained:
	case metric == MPI:
		p.Best = better(metric, p.Best, unit.Some(slices.Max(p.Run)))
	default:
		p.Best = better(metric, p.Best, unit.Some(slices.Min(p.Run)))
	}
}

// better of two figures; one that is unknown is not.
func better(metric Metric, a, b unit.Opt[float64]) unit.Opt[float64] {
	x, ok := a.Get()
	y, ok2 := b.Get()
	if !ok || ok2 && (metric == MPI && y < x || metric != MPI && y > x) {
		return b
	}
	return a
}

// deviation is (expected - measured) / expected; of misses the other way round, as
// less is better. More than 0 is worse than expected.
func deviation(metric Metric, expected, measured unit.Opt[float64]) unit.Opt[float64] {
	e, ok := expected.Get()
	m, ok2 := measured.Get()
	switch {
	case !ok || !ok2 || e <= 0:
		return unit.None[float64]()
	case metric == MPI:
		return unit.Some((m - e) / e)
	}
	return unit.Some((e - m) / e)
}
