// SPDX-License-Identifier: Apache-2.0

package vmmap

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"homenode/internal/set"
	"homenode/internal/unit"
)

// State is what is remembered between windows: a plain value. The zero State is a fresh
// start. Workloads that are not in a window are forgotten.
type State struct {
	VMs []Memory `json:"vms,omitempty"` // by workload
	// Price is the CPU seconds that moving a GB of memory took recently; unknown: none was
	// moved.
	Price unit.Opt[float64] `json:"price,omitzero"`
}

// Memory is what is remembered of a workload.
type Memory struct {
	Workload string `json:"workload"`
	// Its place: CPUs that no other VM has, the nodes of its CPUs and of its memory, and
	// how its memory is spread there. Empty: it has none.
	Nodes set.NodeSet `json:"nodes,omitzero"`
	CPUs  set.CPUSet  `json:"cpus,omitzero"`
	Share []Share     `json:"share,omitempty"` // by node, sum 1
	// Pending: its old binding is being given back; once that is done, it is bound to its
	// place.
	Pending bool `json:"pending,omitempty"`
	// Settling: its memory follows. It is not judged until enough has arrived, or none
	// arrived for Affected windows.
	Settling bool       `json:"settling,omitempty"`
	Since    time.Time  `json:"since,omitzero"`  // settling
	Still    int        `json:"still,omitempty"` // settling: windows in which nothing arrived
	Away     unit.Bytes `json:"away,omitempty"`  // settling: bytes elsewhere, the least so far
	Moved    time.Time  `json:"moved,omitzero"`  // when it last got another place
	Moves    int        `json:"moves,omitempty"` // moves since the last horizon without one
	Retry    time.Time  `json:"retry,omitzero"`  // it is left alone until then; zero: now
	Refusals int        `json:"refusals,omitempty"`

	Look Look `json:"look"`
	Pace Pace `json:"pace"`
}

// Share of a VM's memory on a node.
type Share struct {
	Node int     `json:"node"`
	Of   float64 `json:"of"`
}

// Look is the basis of its class.
type Look struct {
	Mean    Sample  `json:"mean"`
	Windows int     `json:"windows"` // number of windows in Mean
	Odd     int     `json:"odd,omitempty"`
	Says    Verdict `json:"says"`
	// Bounds of its occupancy of each of the machine's last-level caches.
	Bounds []Bounds `json:"bounds,omitempty"`
	// Else is another class, with the number of windows in a row in which the figures said
	// so.
	Else Verdict `json:"else,omitzero"`
	Row  int     `json:"row,omitempty"`
	// Past has its Looks of other behaviours, the latest last, each without a Past of its
	// own. A program of phases returns to them.
	Past []Look `json:"past,omitempty"`
	Back int    `json:"back,omitempty"` // how often it returned to this behaviour
}

// Pace is its performance by the metric.
type Pace struct {
	Now  unit.Opt[float64] `json:"now"`  // the last window's
	Best unit.Opt[float64] `json:"best"` // sustained, with its present behaviour
	// Run has the last windows, the oldest first, as many as Best must hold for.
	Run      []float64 `json:"run,omitempty"`
	Affected int       `json:"affected,omitempty"` // windows in a row
	// Vain is how often the search for a better place was in vain; Again is how many
	// windows it must be affected before the next search.
	Vain  int `json:"vain,omitempty"`
	Again int `json:"again,omitempty"`
}

// calm: it is not affected, or something was done.
func (p *Pace) calm() { p.Affected, p.Vain, p.Again = 0, 0, 0 }

// find returns the index of a workload, and whether it is there.
func (s State) find(id string) (int, bool) {
	return slices.BinarySearchFunc(s.VMs, id, func(m Memory, id string) int { return cmp.Compare(m.Workload, id) })
}

// of returns what is remembered of a workload.
func (s State) of(id string) Memory {
	if i, ok := s.find(id); ok {
		m := s.VMs[i]
		m.Pace.Run = slices.Clone(m.Pace.Run) // Share, Bounds and Curve are made anew, never changed
		return m
	}
	return Memory{Workload: id}
}

// Verdict is a workload's present class, as far as its counters show.
func (s State) Verdict(id string) (Verdict, bool) {
	i, ok := s.find(id)
	if !ok {
		return Verdict{}, false
	}
	return s.VMs[i].Look.Says, true
}

// placed reports that it has a place, or is on its way there.
func (m *Memory) placed() bool { return !m.CPUs.IsEmpty() }

// leave forgets its place.
func (m *Memory) leave() {
	m.Nodes, m.CPUs, m.Share, m.Pending, m.Settling = set.NodeSet{}, set.CPUSet{}, nil, false, false
}

