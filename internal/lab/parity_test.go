// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"homenode/internal/machine"
	"homenode/internal/profile"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// Measurements of `homenode bench` in the lab agree with the shape: latencies within 3
// %, bandwidths within 5 %, cache sizes within a step of the scan. Bandwidths, and all
// shapes except one, are compared only with HOMENODE_PARITY=all.
func TestLabParity(t *testing.T) {
	t.Parallel()
	shapes := []string{"two"}
	if os.Getenv("HOMENODE_PARITY") == "all" {
		shapes = []string{"two", "four", "far", "opteron", "smt"}
	}
	for _, shape := range shapes {
		t.Run(shape, func(t *testing.T) {
			g := guest(t, shape, "v2")
			compared := 0
			p := measured(t, g, "caches,latency,bandwidth,core-to-core")
			compared = parityLatency(t, g.Shape, p) + parityCaches(t, g.Shape, p) + parityCores(t, g.Shape, p)
			if os.Getenv("HOMENODE_PARITY") == "all" {
				compared += parityBandwidth(t, g, p)
			}
			t.Logf("%s: %d figures compared", shape, compared)
			if compared < 9 {
				t.Errorf("only %d figures were compared", compared)
			}
		})
	}
}

func measured(t *testing.T, g *Guest, parts string) profile.Profile {
	t.Helper()
	ctx, cancel := g.Within(t.Context(), 15*time.Minute)
	defer cancel()
	r, err := g.Run(ctx, "sh", "-c", "rm -f /tmp/parity.json; homenode bench --only "+parts+" --budget 10m --out /tmp/parity.json </dev/null >/dev/null && cat /tmp/parity.json")
	if err != nil || r.Exit != 0 {
		t.Fatalf("homenode bench: exit %d, %v: %s", r.Exit, err, tail([]byte(r.Stderr), 400))
	}
	p, err := profile.Decode([]byte(r.Stdout))
	if err != nil {
		t.Fatal(err)
	}
	if p.How != unit.HowModelled {
		t.Errorf("a profile of the lab says %v", p.How)
	}
	return p
}

// leastDuty is the share of their CPUs' time that readers must have: with less, the
// bounds are too far apart to mean much.
const leastDuty = 0.75

// readersDuty has CPUs read node 0's memory for half a model-second.
func readersDuty(t *testing.T, g *Guest, cpus set.CPUSet) float64 {
	mustRun(t, g, "homenode-load", "control", "on")
	defer mustRun(t, g, "homenode-load", "control", "off")
	var out struct {
		Threads []struct{ Elapsed, Whole float64 }
	}
	text := mustRun(t, g, "homenode-lab", "probe", "--cpus", cpus.String(), "--node", "0", "--bytes", "4MiB", "--work", "read", "--length", "500ms")
	if err := json.Unmarshal([]byte(text), &out); err != nil || len(out.Threads) == 0 {
		t.Fatalf("%v: %s", err, text)
	}
	var work, whole float64
	for _, r := range out.Threads {
		work, whole = work+r.Elapsed, whole+r.Whole
	}
	return work / whole
}

// recovers checks that got is within share of want, and counts it.
func recovers(t *testing.T, what string, got unit.Opt[float64], want, share float64) int {
	t.Helper()
	v, ok := got.Get()
	switch {
	case !ok:
		t.Errorf("%s: unknown, want %.4g", what, want)
	case math.Abs(v-want) > share*want:
		t.Errorf("%s: got %.4g, want %.4g ± %.0f %% (%+.1f %%)", what, v, want, 100*share, 100*(v/want-1))
	default:
		t.Logf("%s: %.4g, want %.4g (%+.1f %%)", what, v, want, 100*(v/want-1))
	}
	return 1
}

// between checks that got is within share of two bounds.
func between(t *testing.T, what string, got unit.Opt[float64], low, high, share float64) int {
	t.Helper()
	v, ok := got.Get()
	low, high = min(low, high), max(low, high)
	if !ok || v < low*(1-share) || v > high*(1+share) {
		t.Errorf("%s: got %.4g, want %.4g to %.4g ± %.0f %%", what, v, low, high, 100*share)
	} else {
		t.Logf("%s: %.4g, want %.4g to %.4g", what, v, low, high)
	}
	return 1
}

// cycles of the model in a time of ns.
func cycles(s machine.Shape, ns unit.Opt[float64]) unit.Opt[float64] {
	v, ok := ns.Get()
	return unit.OptOf(v*float64(s.Model.MHz)/1000, ok)
}

func parityLatency(t *testing.T, s machine.Shape, p profile.Profile) (n int) {
	for from, node := range s.Nodes {
		for to := range s.Nodes {
			if node.CPUs.IsEmpty() {
				continue
			}
			f, ok := p.LatencyBetween(from, to)
			if !ok {
				t.Errorf("latency %d to %d was not measured", from, to)
			}
			n += recovers(t, fmt.Sprintf("latency %d to %d", from, to), cycles(s, f.Median), float64(s.Model.DRAMCycles[s.Distances[from][to]]), 0.03)
		}
	}
	return n
}

func parityCaches(t *testing.T, s machine.Shape, p profile.Profile) int {
	want := []unit.Bytes{s.Model.L1, s.Model.L2, s.Model.LLC}
	if len(p.Caches) != len(want) {
		t.Errorf("%d levels of cache were found, want %d: %+v", len(p.Caches), len(want), p.Caches)
		return 0
	}
	const step = 1.5 // step of the scan: half an octave, in whole pages
	for i, c := range p.Caches {
		size, ok := c.Size.Get()
		if ratio := float64(size) / float64(want[i]); !ok || ratio > step || ratio < 1/step {
			t.Errorf("L%d: %v fit, want %v or a step beside it", i+1, c.Size, want[i])
		}
	}
	return len(want)
}

