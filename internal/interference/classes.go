// SPDX-License-Identifier: Apache-2.0

package interference

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"homenode/internal/machine"
	"homenode/internal/policy/vmmap"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// Study learns from windows. It is not safe for concurrent use.
type Study struct {
	m        machine.Machine
	cfg      vmmap.Config
	seen     map[string]*seen
	windows  int
	from, to time.Time
	fresh    bool // a recording starts
}

// seen is what was seen of a workload.
type seen struct {
	service string
	memory  vmmap.Memory
	how     unit.Source // source of its counters, the weakest over all windows that have any
	counted bool        // its cycles are known in at least one window
	ran     bool        // and were more than 0
	at      time.Time
}

// New starts a study on a machine.
func New(m machine.Machine, constants vmmap.Infer) *Study {
	s := &Study{m: m, cfg: vmmap.DefaultConfig(), seen: map[string]*seen{}}
	s.cfg.Infer = constants
	return s
}

// Recording says that the next windows come from another recording, which must be later.
func (s *Study) Recording() { s.fresh = true }

// Window learns from one window. A workload that was absent from the windows before
// continues from its last state; what was brought into caches in the gap is unknown. A step
// of the clock counts as a gap.
func (s *Study) Window(w window.Window) error {
	begins := w.At.Add(-w.Length)
	if s.windows > 0 && s.fresh && begins.Before(s.to.Add(-w.Length/2)) {
		return fmt.Errorf("it begins at %s, and the recording before it ends at %s: give them in the order in which they were made, each once", begins.Format(time.DateTime), s.to.Format(time.DateTime))
	}
	s.fresh = false
	if s.windows++; s.windows == 1 {
		s.from = begins
	}
	gap := begins.Sub(s.to)
	st := vmmap.Learn(s.m, s.cfg, s.known(&w, max(gap, -gap) > w.Length/2), w)
	s.to = w.At
	for i := range w.Workloads {
		s.note(&w.Workloads[i], st.VMs[i], w.At)
	}
	return nil
}

// known returns the workloads of a window that were seen before. Bounds of their occupancy
// hold only over windows without a gap.
func (s *Study) known(w *window.Window, gap bool) vmmap.State {
	var st vmmap.State
	for i := range w.Workloads {
		is, ok := s.seen[w.Workloads[i].ID]
		if !ok {
			continue
		}
		if gap || !is.at.Equal(s.to) {
			is.memory.Look.Bounds = nil
		}
		st.VMs = append(st.VMs, is.memory)
	}
	slices.SortFunc(st.VMs, func(a, b vmmap.Memory) int { return cmp.Compare(a.Workload, b.Workload) })
	return st
}

func (s *Study) note(wl *window.Workload, memory vmmap.Memory, at time.Time) {
	is, ok := s.seen[wl.ID]
	if !ok {
		is = &seen{}
		s.seen[wl.ID] = is
	}
	is.service, is.memory, is.at = wl.Service, memory, at
	cycles, ok := wl.Cycles.Get()
	is.counted, is.ran = is.counted || ok, is.ran || cycles > 0
	if how := counted(wl); is.how == unit.HowUnknown {
		is.how = how
	} else if how != unit.HowUnknown {
		is.how = unit.Weakest(is.how, how)
	}
}

// counted is the source of the counters that a class is based on.
func counted(wl *window.Workload) unit.Source {
	waits := wl.UncoreWaits
	if !waits.Known() {
		waits = wl.StallCycles
	}
	var known []unit.Source
	for _, v := range []unit.Value[uint64]{wl.Cycles, wl.UncoreRequests, waits, wl.LocalLoads, wl.RemoteLoads, wl.LLCMisses} {
		if v.Known() {
			known = append(known, v.How)
		}
	}
	if wl.LLC.Known() {
		known = append(known, wl.LLC.How)
	}
	return unit.Weakest(known...)
}

// Machine is the machine studied.
func (s *Study) Machine() machine.Machine { return s.m }

