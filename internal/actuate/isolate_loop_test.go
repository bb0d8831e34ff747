// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"homenode/internal/action"
	"homenode/internal/policy/mao"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window/windowtest"
)

// rig closes the loop from policy to actuator and back, for isolation.
type rig struct {
	t     *testing.T
	h     *windowtest.Host
	cfg   mao.Config
	ms    mao.State
	as    State
	stall uint64
	fail  map[string]action.Status // of set-class with a class
	said  []string
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t, h: &windowtest.Host{}, cfg: mao.DefaultConfig(), stall: 200, fail: map[string]action.Status{}}
	r.h.Shape([]int{0, 1}, 8, 16*unit.GiB)
	r.cfg.MakeRoom = false
	for _, l := range []string{
		"workload /victim approved cpu=2 cpus=0-7 mems=0 ours=cpus,mems anon=1GiB local=1000000 remote=0 cycles=1000 llc=1MiB",
		"workload /loud cpu=2 on=2,0 cpus=0-15 mems=0-1 anon=0,1GiB llc=8MiB", "workload /soft cpu=2 on=2,0 cpus=0-15 mems=0-1 anon=0,1GiB llc=3MiB",
	} {
		if _, err := r.h.Line(l); err != nil {
			t.Fatal(err)
		}
	}
	r.h.Load("/victim").Waiting = unit.Measured(unit.Ratio(0), "test")
	r.ms.Workloads = []mao.Memory{{Workload: "/victim", Nodes: set.FromNodes(0)}}
	return r
}

func (r *rig) tick(n int) {
	for range n {
		if v := r.h.Load("/victim"); v != nil {
			v.StallCycles = unit.Measured(r.stall, "test")
		}
		w := r.h.Window()
		var acts []action.Action
		r.ms, acts, _ = mao.Step(r.h.Machine, r.cfg, r.ms, w)
		for _, a := range acts {
			c := ""
			if a.Class != nil {
				c = fmt.Sprint(*a.Class)
			}
			r.said = append(r.said, fmt.Sprintf("w%d %s %s %s %s [%s]", w.Seq, a.Kind, a.Workload, a.Nodes, c, a.Reason.Rule))
		}
		var steps []action.Step
		var outcomes []action.Outcome
		r.as, steps, outcomes = Step(r.h.Machine, DefaultConfig(), r.as, acts, w)
		for _, s := range steps {
			if s.Kind != action.SetClass {
				r.h.Apply([]action.Step{s})
				continue
			}
			if st, ok := r.fail[s.Workload]; ok && !s.Class.None() {
				delete(r.fail, s.Workload)
				r.h.Report(action.Outcome{Step: s, Status: st})
				continue
			}
			if l := r.h.Load(s.Workload); l != nil {
				c := *s.Class
				l.Class = &c
			}
			r.h.Report(action.Outcome{Step: s, Status: action.Done})
		}
		r.h.Report(outcomes...)
	}
}

func (r *rig) isolated(id string) bool {
	l := r.h.Load(id)
	return l != nil && l.Class != nil && !l.Class.None()
}

func (r *rig) dump() {
	for _, s := range r.said {
		r.t.Log(s)
	}
	for _, m := range r.ms.Workloads {
		if m.Quality != nil {
			r.t.Logf("%s quality: neighbour %q step %d worse %d held %v tried %v quiet %d", m.Workload, m.Quality.Neighbour, m.Quality.Step, m.Quality.Worse, m.Quality.Held, m.Quality.Tried, m.Quality.Quiet)
		}
	}
	r.t.Logf("actuate isolated: %+v", r.as.Isolated)
}

// isolating is a rig some windows after its victim's stalls have doubled.
func isolating(t *testing.T, windows int) *rig {
	r := newRig(t)
	r.tick(60)
	r.stall = 400
	r.tick(windows)
	return r
}

// ends checks that the neighbour is given back within n windows once all is well again.
func (r *rig) ends(n int, what string) {
	r.t.Helper()
	r.tick(n)
	if r.isolated("/loud") {
		r.dump()
		r.t.Error(what)
	}
}

// aside makes the neighbour avoid a node since.
func (r *rig) aside(node int) {
	for i := range r.ms.Workloads {
		if r.ms.Workloads[i].Workload == "/loud" {
			r.ms.Workloads[i].Aside = set.FromNodes(node)
		}
	}
}

// An isolation whose step failed once ends, and leaves nothing behind.
func TestIsolationFailedOnce(t *testing.T) {
	r := newRig(t)
	r.tick(60)
	r.fail["/loud"] = action.Failed
	r.stall = 400
	r.tick(60)
	r.stall = 200
	r.ends(2000, "failed once, then done: isolated for ever")
}

// A reading without the neighbour does not end its isolation, and does not forget it.
func TestIsolationOfOneNotSeen(t *testing.T) {
	r := isolating(t, 4)
	r.stall = 200
	loud := *r.h.Load("/loud")
	r.h.Remove("/loud")
	r.tick(1)
	r.h.Line("workload /loud cpu=2 on=2,0 cpus=0-15 mems=0-1 anon=0,1GiB llc=8MiB")
	r.h.Load("/loud").Class = loud.Class
	r.ends(2000, "neighbour unseen for one window: isolated for ever")
}

// Another rule's reason about the neighbour in each window does not keep it isolated.
func TestIsolationOfOneWithoutRoom(t *testing.T) {
	r := isolating(t, 4)
	r.stall = 200
	r.h.Line("workload /loud approved cpu=15.5 on=8,7.5 local=1000000 remote=5000000")
	r.ends(2000, "approved neighbour that finds no room: isolated for ever")
}

