// SPDX-License-Identifier: Apache-2.0

package mao

import (
	"math"
	"slices"

	"homenode/internal/unit"
	"homenode/internal/window"
)

// Quality is how well a bound workload does compared with its own past at the same load,
// and what was done about it. States share it: it is never changed, only replaced.
type Quality struct {
	Metric string `json:"metric"`         // a name of metricOf; with another metric the past starts anew
	Past   []Like `json:"past,omitempty"` // ascending by load
	// Worse counts the windows in a row in which it did worse than its past. Ratio is by
	// what factor, smoothed since Worse began.
	Worse int     `json:"worse,omitempty"`
	Ratio float64 `json:"ratio,omitempty"`
	// Well counts the windows in a row in which it did not, at a known load.
	Well int `json:"well,omitempty"`
	// Other counts the windows in a row in which another metric would have been chosen.
	Other int `json:"other,omitempty"`

	// Neighbour is limited to step Step (from 1) of Isolate.Steps on its behalf since
	// window Since. Before is Ratio at that time. Held: it helped, and stays.
	Neighbour string  `json:"neighbour,omitempty"`
	Step      int     `json:"step,omitempty"`
	Since     uint64  `json:"since,omitempty"`
	Before    float64 `json:"before,omitempty"`
	Held      bool    `json:"held,omitempty"`
	// Tried lists neighbours that did not help since it began to do worse, or that may not
	// be isolated.
	Tried []string `json:"tried,omitempty"`
	// Quiet is the window before which it is not escalated again.
	Quiet uint64 `json:"quiet,omitempty"`
}

// Like is the metric in windows of about the same load.
type Like struct {
	Load    int     `json:"load"` // loadOf
	Mean    float64 `json:"mean"`
	Windows int     `json:"windows"` // at most longPast
}

const (
	// longPast is the number of windows in the mean. With fewer, a slow decline would pass
	// for normal. While it does worse nothing is learned. What stays worse for good is
	// escalated once, and then becomes normal (unlearn).
	longPast = 256
	// otherMetric is the number of windows after which the metric is changed, and the past
	// starts anew. A metric that is missing for only some windows, such as a late latency
	// file, is not changed.
	otherMetric = 16
	// learnEvery: a known past is extended only in every learnEvery-th window, as each time
	// costs a copy.
	learnEvery = 8
	// mostLikes and mostTried bound what is remembered.
	mostLikes, mostTried = 16, 16
)

// loadOf puts CPU use into half octaves; loads within one are alike. Powers of two are in the
// middle of theirs: busy threads use whole CPUs, a little less in one window and a little more
// in the next. It uses Frexp, which is exact everywhere.
func loadOf(cpus float64) int {
	part, exp := math.Frexp(cpus)
	return 2*exp + b2i(part >= quarter) + b2i(part >= threeQuarters)
}

// The powers of two that end half octaves: 2^(1/4 − 1) and 2^(3/4 − 1).
const quarter, threeQuarters = 0.5946035575013605, 0.8408964152537145

// metrics are the figures it is judged by; the first that is known is used: the latency
// that its service reports, the uncore penalty, the memory stall ratio, misses per
// instruction. More is worse.
var metrics = [...]string{"latency", "uncore_penalty", stallRatio, "misses_per_instruction"}

const stallRatio = "memory_stall_ratio"

// metricNamed is the metric of that name, with its source.
func metricNamed(l *load, name string) unit.Value[float64] {
	x := metricOf(l, name)
	switch {
	case name == "misses_per_instruction":
		return window.MPI(l.Workload)
	case !(x > 0):
		return unit.UnknownValue[float64]("not known in this window")
	case name == "latency":
		return l.Latency
	case name == "uncore_penalty":
		how := unit.Weakest(l.UncoreRequests.How, l.UncoreWaits.How)
		return unit.ValueOf(x, how, l.UncoreWaits.From+", "+l.UncoreRequests.From)
	}
	return unit.ValueOf(x, unit.Weakest(l.Cycles.How, l.StallCycles.How), l.StallCycles.From)
}

// metricOf is the metric of that name; 0 where it is unknown.
func metricOf(l *load, name string) float64 {
	switch name {
	case "latency":
		return max(0, l.Latency.Or(0))
	case "uncore_penalty":
		if a, ok := l.UncoreRequests.Get(); ok && a > 0 && l.UncoreWaits.Known() {
			return float64(l.UncoreWaits.Or(0)) / float64(a)
		}
	case stallRatio:
		cycles, okC := l.Cycles.Get()
		stalls, okS := l.StallCycles.Get()
		if okC && okS && cycles > 0 && stalls <= cycles {
			return float64(stalls) / float64(cycles)
		}
	default:
		reads, okR := l.reads.Get()
		if n, ok := l.Instructions.Get(); ok && okR && n > 0 {
			return reads / float64(n)
		}
	}
	return 0
}

// metric is the quality's metric in this window; 0: unknown. Another metric replaces it
// once that one would have been chosen for otherMetric windows in a row.
func (l *load) metric() (name string, x float64) {
	for _, name = range metrics {
		if x = metricOf(l, name); x > 0 {
			break
		}
	}
	q := l.Quality
	switch {
	case q == nil || name == q.Metric && q.Other == 0:
		return name, x
	case name == q.Metric:
		next := *q
		next.Other = 0
		l.Quality = &next
		return name, x
	}
	next := *q
	if next.Other++; next.Other > otherMetric {
		next.Metric, next.Past, next.Worse, next.Ratio, next.Well, next.Other = name, nil, 0, 0, 0, 0
	}
	l.Quality = &next
	return next.Metric, metricOf(l, next.Metric)
}