// Another says why a recording's machine is not the one studied; "": it is the same.
func (s *Study) Another(m machine.Machine) string {
	nodes := func(m machine.Machine) (all set.NodeSet) {
		for _, n := range m.Nodes {
			all = all.With(n.ID)
		}
		return all
	}
	switch {
	case len(m.CPUs) != len(s.m.CPUs) || !nodes(m).Equal(nodes(s.m)):
		return fmt.Sprintf("it has %d CPUs and nodes %v, the first %d and nodes %v", len(m.CPUs), nodes(m), len(s.m.CPUs), nodes(s.m))
	case !slices.EqualFunc(m.LLCs, s.m.LLCs, func(a, b machine.Cache) bool { return a.Size == b.Size && a.CPUs.Equal(b.CPUs) }):
		return "it has other last-level caches than the first"
	case !slices.EqualFunc(m.Distances, s.m.Distances, slices.Equal[[]unit.Opt[int]]):
		return "it has other distances between nodes than the first"
	}
	return ""
}

// Result is the result of a study.
type Result struct {
	Schema    int         `json:"schema"`
	Windows   int         `json:"windows"`
	From      time.Time   `json:"from_time"`
	To        time.Time   `json:"to_time"`
	Origin    string      `json:"origin"` // the machine's
	Constants vmmap.Infer `json:"constants"`
	Workloads []Workload  `json:"workloads"` // by class, then by name
	Notes     []string    `json:"notes,omitempty"`
}

// Workload is a workload's inferred class. Figures are shares of its time, estimated.
type Workload struct {
	ID        string         `json:"workload"`
	Service   string         `json:"service,omitempty"`
	Class     vmmap.Class    `json:"class"` // "": unknown
	Sensitive unit.Opt[bool] `json:"sensitive"`
	// Hurt, Harm and Remote are vmmap.Slowdowns.
	Hurt   unit.Value[float64] `json:"hurt"`
	Harm   unit.Value[float64] `json:"harm"`
	Remote unit.Value[float64] `json:"remote"`
	// HurtRange and HarmRange are the intervals of Hurt and Harm where they come from
	// windows in which it was never seen with less of a cache (vmmap.Solo).
	HurtRange unit.Opt[vmmap.Range] `json:"hurt_range,omitzero"`
	HarmRange unit.Opt[vmmap.Range] `json:"harm_range,omitzero"`
	// Low and High are the least and the most that it may hold of each last-level cache
	// that it uses, as means over windows, and Held is their source. They are equal where
	// occupancy is counted; otherwise they are estimated from what all workloads bring in.
	Low     unit.Opt[unit.Bytes] `json:"low_bytes"`
	High    unit.Opt[unit.Bytes] `json:"high_bytes"`
	Held    unit.Source          `json:"held"`
	Margin  unit.Opt[float64]    `json:"margin"`  // 0 … 1: distance of the figures from another class
	Windows int                  `json:"windows"` // number of windows behind it
	Doubt   string               `json:"doubt,omitempty"`
	Counted unit.Source          `json:"counted"` // source of its counters, the weakest of them
	At      time.Time            `json:"at"`      // time of its last window
}

// Result is the result of all windows so far.
func (s *Study) Result() Result {
	out := Result{Schema: 1, Windows: s.windows, From: s.from, To: s.to, Origin: s.m.Origin, Constants: s.cfg.Infer, Workloads: []Workload{}}
	blind := false
	var other []string
	for id, is := range s.seen {
		out.Workloads = append(out.Workloads, is.workload(id, s.cfg.Infer))
		mean := &is.memory.Look.Mean
		if vmmap.StallsOfElse(*mean, s.cfg.Infer.DRAM) {
			other = append(other, id)
		}
		blind = blind || is.ran && !(mean.Waits.Known() && mean.Requests.Known())
	}
	if len(other) > 0 {
		slices.Sort(other)
		out.Notes = append(out.Notes, "the stall cycles of "+strings.Join(other, ", ")+" are more than all its requests could wait: the event counts other stalls than those for memory. No more is used of them than the requests explain, and waits for memory are not known from it")
	}
	if blind {
		out.Notes = append(out.Notes, "requests or waits of some workloads are unknown: 'homenode record --windows FILE --penalty' counts them, where the CPU has events for them ('homenode events')")
	}
	order := []vmmap.Class{vmmap.Devil, vmmap.Rabbit, vmmap.Sheep, vmmap.Unknown}
	slices.SortFunc(out.Workloads, func(a, b Workload) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Class), slices.Index(order, b.Class)), cmp.Compare(a.ID, b.ID))
	})
	return out
}

