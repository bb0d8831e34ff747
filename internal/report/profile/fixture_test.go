// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"math"
	"strconv"
	"time"

	"homenode/internal/profile"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// fig is a figure of five repeats with this spread.
func fig(v, spread float64) profile.Figure {
	return profile.Figure{Median: unit.Some(v), Min: v * (1 - spread/2), Max: v * (1 + spread), N: 5}
}

func timed(ns, spread float64) profile.Figure {
	f := fig(ns, spread)
	f.Cycles = unit.Some(ns * 2.7)
	return f
}

func gone(why string) profile.Figure { return profile.Figure{Why: why} }

// hops is the distance between nodes in a ring.
func hops(n, i, j int) float64 {
	d := (i - j + n) % n
	return float64(min(d, n-d))
}

// fake is a profile of a number of nodes in a ring, the last of which has no CPUs.
func fake(nodes int) profile.Profile {
	p := profile.Profile{
		Schema: profile.Schema, Origin: "fake:ring", Version: "v0", Command: "homenode bench --out p.json",
		Date: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC), Seconds: 432, How: unit.HowModelled,
		Clock: "model time: cycles of the lab's model at 2.7 GHz", Done: profile.Parts()[:8],
		Machine: profile.Fingerprint{CPUModel: "Fake CPU E5 @ 2.70GHz", CPUs: 2 * (nodes - 1)},
		Caveats: []profile.Caveat{
			{Code: "virtual-machine", Text: "This is a virtual machine: the hypervisor may move and stop CPUs, and the topology it shows may not be the machine's."},
			{Code: "spread", Text: "Some figures spread by more than 5 %.", Parts: []profile.Part{profile.Latency, profile.Rao}},
		},
		Skipped: []profile.Skipped{{Part: profile.Mixes, Why: "the time budget of 5m0s was used up"}, {Part: profile.Migrating, What: "pages of 2 MiB", Why: "no huge pages are reserved"}},
	}
	for i := range nodes {
		p.Machine.Nodes = append(p.Machine.Nodes, i)
		cpus := set.FromCPUs(2*i, 2*i+1)
		if i == nodes-1 {
			cpus = set.CPUSet{}
		}
		p.Machine.NodeCPUs = append(p.Machine.NodeCPUs, cpus)
	}
	fakeNodes(&p, nodes)
	fakeCaches(&p)
	fakePairs(&p, nodes-1)
	fakePolicies(&p)
	p.Rao = fakeGrid()
	return p
}

func fakeNodes(p *profile.Profile, nodes int) {
	for i := range nodes - 1 {
		for j := range nodes {
			far := hops(nodes, i, j)
			lat, bw := timed(80+58*far, 0.01), fig(21.3e9/(1+0.4*far), 0.02)
			if j == nodes-1 {
				lat, bw = timed(148+40*far, 0.08), fig(6.1e9, 0.02)
			}
			if i == 1 && j == 0 {
				lat, bw = gone("not enough free memory on node 0: 64 MiB are needed, 12 MiB are free"), gone("not enough free memory on node 0: 64 MiB are needed, 12 MiB are free")
			}
			p.Latency = append(p.Latency, profile.PairFigure{From: i, To: j, Figure: lat})
			p.Bandwidth = append(p.Bandwidth, profile.PairFigure{From: i, To: j, Figure: bw})
			if i != j {
				p.Migration = append(p.Migration, profile.Migration{From: i, To: j, PageSize: 4096, PerPage: fig(2300+200*far, 0.03), Rate: fig(1.7e9, 0.03)})
			}
		}
		p.Loaded = append(p.Loaded, fakeCurve("node "+strconv.Itoa(i)+", local", i, i, 21e9))
	}
	for i := range nodes {
		p.Peak = append(p.Peak, profile.NodeFigure{Node: i, Figure: fig(24e9, 0.01)})
	}
	p.Loaded = append(p.Loaded, fakeCurve("node 0, memory of node 1", 0, 1, 12e9), fakeCurve("whole machine, all local", 0, 0, 62e9))
}

