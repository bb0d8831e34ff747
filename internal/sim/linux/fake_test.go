// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"homenode/internal/sim/detmath"
)

// gib is the pages of a GiB.
const gib = 1 << 30 / PageBytes

// fakeHost has n identical nodes at equal distances.
func fakeHost(nodes int, cpus, gibs float64) *Host {
	h := &Host{Settings: DefaultSettings()}
	for n := range nodes {
		h.Nodes = append(h.Nodes, Node{CPUs: cpus, Pages: gibs * gib, Other: gib / 4})
		list := []int{n}
		for m := range nodes {
			if m != n {
				list = append(list, m)
			}
		}
		h.Zonelist = append(h.Zonelist, list)
	}
	return h
}

// fakeGroup has its threads by node as on says.
func fakeGroup(name string, on ...float64) *Group {
	return &Group{ID: "/" + name, Threads: detmath.Sum(on), On: on, Policy: Policy{Mode: Local}, Random: detmath.NewRandom(1, name)}
}

// randomHost is asymmetric: no two nodes are alike. Some have no CPU or no memory.
func randomHost(r *detmath.Random) *Host {
	n := 1 + r.Below(4)
	h := fakeHost(n, 1, 1)
	h.Settings = Settings{LoadBalance: r.Below(4) > 0, WakePlacement: r.Below(4) > 0, NUMABalancing: r.Below(3) > 0,
		Fallback: r.Below(4) > 0, Reclaim: r.Below(4) > 0}
	for i := range h.Nodes {
		h.Nodes[i] = Node{CPUs: float64(1+i) + float64(8*r.Below(4)), Pages: 1e4 + 1e6*r.Float(), Other: 100 * r.Float()}
		switch r.Below(8) * min(i, 1) {
		case 1:
			h.Nodes[i].CPUs = 0
		case 2:
			h.Nodes[i].Pages, h.Nodes[i].Other = 0, 0
		}
		rest := h.Zonelist[i][1:]
		for j := range rest {
			k := r.Below(j + 1)
			rest[j], rest[k] = rest[k], rest[j]
		}
	}
	return h
}

func randomGroup(h *Host, r *detmath.Random, name string) *Group {
	g := &Group{ID: name, Threads: float64(1 + r.Below(16)), Pinned: r.Below(5) == 0, Policy: randomPolicy(h, r),
		WakeRate: 1000 * r.Float() * float64(r.Below(2)), Random: detmath.NewRandom(r.Uint64(), name)}
	if r.Below(3) == 0 {
		g.Quota = g.Threads * r.Float()
	}
	g.CPUs, g.Mems = randomCPUs(h, r), randomNodes(h, r)
	return g
}

func randomPolicy(h *Host, r *detmath.Random) Policy {
	p := Policy{Mode: []Mode{Local, Local, Bind, Interleave}[r.Below(4)]}
	if p.Mode != Local {
		p.Nodes = randomNodes(h, r)
	}
	return p
}

func randomNodes(h *Host, r *detmath.Random) []bool {
	nodes := make([]bool, len(h.Nodes))
	for i := range nodes {
		nodes[i] = r.Below(3) > 0
	}
	nodes[r.Below(len(nodes))] = true
	return nodes
}

func randomCPUs(h *Host, r *detmath.Random) []float64 {
	cpus := make([]float64, len(h.Nodes))
	for i, in := range randomNodes(h, r) {
		if in {
			cpus[i] = h.Nodes[i].CPUs
			if r.Below(4) == 0 {
				cpus[i] = math.Ceil(cpus[i] / 2)
			}
		}
	}
	if detmath.Sum(cpus) <= 0 {
		cpus[0] = h.Nodes[0].CPUs
	}
	return cpus
}