func parityCores(t *testing.T, s machine.Shape, p profile.Profile) (n int) {
	byDistance := map[int][]float64{}
	for _, c := range p.CoreToCore {
		d, ok := c.Distance.Get()
		v, known := cycles(s, c.Median).Get()
		if c.Level != profile.SameCore && ok && known {
			byDistance[d] = append(byDistance[d], v)
		}
	}
	for d, values := range byDistance {
		n += recovers(t, fmt.Sprintf("from core to core, distance %d", d), profile.FigureOf(values).Median, float64(s.Model.Transfer(d)), 0.03)
	}
	if n == 0 {
		t.Errorf("no two cores were measured")
	}
	return n
}

// While the guest's kernel has a CPU, its reader sends no requests, and the others wait
// less; the kernel also has lines of its own. So in their own time readers have between
// two figures from the shape: of readers that always read, and of readers that load the
// shared parts only for a share of the time. That share is what the kernel leaves them,
// measured in the same boot. A bandwidth is over all of the time, so it is that share of
// these figures. It is never more than the node's controller serves.
func parityBandwidth(t *testing.T, g *Guest, p profile.Profile) (n int) {
	s, node := g.Shape, g.Shape.Nodes[deviceNode(g.Shape)].CPUs
	duty := readersDuty(t, g, node)
	t.Logf("the CPUs of a node have %.3f of their time when they all read", duty)
	if duty < leastDuty {
		t.Errorf("the guest's kernel takes %.2f of readers' time, and their load is not what it is made from", 1-duty)
		return 0
	}
	bytes := func(linesPerCycle float64) float64 { return linesPerCycle * 64 * float64(s.Model.MHz) * 1e6 }
	compare := func(what string, got unit.Opt[float64], readers []int, home int) int {
		if most := bytes(1 / float64(s.Model.MCCycles)); got.Or(0) > most*1.01 {
			t.Errorf("%s: got %.4g, the controller serves %.4g", what, got.Or(0), most)
		}
		busy, eased := queueing(s, readers, home, 1, streaming(s)), queueing(s, readers, home, duty, streaming(s))
		return between(t, what, got, bytes(duty*busy), bytes(duty*eased), 0.05)
	}
	all := make([]int, len(s.Nodes))
	for from, node := range s.Nodes {
		all[from] = node.CPUs.Len()
		for to := range s.Nodes {
			f, ok := p.BandwidthBetween(from, to)
			if !ok {
				continue
			}
			readers := make([]int, len(s.Nodes))
			readers[from] = node.CPUs.Len()
			n += compare(fmt.Sprintf("bandwidth %d to %d", from, to), f.Median, readers, to)
		}
	}
	if duty = readersDuty(t, g, s.CPUs()); duty < leastDuty {
		t.Errorf("the guest's kernel takes %.2f of all readers' time", 1-duty)
		return n
	}
	for _, f := range p.Peak {
		n += compare(fmt.Sprintf("bandwidth of node %d, all CPUs", f.Node), f.Median, all, f.Node)
	}
	return n
}

// reading is how CPUs read: lines in flight at a time, and instructions for each.
type reading struct{ width, instructions float64 }

// streaming is a probe's `read`; chasing a pointer chase.
func streaming(s machine.Shape) reading { return reading{float64(s.Model.StreamParallelism), 1.25} }

var chasing = reading{1, 1}

// latencyUnder is how long one CPU of a node waits for a line of home's memory if it is
// the only reader of this kind: the idle latency, and the wait for its own earlier lines.
func latencyUnder(s machine.Shape, from, home int, how reading) float64 {
	readers := make([]int, len(s.Nodes))
	readers[from] = 1
	return how.width * (1/queueing(s, readers, home, 1, how) - how.instructions)
}

// queueing is the fixed point that follows from the shape's figures: lines per cycle
// that reading CPUs (by node) get from a node's memory. Waits are those of M/D/1
// queues. Demand above 98 % waits until it falls. A CPU loads them only for its duty;
// the rest of its time belongs to the guest's kernel.
func queueing(s machine.Shape, readers []int, home int, duty float64, how reading) (lines float64) {
	type server struct{ service, load, extra, wait float64 }
	mc := &server{service: float64(s.Model.MCCycles)}
	links := map[int]*server{}
	routes := s.Routes()
	for range 20_000 {
		lines, mc.load = 0, 0
		for _, l := range links {
			l.load = 0
		}
		for from, n := range readers {
			if n == 0 {
				continue
			}
			latency := float64(s.Model.DRAMCycles[s.Distances[from][home]]) + mc.wait
			for _, id := range routes[from][home] {
				if links[id] == nil {
					links[id] = &server{service: float64(s.Model.LinkCycles)}
				}
				latency += links[id].wait
			}
			rate := float64(n) / (latency/how.width + how.instructions)
			lines += rate
			mc.load += duty * rate * mc.service
			for _, id := range routes[from][home] {
				links[id].load += duty * rate * links[id].service
			}
		}
		for _, q := range slices.AppendSeq([]*server{mc}, maps.Values(links)) {
			rho := min(q.load, 0.95)
			wait := q.service * rho / (2 * (1 - rho))
			q.extra = max(0, q.extra+0.02*(q.load-0.98)*(200+wait+q.extra))
			q.wait += 0.05 * (wait + q.extra - q.wait)
		}
	}
	return lines
}
