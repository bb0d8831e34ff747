// SPDX-License-Identifier: Apache-2.0

package fleettest

import (
	"fmt"
	"math"
	"time"

	"homenode/internal/store"
	"homenode/internal/unit"
)

// Fleet is so many hosts of two nodes, with so many workloads each.
type Fleet struct {
	Hosts, Each int
	Services    int       // 0: as many as there are names
	Until       time.Time // end of the last window
	Length      time.Duration
}

var names = []string{
	"search-index", "search-frontend", "ads-ranker", "ads-budget", "feature-store", "session-cache", "checkout", "catalogue",
	"recommender", "image-resize", "mail-filter", "stream-join", "metrics-ingest", "log-shipper", "graph-walk", "geo-tiles",
	"speech-decode", "translate", "billing", "key-value", "timeline", "fraud-check", "batch-train", "",
}

// hostile is a host whose names would do harm where they are not escaped.
const hostile = `<script>alert(1)</script>"'&`

// Host is a host's name.
func (f Fleet) Host(i int) string {
	if i == f.Hosts-1 {
		return "evil-" + hostile
	}
	return fmt.Sprintf("host-%05d", i)
}

// Service is a service's name.
func (f Fleet) Service(i int) string {
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("%s-%d", names[i%(len(names)-1)], i/len(names))
}

func (f Fleet) services() int {
	if f.Services > 0 {
		return f.Services
	}
	return len(names)
}

// serviceOf is the service of a host's workload.
func (f Fleet) serviceOf(host, i int) int { return (host*7 + i*5 + i*i) % f.services() }

// Workload is a workload's path.
func (f Fleet) Workload(host, i int) string {
	if host == f.Hosts-1 && i == 0 {
		return "/demo/\xff\x1b[31m" + hostile
	}
	name := f.Service(f.serviceOf(host, i))
	if name == "" {
		name = "user"
	}
	return fmt.Sprintf("/kubepods.slice/%s-%d", name, i)
}

// wave is a made-up figure between 0 and 1, near to those of neighbouring arguments.
func wave(seed, at float64) float64 {
	return 0.5 + 0.25*math.Sin(seed*12.9898+at) + 0.25*math.Sin(seed*78.233+at*2.7)
}

// spread is between 0 and 1, and far from those of neighbouring arguments.
func spread(seed float64) float64 {
	_, part := math.Modf(math.Abs(math.Sin(seed*12.9898)) * 43758.5453)
	return part
}

// local is a workload's local access ratio; how it is known differs by host.
func (f Fleet) local(host, i int, at float64) float64 {
	s := float64(f.serviceOf(host, i))
	v := 0.35 + 0.6*spread(s+3) + 0.15*(wave(float64(host%97)+s, at)-0.5)
	if f.bound(host, i) {
		v += 0.35
	}
	return min(max(v, 0.05), 0.995)
}

func (f Fleet) how(host int) unit.Source {
	switch {
	case host%11 == 7:
		return unit.HowUnknown
	case host%5 == 3:
		return unit.HowEstimated
	}
	return unit.HowMeasured
}

func (f Fleet) bound(host, i int) bool { return f.serviceOf(host, i)%3 == 0 && (host+i)%4 != 0 }

func (f Fleet) cpus(host, i int, at float64) float64 {
	return 0.1 + 3.5*math.Pow(spread(float64(f.serviceOf(host, i))+40), 3) + 1.2*wave(float64(host*31+i), at)*spread(float64(host%89+i))
}

// Batch is what a host sends of some windows up to Until.
func (f Fleet) Batch(host, windows int) store.Batch {
	b := store.Batch{Host: f.Host(host), Run: "made-up", Number: 1}
	for w := windows - 1; w >= 0; w-- {
		at := f.Until.Add(-time.Duration(w) * f.Length)
		phase := float64(at.Unix()%86400) / 86400 * 2 * math.Pi
		var busy [2]float64
		for i := range f.Each {
			x := f.window(host, i, at, phase)
			for n, v := range x.CPUByNode {
				busy[n] += v
			}
			b.Windows = append(b.Windows, x)
		}
		for n := range busy {
			b.Nodes = append(b.Nodes, f.node(host, n, at, busy[n]))
		}
	}
	f.happened(&b, host)
	return b
}