// like is the index of a load in the past.
func (q *Quality) like(load int) (int, bool) {
	return slices.BinarySearchFunc(q.Past, load, func(l Like, load int) int { return l.Load - load })
}

// starved reports that it lacks CPU, or that this is unknown. Then doing worse is no sign
// of contention for caches and memory.
func (r *round) starved(l *load) bool {
	waiting, known := l.Waiting.Get()
	limit := float64(r.cfg.Isolate.Pressure)
	return !known || float64(waiting) > limit || float64(l.Throttled.Or(0)) > limit
}

// atHome reports that binding has done what it can: it is on target, or its pages are
// there.
func (r *round) atHome(l *load) bool {
	local, known := l.local.Get()
	if known && local >= l.target {
		return true
	}
	return l.pages != nil && l.total > 0 && share(float64(r.outside(l, l.Nodes)), float64(l.total)) <= mostAway
}

// mostAway is the largest share of pages elsewhere at which a workload counts as at home.
const mostAway = 0.05

// assess compares a bound workload with its past, and extends the past. A workload that is
// not at home, lacks CPU or has no figures is not judged: that neither counts nor resets,
// and earlier findings are no reason to act in this window. Few DRAM reads are no reason not
// to judge: what fits the caches reads little until a neighbour pollutes them, and that time
// is its past.
func (r *round) assess(l *load) (judged bool) {
	if !l.bound() || l.idle(&r.cfg) || !l.CPU.Known() || r.starved(l) || !r.atHome(l) {
		return false
	}
	name, x := l.metric()
	if !(x > 0) || math.IsInf(x, 0) {
		return false
	}
	q := l.Quality
	if q == nil {
		q = &Quality{Metric: name}
		l.Quality = q
	}
	load := loadOf(l.CPU.Or(0))
	at, ok := q.like(load)
	switch {
	case !ok:
		l.Quality = q.learn(at, Like{Load: load, Mean: x, Windows: 1}, true)
	case q.Past[at].Windows >= r.cfg.Isolate.MinPast && x > r.cfg.Isolate.limit(name, q.Past[at].Mean):
		next := *q
		next.Well = 0
		ratio := timesPast(name, x, q.Past[at].Mean)
		if next.Worse++; next.Worse > 1 {
			ratio = (ratio + next.Ratio) / 2
		}
		next.Ratio = ratio
		l.Quality = &next
	case q.Worse > 0 || q.Past[at].Windows < r.cfg.Isolate.MinPast || r.w.Seq%learnEvery == 0 || q.Neighbour != "" && q.Well < r.cfg.Isolate.After:
		p := q.Past[at]
		p.Windows = min(p.Windows+1, longPast)
		p.Mean += (x - p.Mean) / float64(p.Windows)
		l.Quality = q.learn(at, p, false)
	}
	return true
}

// Alarmed reports that window seq, with which before became s, leaves something open: a bound
// workload did worse than its past and no neighbour is isolated for it yet, or the latest step
// has not been watched for Watch windows. Then the next window should come soon, as After and
// Watch count windows.
func (s State) Alarmed(c Isolate, before State, seq uint64) bool {
	if !c.Enabled {
		return false
	}
	for i := range s.Workloads {
		m := &s.Workloads[i]
		q := m.Quality
		switch {
		case q == nil || m.Nodes.IsEmpty():
		case q.Neighbour != "":
			if !q.Held && seq-q.Since <= uint64(c.Watch) {
				return true
			}
		case q.Worse > 0 && seq >= q.Quiet:
			if was := before.find(m.Workload).Quality; was == nil || was.Worse != q.Worse {
				return true // it was judged in this window
			}
		}
	}
	return false
}

// A stall ratio cannot rise above 1. What stalls in 90 % of its cycles, as a walk through the
// caches does, and then in 98 %, takes five times as long for each cycle in which it does not
// stall; the ratio itself has risen by 9 %. So a stall ratio counts as the larger of both:
// the multiple of its past, and that of the time for the same work.

// limit is the value of a metric above which it is worse than its past.
func (c Isolate) limit(metric string, past float64) float64 {
	most := float64(past * (1 + float64(c.Rise)))
	if metric == stallRatio {
		most = min(most, 1-(1-past)/(1+float64(c.Rise)))
	}
	return most
}

// timesPast is by what factor a metric is worse than its past.
func timesPast(metric string, x, past float64) float64 {
	times := x / past
	if metric == stallRatio && past < 1 {
		times = max(times, (1-past)/max(1-x, leastWork))
	}
	return times
}

// leastWork is the least share of cycles without a stall that is told from none.
const leastWork = 0.001

// neighbour of a nil quality is none.
func (q *Quality) neighbour() string {
	if q == nil {
		return ""
	}
	return q.Neighbour
}

// unlearn is the past without this load.
func (q *Quality) unlearn(load int) []Like {
	at, ok := q.like(load)
	if !ok {
		return q.Past
	}
	return slices.Delete(slices.Clone(q.Past), at, at+1)
}

// learn is the quality with one entry of its past replaced or inserted, and not worse. A
// full past forgets the load that was seen least.
func (q *Quality) learn(at int, p Like, anew bool) *Quality {
	n := *q
	n.Worse, n.Ratio, n.Past = 0, 0, slices.Clone(q.Past)
	if n.Well++; !anew {
		n.Past[at] = p
		return &n
	}
	n.Well = 0
	n.Past = slices.Insert(n.Past, at, p)
	if len(n.Past) > mostLikes {
		least := -1
		for i := range n.Past {
			if i != at && (least < 0 || n.Past[i].Windows < n.Past[least].Windows) {
				least = i
			}
		}
		n.Past = slices.Delete(n.Past, least, least+1)
	}
	return &n
}