// fakeCurve bends as a queue does.
func fakeCurve(name string, from, to int, top float64) profile.Curve {
	c := profile.Curve{Name: name, From: from, To: to}
	for k, load := range []float64{0.02, 0.1, 0.25, 0.45, 0.65, 0.8, 0.9, 0.96} {
		y := (80 + 58*hops(4, from, to)) * (1 + 0.12*load/(1-load))
		c.Points = append(c.Points, profile.CurvePoint{Pause: 2048 >> k, Bandwidth: fig(top*load, 0.01), Latency: fig(y, 0.02+0.1*load)})
	}
	return c
}

func fakeCaches(p *profile.Profile) {
	p.Caches = []profile.CacheSize{
		{Level: 1, Size: unit.Some(32 * unit.KiB), Next: unit.Some(48 * unit.KiB), Latency: timed(1.5, 0.01), Firmware: unit.Some(32 * unit.KiB)},
		{Level: 2, Size: unit.Some(256 * unit.KiB), Next: unit.Some(384 * unit.KiB), Latency: timed(5.2, 0.01), Firmware: unit.Some(256 * unit.KiB)},
		{Level: 3, Size: unit.None[unit.Bytes](), Latency: timed(15.1, 0.01), Firmware: unit.Some(1 * unit.MiB), Why: "the latency rises without a step"},
	}
	for b := 8 * unit.KiB; b <= 64*unit.MiB; b *= 2 {
		ns := 80.0
		for _, c := range []struct {
			size unit.Bytes
			ns   float64
		}{{1 * unit.MiB, 15.1}, {256 * unit.KiB, 5.2}, {32 * unit.KiB, 1.5}} {
			ns += (c.ns - ns) * min(1, float64(c.size)/float64(b))
		}
		p.WorkingSets = append(p.WorkingSets, profile.SizeFigure{Bytes: b, Figure: fig(ns, 0.02)})
	}
}

func fakePairs(p *profile.Profile, nodes int) {
	for i := range nodes {
		p.CacheSharing = append(p.CacheSharing, profile.SharingTest{CPUs: [2]int{2 * i, 2*i + 1}, Level: profile.SameLLC, Alone: fig(15, 0.01), Together: fig(44, 0.02), Shared: unit.Some(true)})
		p.CoreToCore = append(p.CoreToCore, profile.CoreFigure{CPUs: [2]int{2 * i, 2*i + 1}, Level: profile.SameLLC, Figure: fig(31+float64(i), 0.01)})
		for j := range nodes {
			if i == j {
				continue
			}
			d := unit.Some(11 + 10*int(hops(4, i, j)))
			x := profile.SharingTest{CPUs: [2]int{2 * i, 2 * j}, Level: profile.Between, Distance: d, Alone: fig(15, 0.01), Together: fig(15.1, 0.02), Shared: unit.Some(false)}
			if i == 1 && j == 2 {
				x.Shared, x.Together = unit.None[bool](), gone("CPU 4 went offline")
			}
			p.CacheSharing = append(p.CacheSharing, x)
			p.CoreToCore = append(p.CoreToCore, profile.CoreFigure{CPUs: [2]int{2 * i, 2 * j}, Level: profile.Between, Distance: d, Figure: fig(100+50*hops(4, i, j)+float64(i), 0.02)})
		}
	}
}

func fakePolicies(p *profile.Profile) {
	for k, policy := range []string{"local", "bind 1", "preferred 1", "interleave 0-3", "weighted-interleave 0-3"} {
		for _, work := range []string{"read", "write", "copy", "chase"} {
			r := profile.PolicyRow{Policy: policy, Work: work, CPU: 0, Unit: "bytes/s", Figure: fig(21e9/(1+0.2*float64(k)), 0.02), Against: unit.Some(1 / (1 + 0.2*float64(k)))}
			if work == "chase" {
				r.Unit, r.Figure = "ns", fig(80*(1+0.2*float64(k)), 0.02)
			}
			if k == 4 {
				r.Figure, r.Against = gone("the kernel knows no weighted-interleave (6.9 has it)"), unit.None[float64]()
			}
			p.Policies = append(p.Policies, r)
		}
	}
}