func (f Fleet) node(host, n int, at time.Time, busy float64) store.Node {
	free := unit.Bytes(float64(256*unit.GiB) * (0.1 + 0.6*spread(float64(host*2+n))))
	return store.Node{At: at, Length: f.Length, Node: n, CPUs: 32, Busy: unit.Some(min(busy, 32)), Memory: unit.Some(256 * unit.GiB), Free: unit.Some(free),
		Traffic: unit.Some(unit.Bytes(busy * 2e9 * f.Length.Seconds())), BusyHow: unit.HowMeasured, MemoryHow: unit.HowMeasured, TrafficHow: unit.HowMeasured}
}

func (f Fleet) window(host, i int, at time.Time, phase float64) store.Window {
	seconds, cpu, home := f.Length.Seconds(), f.cpus(host, i, phase), (host+i)%2
	apart := 0.5
	if f.bound(host, i) {
		apart = 1
	} else if host%6 == 1 {
		apart = 0.85
	}
	w := store.Window{At: at, Length: f.Length, Workload: f.Workload(host, i), Service: f.Service(f.serviceOf(host, i)), Owner: "kubelet", Name: "prod/" + f.Service(f.serviceOf(host, i)),
		Approved: f.serviceOf(host, i)%3 == 0, CPU: unit.Some(cpu), CPUByNode: make([]float64, 2), AnonByNode: make([]unit.Bytes, 2), FileByNode: make([]unit.Bytes, 2),
		Traffic: unit.Some(unit.Bytes(cpu * 1.5e9 * seconds)), MSR: unit.Some(unit.Ratio(0.1 + 0.5*spread(float64(f.serviceOf(host, i))))),
		CPUHow: unit.HowMeasured, CyclesHow: unit.HowMeasured, TrafficHow: unit.HowEstimated, PagesHow: unit.HowMeasured}
	if f.bound(host, i) {
		w.Bound = []int{home}
	}
	if host%6 == 1 {
		home = 0
	}
	w.CPUByNode[home], w.CPUByNode[1-home] = cpu*apart, cpu*(1-apart)
	memory := unit.Bytes(float64(8*unit.GiB) * (0.2 + spread(float64(host*17+i))))
	local := f.local(host, i, phase)
	w.AnonByNode[home], w.AnonByNode[1-home] = unit.Bytes(float64(memory)*local), unit.Bytes(float64(memory)*(1-local))
	if w.LocalHow = f.how(host); w.LocalHow == unit.HowUnknown {
		w.MSR, w.CyclesHow = unit.None[unit.Ratio](), unit.HowUnknown
		return w
	}
	w.Local, w.LocalFrom = unit.Some(unit.Ratio(local)), "pages"
	if w.LocalHow == unit.HowMeasured {
		reads := uint64(cpu * 2e7 * seconds)
		w.LocalReads, w.RemoteReads, w.LocalFrom = unit.Some(uint64(float64(reads)*local)), unit.Some(uint64(float64(reads)*(1-local))), "dram reads"
	}
	return w
}

// happened adds some decisions and outcomes.
func (f Fleet) happened(b *store.Batch, host int) {
	for i := range f.Each {
		if !f.bound(host, i) {
			continue
		}
		at := f.Until.Add(-time.Duration(1+(host*13+i*29)%1400) * time.Minute)
		name, service := f.Workload(host, i), f.Service(f.serviceOf(host, i))
		b.Decisions = append(b.Decisions, store.Decision{At: at, Kind: "bind", Workload: name, Service: service, Nodes: []int{(host + i) % 2}, Rule: "mao.bind",
			Sentence: fmt.Sprintf("Node %d has room for its %s CPUs, and its local access ratio was below the limit of 90%%.", (host+i)%2, trimmed(f.cpus(host, i, 0)))})
		b.Outcomes = append(b.Outcomes, store.Outcome{At: at.Add(30 * time.Second), Workload: name, Service: service, Action: fmt.Sprintf("bind %s to nodes %d", name, (host+i)%2), State: "done", Sentence: "Its CPUs and its memory are on the node."})
		if (host+i)%7 == 1 {
			b.Decisions = append(b.Decisions, store.Decision{At: at.Add(10 * time.Minute), Kind: "unbind", Workload: name, Service: service, Rule: "mao.unbind.busy", Sentence: "Its node was busy for three windows, and it waited for a CPU for more than 5% of the time."})
		}
		if (host+i)%13 == 2 {
			b.Outcomes = append(b.Outcomes, store.Outcome{At: at.Add(12 * time.Minute), Workload: name, Service: service, Action: "bind " + name, State: "drifted", Sentence: "Another process changed its cpuset; homenode leaves it alone and reports it."})
		}
	}
}

func trimmed(v float64) string { return fmt.Sprintf("%.1f", v) }