// see adds one more window of its counters:
//
//  1. A change of behaviour: either the figures so far no longer apply, or it behaves as
//     it did before and continues from the figures of that time.
//  2. The mean is updated.
//  3. Another class is given once the figures say it for Windows windows in a row. A
//     figure that makes the present class surer is taken at once.
func (l *Look) see(f Infer, now Sample) (changed bool) {
	if is, ok := now.Intensity.Get(); ok { // 1
		was := l.Mean.Intensity.Or(is)
		if l.Odd++; f.alike(is, was) {
			l.Odd = 0
		}
		if l.Odd > 0 && l.Odd < f.Changed {
			return false
		}
		if changed = l.Odd > 0; changed {
			*l = l.turn(f, is)
		}
	}
	weight := max(f.Weight, 1/float64(l.Windows+1)) // 2: a plain mean at first
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

// Doubt says in words why its class is unknown, or that the class describes earlier
// behaviour; "": neither.
func (l *Look) Doubt(f Infer) string {
	says, s := l.Says, l.Mean
	switch {
	case !s.Waits.Known():
		return "the cycles that it waits for memory are not counted, or their counter does not work"
	case !s.Loads.Known():
		return "its reads from memory are not counted"
	case says.Class != Unknown && l.Windows < f.Windows:
		return "its behaviour has just changed: the class is from before the change"
	case says.Class != Unknown && l.Row > 0:
		return fmt.Sprintf("its last windows say %s: the class is from before them", l.Else.words())
	case says.Class != Unknown && l.otherwise(f) != "":
		return "it alternates: at times it behaves like a " + l.otherwise(f)
	case says.Class != Unknown:
		return ""
	case l.Windows < f.Windows && len(l.Past) > 0:
		return "its behaviour changes every few windows"
	case l.Windows < f.Windows:
		return fmt.Sprintf("%d of the %d windows that a class needs", l.Windows, f.Windows)
	case !s.Requests.Known():
		return "its requests beyond the private caches are not counted"
	case l.Row > 0:
		return fmt.Sprintf("its last windows say %s: a class needs %d in a row", l.Else.words(), f.Windows)
	}
	_, _, doubt := DefaultSolo().Class(s, f.DRAM)
	return doubt
}

// words returns "sensitive rabbit" or "unknown".
func (v Verdict) words() string {
	text := string(v.Class)
	if v.Class == Unknown {
		text = "unknown"
	}
	if v.Sensitive.Or(false) {
		text = "sensitive " + text
	} else if !v.Sensitive.Known() {
		text += ", sensitive or not"
	}
	return text
}

// otherwise is its class in the other phase of an alternating program; "": none is known.
func (l *Look) otherwise(f Infer) string {
	for _, p := range l.Past {
		if v := f.verdict(p.Mean, p.Windows); l.Back+p.Back > 0 && v.Class != Unknown && v.Class != l.Says.Class {
			return v.words()
		}
	}
	return ""
}

// alike reports that two figures of requests per instruction may be of one behaviour.
func (f Infer) alike(a, b float64) bool { return a <= b*(1+f.Change) && b <= a*(1+f.Change) }

// turn is the Look to use once it behaves otherwise.
func (l *Look) turn(f Infer, intensity float64) Look {
	next, past := Look{Says: l.Says}, slices.Clone(l.Past)
	if i := slices.IndexFunc(past, func(p Look) bool { return f.alike(p.Mean.Intensity.Or(intensity), intensity) }); i >= 0 {
		next = past[i]
		past = slices.Delete(past, i, i+1)
		next.Back++
		next.Says = f.verdict(next.Mean, next.Windows)
	}
	past = append(past, Look{Mean: l.Mean, Windows: l.Windows, Back: l.Back})
	if len(past) > behaviours { // the one known least is forgotten
		least := slices.MinFunc(past, func(a, b Look) int { return cmp.Compare(a.Windows, b.Windows) })
		i := slices.IndexFunc(past, func(p Look) bool { return p.Windows == least.Windows })
		past = slices.Delete(past, i, i+1)
	}
	next.Bounds, next.Past = l.Bounds, past
	return next
}

// behaviours is how many are remembered beside the present one.
const behaviours = 2

// see adds one more window of its performance. The best is what held for some windows in a
// row: the worst of them.
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

// better returns the better of two figures; an unknown figure is not better.
func better(metric Metric, a, b unit.Opt[float64]) unit.Opt[float64] {
	x, ok := a.Get()
	y, ok2 := b.Get()
	if !ok || ok2 && (metric == MPI && y < x || metric != MPI && y > x) {
		return b
	}
	return a
}

// deviation is (expected - measured) / expected; for misses the sign is reversed, as less
// is better. More than 0 is worse than expected.
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
