// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"crypto/sha256"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"homenode/internal/golden"
	"homenode/internal/machine"
	"homenode/internal/machine/shapetest"
	"homenode/internal/set"
	"homenode/internal/sim/memsys"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// story is 100 windows of a world in which everything happens, as bytes.
func story(t testing.TB, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 2))
	c := configOf(shapetest.Shape(t, "four"))
	c.Specs, c.Seed = randomSpecs(r, c.Machine), seed
	c.Linux.NUMABalancing = seed%2 == 0
	w := world(t, c)
	var all []byte
	for range 100 {
		for range r.IntN(2) {
			w.Apply(steps(randomStep(r, c)))
		}
		w.Run(3 * time.Second)
		line, err := window.Encode(w.Window())
		if err != nil {
			t.Fatal(err)
		}
		all = append(append(all, line...), '\n')
	}
	return all
}

// The same seed gives the same bytes, on another machine, too: the sums are in testdata.
func TestSameBytes(t *testing.T) {
	const file = "testdata/windows.sha256"
	var lines []string
	for seed := range uint64(8) {
		one, two := story(t, seed), story(t, seed)
		if string(one) != string(two) {
			t.Errorf("seed %d: two runs differ", seed)
		}
		lines = append(lines, fmt.Sprintf("%x  seed %d: 100 windows of shape four", sha256.Sum256(one), seed))
	}
	got := strings.Join(lines, "\n") + "\n"
	golden.Check(t, file, got)
}

// One more workload changes nothing in the demand of the others. If it has CPUs and memory
// of its own, it changes nothing in what they get, either.
func TestOneMore(t *testing.T) {
	s := serving("feed", 2, 200)
	s.Start = StartSpec{CPUs: set.FromCPUs(0, 1), Bind: set.FromNodes(0)}
	s.Demand.Noise, s.Demand.Low = 0.2, 0.5
	more := chasing("a", 2)
	more.Start = StartSpec{CPUs: set.FromCPUs(2, 3), Bind: set.FromNodes(1)}
	alone, both := world(t, testConfig(t, s)), world(t, testConfig(t, s, more))
	for range 50 {
		alone.Run(10 * time.Second)
		both.Run(10 * time.Second)
		one, two := alone.Truth()[0], both.Truth()[1]
		if one.Asked != two.Asked {
			t.Fatalf("asked alone %v, with another %v", one.Asked, two.Asked)
		}
		near(t, "CPU time", two.CPUSeconds, one.CPUSeconds, 1e-3)
	}
}

// Half the step changes the results only a little.
func TestHalfTheStep(t *testing.T) {
	run := func(step time.Duration) []Truth {
		c := fleetConfig(3)
		c.Step = step
		w := world(t, c)
		w.Run(4 * time.Hour)
		return w.Truth()
	}
	for _, pair := range [][2]time.Duration{{time.Minute, 30 * time.Second}, {10 * time.Second, 5 * time.Second}} {
		a, b := run(pair[0]), run(pair[1])
		ops, cpu, latency := 0.0, 0.0, 0.0
		for i := range a {
			near(t, fmt.Sprintf("%s's operations in steps of %v", a[i].Workload, pair), b[i].Ops, a[i].Ops, 0.01)
			near(t, fmt.Sprintf("%s's CPU time in steps of %v", a[i].Workload, pair), b[i].CPUSeconds, a[i].CPUSeconds, 0.05)
			near(t, fmt.Sprintf("%s's latency in steps of %v", a[i].Workload, pair), b[i].Latency, a[i].Latency, 0.08)
			ops, cpu, latency = ops+b[i].Ops/a[i].Ops/20, cpu+b[i].CPUSeconds/a[i].CPUSeconds/20, latency+b[i].Latency/a[i].Latency/20
		}
		t.Logf("%v: operations × %.4f, CPU × %.4f, latency × %.4f", pair, ops, cpu, latency)
	}
}

