// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"strings"
	"testing"
	"time"

	"homenode/internal/kernel/membench"
	"homenode/internal/profile"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// A part that is too long for the budget is measured as far as possible: local memory,
// the nearest, the farthest. The next part gets its share.
func TestBudgetTooSmallForAPart(t *testing.T) {
	f := newFake()
	f.m = largeMachine(64)
	o := f.options()
	o.Parts, o.Budget = []profile.Part{profile.Latency, profile.Mixes, profile.CoreToCore}, 60*time.Second
	begin := f.now
	p, err := Measure(t.Context(), f, o, profile.Profile{})
	if err != nil {
		t.Fatal(err)
	}
	valid(t, p)
	if took := f.now.Sub(begin); took > o.Budget+f.longest || took < o.Budget/3 {
		t.Errorf("took %v of %v", took, o.Budget)
	}
	for node := range 64 {
		if _, ok := p.LatencyBetween(node, node); !ok {
			t.Errorf("local latency of node %d is missing", node)
		}
	}
	if len(p.Latency) < 200 || len(p.Latency) >= 64*64 || len(p.Mixes) == 0 || len(p.CoreToCore) == 0 {
		t.Errorf("%d latencies, %d mixes, %d couples; skipped %+v", len(p.Latency), len(p.Mixes), len(p.CoreToCore), p.Skipped)
	}
	for _, s := range p.Skipped {
		if strings.HasSuffix(s.Why, o.Budget.String()+" used up") && f.now.Sub(begin) < o.Budget {
			t.Errorf("%+v after %v of %v", s, f.now.Sub(begin), o.Budget)
		}
	}
	if late := OutOfTime(p); len(late) == 0 || late[0] != profile.Latency {
		t.Errorf("late %v", late)
	}
}

// Setting up a buffer is charged once, as it is done once.
func TestSetUpIsChargedOnce(t *testing.T) {
	buffer := membench.Buffer{Bytes: unit.GiB, Policy: membench.Bind, Nodes: set.FromNodes(1)}
	job := membench.Job{Buffers: []membench.Buffer{buffer}, Threads: []membench.Thread{{Work: membench.Read}}, Length: time.Second}
	b := &bench{cost: newCosts(), made: made{}}
	p := plan{blocks: [][]piece{{{jobs: []membench.Job{job}}, {jobs: []membench.Job{job}}}}}
	once, all := b.cost.of(size{time.Second, float64(unit.GiB)}), b.estimate(3, p)
	if again := b.cost.of(size{nominal: time.Second}); all != once+5*again {
		t.Errorf("six runs are estimated at %v, the first at %v, each other at %v", all, once, again)
	}
	b.made.addJob(job)
	if b.estimate(3, p) >= all {
		t.Error("a buffer that was set up is charged again")
	}
	job.Threads[0].Work = membench.Chase
	if s := b.made.addJob(job); s.bytes != (chaseWeight-1)*float64(unit.GiB) {
		t.Errorf("the cycle in it costs %g", s.bytes)
	}
}
