// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"slices"
	"time"

	"homenode/internal/action"
	"homenode/internal/machine"
	"homenode/internal/policy/mao"
	"homenode/internal/set"
	"homenode/internal/window"
)

// Arm is a configuration that decides.
type Arm struct {
	Name string
	MAO  mao.Config
	// Services names workloads by this configuration; nil: as recorded.
	Services func(*window.Window)
}

// Decision is one action of an arm.
type Decision struct {
	At       time.Time     `json:"at"`
	Seq      uint64        `json:"seq"`
	Workload string        `json:"workload"`
	Kind     action.Kind   `json:"kind"`
	Nodes    set.NodeSet   `json:"nodes,omitzero"`
	Room     bool          `json:"makes_room,omitempty"` // it makes room for others, or stops doing so
	Reason   action.Reason `json:"reason"`               // without alternatives
}

// Replay runs both arms on a recording. It is not safe for concurrent use.
type Replay struct {
	m         machine.Machine
	then, now *side
	windows   uint64
	from, to  time.Time
	length    time.Duration
	seen      map[string]string // workload → its service in the second arm
	fate      fate
	diff      []Difference
	missed    int // differences beyond maxDifferences
}

// New begins a replay on the recording's machine.
func New(m machine.Machine, then, now Arm) *Replay {
	return &Replay{m: m, then: newSide(then), now: newSide(now), seen: map[string]string{}}
}

// side is the state of one arm.
type side struct {
	arm       Arm
	st        mao.State
	held      map[string]held
	workloads map[string]*Tally
	total     Tally
	last      []Decision // decisions of the last window
}

// held is what is set for a workload now.
type held struct {
	nodes set.NodeSet
	room  bool // it makes room for others: CPUs only
}

func newSide(a Arm) *side {
	return &side{arm: a, held: map[string]held{}, workloads: map[string]*Tally{}}
}

// fate compares the first arm with the recorded settings.
type fate struct {
	windows, alike uint64 // workload-windows of approved workloads
	ours           bool   // a setting of homenode was recorded
	dropped        uint64 // outcomes that were not done
}

// Window makes both arms decide on one window.
func (r *Replay) Window(w window.Window) {
	if r.windows++; r.windows == 1 {
		r.from = w.At.Add(-w.Length)
	}
	r.to = w.At
	r.length += w.Length
	r.fate.look(r.then, &w)
	r.then.step(r.m, w, r.windows)
	named := r.now.step(r.m, w, r.windows)
	for i := range named.Workloads {
		r.seen[named.Workloads[i].ID] = named.Workloads[i].Service
	}
	r.compare(w.At, w.Seq)
}

// look reads the window before the first arm decides on it, as the recorded
// agent did.
func (f *fate) look(s *side, w *window.Window) {
	for i := range w.Workloads {
		wl := &w.Workloads[i]
		ours := wl.Binding.OursCPUs || wl.Binding.OursMems
		f.ours = f.ours || ours
		if !wl.Approved {
			continue
		}
		f.windows++
		if _, mine := s.held[wl.ID]; mine == ours {
			f.alike++
		}
	}
	for _, o := range w.Outcomes {
		if o.Status == action.Refused || o.Status == action.Failed || o.Status == action.Drifted {
			f.dropped++
		}
	}
}

// step decides on one window. It is the recorded window, except that it has this arm's
// settings and no outcomes: those belong to other decisions.
func (s *side) step(m machine.Machine, w window.Window, seq uint64) window.Window {
	own := w
	own.Workloads = append([]window.Workload(nil), w.Workloads...)
	own.Outcomes, own.Seq = nil, seq // in a recording of several runs the numbers start from 1 again
	if s.arm.Services != nil {
		s.arm.Services(&own)
	}
	for i := range own.Workloads {
		s.bind(m, &own.Workloads[i])
		s.pass(&own.Workloads[i], w.Length)
	}
	var actions []action.Action
	s.st, actions, _ = mao.Step(m, s.arm.MAO, s.st, own)
	s.last = s.last[:0]
	for _, x := range actions {
		room := s.note(x)
		x.Reason.Alternatives = nil // a result holds thousands of decisions
		s.last = append(s.last, Decision{At: w.At, Seq: w.Seq, Workload: x.Workload, Kind: x.Kind, Nodes: x.Nodes, Room: room, Reason: x.Reason})
	}
	s.forget()
	return own
}

// bind shows a workload with this arm's settings. The setting before homenode's own
// binding is not recorded: it counts as everything.
func (s *side) bind(m machine.Machine, wl *window.Workload) {
	h, mine := s.held[wl.ID]
	b := &wl.Binding
	if b.OursCPUs || b.OursMems {
		*b = window.Binding{PinnedCPUs: b.PinnedCPUs, PinnedMems: b.PinnedMems, PinnedWhy: b.PinnedWhy}
	}
	if !mine {
		return
	}
	b.CPUs, b.OursCPUs = m.CPUsOf(h.nodes), true
	if !h.room && !b.PinnedMems {
		b.Mems, b.OursMems = h.nodes, true
	}
}

// pass adds the window's time before the decisions on it: they take effect at its end.
func (s *side) pass(wl *window.Workload, length time.Duration) {
	t := s.tally(wl.ID)
	if h, ok := s.held[wl.ID]; ok && !h.room {
		t.Bound += length
		s.total.Bound += length
	}
	if wl.Approved {
		t.Run += length
		s.total.Run += length
	}
}

// note counts an action as done, and says whether it is about making room.
func (s *side) note(x action.Action) (room bool) {
	before, was := s.held[x.Workload]
	count := func(n *uint64, all *uint64) { *n++; *all++ }
	t, all := s.tally(x.Workload), &s.total
	switch x.Kind {
	case action.Bind:
		room = s.st.Bound(x.Workload).IsEmpty()
		s.held[x.Workload] = held{x.Nodes, room}
		switch {
		case room:
			count(&t.Room, &all.Room)
		case was && !before.room:
			count(&t.Rebinds, &all.Rebinds)
		default:
			count(&t.Binds, &all.Binds)
		}
	case action.Unbind:
		room = before.room
		delete(s.held, x.Workload)
		if !room {
			count(&t.Unbinds, &all.Unbinds)
		}
	default:
		count(&t.Others, &all.Others)
	}
	return room
}

func (s *side) tally(id string) *Tally {
	t, ok := s.workloads[id]
	if !ok {
		t = &Tally{}
		s.workloads[id] = t
	}
	return t
}

// forget drops the workloads that the policy has forgotten: they were away for too long,
// and a workload that comes back under the name is a new one.
func (s *side) forget() {
	for id := range s.held {
		i, ok := slices.BinarySearchFunc(s.st.Workloads, id, func(mem mao.Memory, id string) int { return cmp.Compare(mem.Workload, id) })
		if !ok || s.st.Workloads[i].Nodes.IsEmpty() && s.st.Workloads[i].Aside.IsEmpty() {
			delete(s.held, id)
		}
	}
}