func (is *seen) workload(id string, f vmmap.Infer) Workload {
	look := &is.memory.Look
	says, doubt := look.Says, is.doubt(f)
	value := func(v unit.Opt[float64]) unit.Value[float64] {
		if x, ok := v.Get(); ok {
			return unit.Estimated(x, fmt.Sprintf("counters (%v)", is.how))
		}
		return unit.UnknownValue[float64](doubt)
	}
	out := Workload{
		ID: id, Service: is.service, Class: says.Class, Sensitive: says.Sensitive,
		Hurt: value(says.Slowdowns.Hurt), Harm: value(says.Slowdowns.Harm), Remote: value(says.Slowdowns.Remote),
		HurtRange: says.HurtRange, HarmRange: says.HarmRange, Margin: says.Certain, Windows: says.Windows, Doubt: doubt, Counted: is.how, At: is.at,
	}
	if says.Windows == 0 {
		out.Windows = look.Windows
	}
	if low, high := look.Mean.Low, look.Mean.High; look.Mean.Held.Known() {
		out.Low, out.High, out.Held = bytesOf(look.Mean.Held), bytesOf(look.Mean.Held), is.how
	} else if low.Known() && high.Known() {
		out.Low, out.High, out.Held = bytesOf(low), bytesOf(high), unit.HowEstimated
	}
	return out
}

func bytesOf(v unit.Opt[float64]) unit.Opt[unit.Bytes] {
	x, ok := v.Get()
	return unit.OptOf(unit.Bytes(x), ok && x >= 0 && x < math.MaxInt64/2)
}

// squeezed is the share of a cache below which a program does not show what it would do
// with more (decision 0020). A sheep, by that margin, uses little and holds little.
const (
	squeezed    = 0.5
	sheepMargin = 0.5
)

// doubt is Look.Doubt, and reasons that a mean over windows does not show.
func (is *seen) doubt(f vmmap.Infer) string {
	switch {
	case is.memory.Look.Mean.Waits.Known():
	case !is.counted:
		return "its cycles are not counted"
	case !is.ran:
		return "it did not run while it was counted"
	}
	look := &is.memory.Look
	text, curve := look.Doubt(f), look.Mean.Curve
	if text != "" || len(curve) == 0 || look.Says.Class == vmmap.Sheep && look.Says.Certain.Or(0) >= sheepMargin {
		return text
	}
	if most := curve[len(curve)-1].Held; most < squeezed {
		return fmt.Sprintf("it was never seen with more than %v of a cache: its effect on others with more is unknown", unit.Ratio(most))
	}
	return ""
}

// Sample is the mean over a workload's windows of its present behaviour: the result of a
// reference's recording.
func (s *Study) Sample(id string) (vmmap.Sample, error) {
	is, ok := s.seen[id]
	if !ok {
		return vmmap.Sample{}, fmt.Errorf("no window has a workload %q", id)
	}
	if look := &is.memory.Look; look.Windows >= s.cfg.Infer.Windows {
		return look.Mean, nil
	}
	return vmmap.Sample{}, fmt.Errorf("%q behaved alike in %d windows: want %d and more in which all is counted", id, is.memory.Look.Windows, s.cfg.Infer.Windows)
}

// Look is all that is known about a workload.
func (s *Study) Look(id string) (vmmap.Look, bool) {
	is, ok := s.seen[id]
	if !ok {
		return vmmap.Look{}, false
	}
	return is.memory.Look, true
}

// IDs are all workloads that were seen, sorted.
func (s *Study) IDs() []string {
	ids := make([]string, 0, len(s.seen))
	for id := range s.seen {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}