// fakeGrid has the costs of a simple machine: three nodes with an LLC of 1 MiB, whose
// hits take 40 cycles; misses 216, remote ones 373; adds go to a line of another
// thread: 60 cycles away on one socket, 500 on another.
func fakeGrid() []profile.RaoCell {
	var out []profile.RaoCell
	for _, threads := range []int{2, 4} {
		for _, sharing := range []unit.Bytes{0, 4 * unit.KiB, 32 * unit.KiB, 128 * unit.KiB} {
			for _, a := range arrangements {
				for ws := 64 * unit.KiB; ws <= 8*unit.MiB; ws *= 2 {
					out = append(out, fakeCell(threads, a, ws, sharing))
				}
			}
		}
	}
	return out
}

func fakeCell(threads int, a arrangement, ws, sharing unit.Bytes) profile.RaoCell {
	on, add, dram := float64(threads), 60.0, 216.0
	if a.spread == profile.Inter {
		on, add = math.Ceil(float64(threads)/3), 500
	}
	if a.memory == profile.Remote {
		dram = 373
	}
	miss := 1 - min(1, float64(unit.MiB)/on/float64(ws))
	adds := 0.0
	if sharing > 0 {
		adds = 0.2 + 0.05*math.Log2(float64(sharing)/4096)
	}
	wait := miss*dram + (1-miss)*40 + adds*add
	c := profile.RaoCell{Threads: threads, Spread: a.spread, Memory: a.memory, WS: ws, Sharing: sharing}
	c.Cycles, c.PerOp = fig(20+wait, 0.02), fig((20+wait)/2.7, 0.02)
	c.LLCMiss, c.MissRate = fig(miss, 0.01), fig(miss/(1+adds), 0.01)
	c.Requests, c.PenaltyPerOp, c.Penalty = fig(1+adds, 0.01), fig(wait, 0.01), fig(wait/(1+adds), 0.01)
	return c
}

// hostile is a profile with malicious texts.
func hostile() profile.Profile {
	const evil = "\x1b[31mred\x1b[0m <script>alert(1)</script> & \u202e\"'\n{{.}}</svg></style>"
	p := fake(4)
	p.Origin, p.Version, p.Command, p.Clock, p.Machine.CPUModel = evil, evil, evil, evil, evil
	p.Caveats = []profile.Caveat{{Code: evil, Text: evil, Parts: []profile.Part{evil}}}
	p.Skipped = []profile.Skipped{{Part: profile.Latency, What: evil, Why: evil}}
	p.Latency[1].Figure = gone(evil)
	p.Loaded[0].Name = evil
	p.Caches[2].Why = evil
	p.CoreToCore[0].Level = evil
	p.Policies[0].Policy, p.Policies[1].Work, p.Policies[2].Unit = evil, evil, evil
	p.Rao[0].Spread = evil
	return p
}

// few is the profile of a first, interrupted measurement.
func few() profile.Profile {
	p := profile.Profile{Schema: profile.Schema, How: unit.HowMeasured, Machine: profile.Fingerprint{CPUs: 1, Nodes: []int{3}, NodeCPUs: []set.CPUSet{set.FromCPUs(0)}}}
	p.Latency = []profile.PairFigure{{From: 3, To: 3, Figure: profile.Figure{Median: unit.Some(91.25), N: 1}}}
	p.Skipped = []profile.Skipped{{Part: profile.Rao, Why: "there is one node only"}, {Part: profile.Policies}}
	return p
}