// permuted is the same machine with its nodes renumbered: node i becomes to[i]. CPUs keep
// their numbers.
func permuted(c Config, to []int) Config {
	n := len(to)
	m := c.Machine
	m.Nodes, m.CPUs = make([]machine.Node, n), slices.Clone(m.CPUs)
	m.Distances = make([][]unit.Opt[int], n)
	y := c.System
	y.Nodes, y.Domains = make([]memsys.Node, n), nil
	y.Latency, y.Transfer, y.Path = make([][]float64, n), make([][]float64, n), make([][][]int, n)
	for i, k := range to {
		m.Nodes[k] = c.Machine.Nodes[i]
		m.Nodes[k].ID = k
		y.Nodes[k] = c.System.Nodes[i]
		y.Nodes[k].ID = k
		m.Distances[k], y.Latency[k], y.Transfer[k], y.Path[k] = make([]unit.Opt[int], n), make([]float64, n), make([]float64, n), make([][]int, n)
		for j, l := range to {
			m.Distances[k][l] = c.Machine.Distances[i][j]
			y.Latency[k][l], y.Transfer[k][l], y.Path[k][l] = c.System.Latency[i][j], c.System.Transfer[i][j], c.System.Path[i][j]
		}
	}
	for i := range m.CPUs {
		m.CPUs[i].Node = unit.Some(to[m.CPUs[i].Node.Or(0)])
	}
	for k := range n {
		for _, d := range c.System.Domains {
			if to[d.Node] == k {
				d.Node = k
				y.Domains = append(y.Domains, d)
			}
		}
	}
	p := c
	p.Machine, p.System, p.Specs = m, y, slices.Clone(c.Specs)
	for i := range p.Specs {
		s := &p.Specs[i].Start
		s.Bind, s.Interleave, s.Touch = renumber(s.Bind, to), renumber(s.Interleave, to), renumber(s.Touch, to)
	}
	return p
}

func renumber(nodes set.NodeSet, to []int) (out set.NodeSet) {
	for id := range nodes.All() {
		if id < len(to) {
			id = to[id]
		}
		out = out.With(id)
	}
	return out
}

// The numbers of nodes mean nothing: another numbering gives the same result, renumbered.
// Nodes differ a little in memory; otherwise a tie would have to be broken by number.
func TestRenumbering(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 3))
		c := randomConfig(t, r)
		c.Linux.Busy = 0
		for i := range c.Machine.Nodes {
			if b, ok := c.Machine.Nodes[i].Memory.Get(); ok && b > 0 {
				c.Machine.Nodes[i].Memory = unit.Some(b - unit.Bytes(i)*2*unit.MiB)
			}
		}
		to := r.Perm(len(c.Machine.Nodes))
		one, two := world(t, c), world(t, permuted(c, to))
		for k := range 10 {
			s := randomStep(r, c)
			one.Apply(steps(s))
			s.Nodes = renumber(s.Nodes, to)
			two.Apply(steps(s))
			one.Run(3 * time.Second)
			two.Run(3 * time.Second)
			compare(t, one.Window(), two.Window(), to)
			if t.Failed() {
				t.Fatalf("seed %d, window %d, machine %s, to %v", seed, k, c.Machine.Origin, to)
			}
		}
	}
}

func compare(t *testing.T, a, b window.Window, to []int) {
	t.Helper()
	close := func(what string, x, y float64) {
		t.Helper()
		if math.Abs(x-y) > 1e-5*math.Max(math.Abs(x), math.Abs(y))+1e-4 {
			t.Errorf("%s is %v, renumbered %v", what, x, y)
		}
	}
	if len(a.Workloads) != len(b.Workloads) {
		t.Fatalf("%d workloads, renumbered %d", len(a.Workloads), len(b.Workloads))
	}
	for i, x := range a.Workloads {
		y := b.Workloads[i]
		for n, k := range to {
			close(x.ID+" CPU by node", x.CPUByNode[n].Or(0), y.CPUByNode[k].Or(0))
			close(x.ID+" anon by node", float64(x.AnonByNode[n].Or(0))/4096/1.1e4, float64(y.AnonByNode[k].Or(0))/4096/1.1e4)
			close(x.ID+" files by node", float64(x.FileByNode[n].Or(0))/4096/1.1e4, float64(y.FileByNode[k].Or(0))/4096/1.1e4)
		}
		close(x.ID+" cycles", float64(x.Cycles.Or(0))/1e4, float64(y.Cycles.Or(0))/1e4)
		if x.Binding.CPUs != y.Binding.CPUs || renumber(x.Binding.Mems, to) != y.Binding.Mems {
			t.Errorf("%s: binding %+v, renumbered %+v", x.ID, x.Binding, y.Binding)
		}
	}
	for i, o := range a.Outcomes {
		if i >= len(b.Outcomes) || o.Status != b.Outcomes[i].Status {
			t.Errorf("outcome %+v, renumbered %+v", o, b.Outcomes)
		}
	}
}

// Where CPUs are idle no request waits for a whole step: a day of one-minute steps leaves
// no queues.
func TestNoQueueOfNothing(t *testing.T) {
	queues, steps := 0, 0
	for seed := range uint64(3) {
		w := world(t, fleetConfig(seed))
		for range 24 * 60 {
			w.Run(time.Minute)
			for _, wl := range w.live {
				if steps++; wl.queue > 0 {
					queues++
				}
			}
		}
	}
	if queues > steps/10000 {
		t.Errorf("%d queues in %d steps of workloads", queues, steps)
	}
}