// step does something random. The choice depends on r alone, so two hosts with equal
// generators get the same steps, with node numbers mapped by to.
func step(h *Host, r *detmath.Random, to func(int) int) {
	names := func(list []bool) []bool { return renumbered(list, to) }
	cpus := func(list []float64) []float64 { return renumbered(list, to) }
	switch kind := r.Below(12); {
	case kind == 0 && len(h.Groups) < 8, len(h.Groups) == 0:
		g := randomGroup(inOrder(h, to), r, fmt.Sprint("g", r.Uint64()))
		g.CPUs, g.Mems = cpus(g.CPUs), names(g.Mems)
		if g.Policy.Nodes != nil {
			g.Policy.Nodes = names(g.Policy.Nodes)
		}
		h.Arrive(g)
	case kind == 1 && r.Below(2) == 0:
		h.Depart(h.Groups[r.Below(len(h.Groups))])
	case kind <= 4:
		wants := make([]float64, len(h.Groups))
		for i := range wants {
			wants[i] = 20 * r.Float()
		}
		h.Run(10*r.Float(), wants)
	case kind <= 6:
		h.Touch(h.Groups[r.Below(len(h.Groups))], Kind(r.Below(4)), 1e5*r.Float())
	case kind == 7:
		h.Release(h.Groups[r.Below(len(h.Groups))], Kind(r.Below(4)), 1e5*r.Float())
	case kind == 8:
		h.Reclaim(r.Float())
	case kind == 9:
		h.Balance(20*r.Float(), h.Groups[r.Below(len(h.Groups))])
	case kind == 10:
		g := h.Groups[r.Below(len(h.Groups))]
		h.SetCPUs(g, cpus(randomCPUs(inOrder(h, to), r)))
		h.SetMems(g, names(randomNodes(inOrder(h, to), r)))
	default:
		g := h.Groups[r.Below(len(h.Groups))]
		from, into := randomNodes(inOrder(h, to), r), randomNodes(inOrder(h, to), r)
		h.Move(g, names(from), names(into), float64(r.Below(2))*1e5*r.Float(), r.Below(2) == 0)
	}
}

// inOrder is h's nodes as if it had not been renumbered.
func inOrder(h *Host, to func(int) int) *Host {
	back := &Host{Nodes: make([]Node, len(h.Nodes))}
	for i := range h.Nodes {
		back.Nodes[i] = h.Nodes[to(i)]
	}
	return back
}

func renumbered[T any](list []T, to func(int) int) []T {
	out := make([]T, len(list))
	for i, x := range list {
		out[to(i)] = x
	}
	return out
}

func same(i int) int { return i }

// check tests what must hold after every step.
func check(t *testing.T, h *Host, what string) {
	t.Helper()
	h.bringAll()
	cache, mapped := make([]float64, len(h.Nodes)), make([]float64, len(h.Nodes))
	for n := range h.Nodes {
		for _, g := range h.Groups {
			cache[n] += g.Memory.Cache[n]
			mapped[n] += g.Memory.Mapped[n]
		}
		if h.scratch.counted && (math.Abs(cache[n]-h.scratch.cache[n]) > 1e-6 || math.Abs(mapped[n]-h.scratch.mapped[n]) > 1e-6) {
			t.Fatalf("%s: node %d has page cache %g and %g, the books say %g and %g", what, n, cache[n], mapped[n], h.scratch.cache[n], h.scratch.mapped[n])
		}
	}
	for n, node := range h.Nodes {
		pages, used := node.Other, 0.0
		for _, g := range h.Groups {
			pages += g.Memory.on(n)
			used += g.Used[n]
		}
		if free := h.Free(n); math.Abs(pages+free-node.Pages) > 1e-6 || math.Abs(free-h.scratch.free[n]) > 1e-6 && h.scratch.counted {
			t.Fatalf("%s: node %d: %g pages + %g free, books say %g, of %g", what, n, pages, free, h.scratch.free[n], node.Pages)
		}
		if used > node.CPUs*(1+1e-9) {
			t.Fatalf("%s: node %d: %g of %g CPUs used", what, n, used, node.CPUs)
		}
	}
	for _, g := range h.Groups {
		m := &g.Memory
		for _, list := range [][]float64{m.Private, m.Shared, m.Mapped, m.Cache, g.On, g.Used} {
			if slices.Min(list) < -1e-6 || math.IsNaN(detmath.Sum(list)) {
				t.Fatalf("%s: %s has %v", what, g.ID, list)
			}
		}
		if math.Abs(detmath.Sum(g.On)-g.Threads) > 1e-9*g.Threads {
			t.Fatalf("%s: %s: threads %v of %g", what, g.ID, g.On, g.Threads)
		}
		for n, cpus := range g.CPUs {
			if cpus <= 0 && g.On[n] > 0 {
				t.Fatalf("%s: %s has %g threads on node %d, may use %v", what, g.ID, g.On[n], n, g.CPUs)
			}
		}
	}
}

func sprint(parts ...any) string { return fmt.Sprint(parts...) }