// Nor does the neighbour's avoiding a node.
func TestIsolationOfOneAside(t *testing.T) {
	r := isolating(t, 4)
	r.stall = 200
	r.aside(1)
	r.ends(1000, "aside neighbour: not given back after hold")
	r.h.Remove("/victim")
	r.tick(1)
	for i := range r.ms.Workloads {
		t.Logf("%s aside %v", r.ms.Workloads[i].Workload, r.ms.Workloads[i].Aside)
	}
	r.ends(1000, "aside neighbour, victim gone: isolated for ever")
}

// Policy and actuator agree on what is isolated, also after an unbind.
func TestIsolationAndUnbind(t *testing.T) {
	r := isolating(t, 4)
	r.aside(0) // overlaps what is bound: over at once
	r.tick(2)
	q := ""
	for _, m := range r.ms.Workloads {
		if m.Quality != nil {
			q += m.Quality.Neighbour
		}
	}
	if !r.isolated("/loud") && q == "/loud" {
		r.dump()
		t.Error("DISAGREE: mao believes /loud is isolated, actuate gave it back")
	}
}

// An idle victim is not escalated on earlier findings.
func TestIsolationOfIdle(t *testing.T) {
	r := isolating(t, 25)
	n := len(r.said)
	r.h.Line("workload /victim cpu=0.01 on=0.01,0 local=0 remote=0")
	r.tick(3000)
	esc := 0
	for _, s := range r.said[n:] {
		t.Log(s)
		esc++
	}
	if esc > 0 {
		t.Errorf("%d actions for a victim that has been idle for 3000 windows", esc)
	}
}

// A figure known for one workload alone is no share of all.
func TestIsolationByUnknown(t *testing.T) {
	r := newRig(t)
	r.h.Line("workload /tiny cpu=0.2 cpus=0-15 mems=0-1 on=0.2,0 anon=0,1MiB llc=64KiB")
	for _, id := range []string{"/victim", "/loud", "/soft"} {
		r.h.Load(id).LLC = unit.UnknownValue[unit.Bytes]("it waits for its turn: RMIDs are used up")
	}
	r.tick(60)
	r.stall = 400
	r.tick(4)
	r.dump()
	if r.isolated("/tiny") {
		t.Error("64 KiB of known LLC among unknown ones is 100 % of the caches")
	}
}

// A slowdown for good is escalated once; then it is the normal state.
func TestIsolationOfSlowForGood(t *testing.T) {
	r := newRig(t)
	r.tick(60)
	r.stall = 300 // +50 %, a new version, for ever
	r.tick(4000)
	iso, esc := 0, 0
	for _, s := range r.said {
		if len(s) > 0 {
			iso++
		}
	}
	_ = esc
	t.Logf("%d actions in 4000 windows for a victim that became slower for good", iso)
	if iso > 20 {
		t.Error("isolations go on for ever; longPast says it is forgotten in 256 windows")
	}
}

// A metric that is missing now and then does not start everything again.
func TestIsolationByAnotherMetric(t *testing.T) {
	r := isolating(t, 25) // escalated, quiet for 360
	n := len(r.said)
	for range 10 {
		r.h.Load("/victim").Latency = unit.Measured(0.010, "file")
		r.tick(1) // one window with a latency
		r.h.Load("/victim").Latency = unit.UnknownValue[float64]("stale file")
		r.stall = 200
		r.tick(22)
		r.stall = 400
		r.tick(25)
	}
	esc := 0
	for _, s := range r.said[n:] {
		if len(s) > 0 && s[len(s)-len("[mao.escalate]"):] == "[mao.escalate]" {
			esc++
		}
	}
	if esc > 2 {
		t.Errorf("%d escalations in 480 windows, cool-down is 360", esc)
	}
}

// A step is not judged by a metric other than its own.
func TestIsolationJudgedByAnother(t *testing.T) {
	r := isolating(t, 4)
	r.h.Load("/victim").Latency = unit.Measured(0.010, "file")
	r.stall = 400
	r.tick(8)
	r.dump()
}

// After any failure, or a missed window: once no victim needs it, nothing is isolated.
func TestIsolationLeavesNothing(t *testing.T) {
	leaks := map[string]int{}
	for seed := range uint64(100) {
		rnd := rand.New(rand.NewPCG(seed, 8))
		r := newRig(t)
		r.tick(40)
		var cause []string
		for range 60 {
			r.stall = []uint64{200, 400, 400, 400, 300}[rnd.IntN(5)]
			id := []string{"/loud", "/soft"}[rnd.IntN(2)]
			switch rnd.IntN(30) {
			case 0:
				r.fail[id] = []action.Status{action.Refused, action.Failed, action.Drifted, action.Gone}[rnd.IntN(4)]
				cause = append(cause, string(r.fail[id]))
			case 1:
				if l := r.h.Load(id); l != nil {
					c := l.Class
					r.h.Remove(id)
					r.tick(1 + rnd.IntN(2))
					r.h.Line("workload " + id + " cpu=2 cpus=0-15 mems=0-1 on=2,0 anon=0,1GiB llc=5MiB")
					r.h.Load(id).Class = c
					cause = append(cause, "absent")
				}
			}
			r.tick(1 + rnd.IntN(4))
		}
		r.h.Remove("/victim")
		r.tick(150)
		if len(r.as.Isolated) > 0 || r.isolated("/loud") || r.isolated("/soft") {
			leaks[fmt.Sprint(len(cause) > 0)]++
		}
	}
	if len(leaks) > 0 {
		t.Errorf("of 100 runs, the number that end with something isolated (with a fault or absence before: true): %v", leaks)
	}
}
