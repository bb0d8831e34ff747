// SPDX-License-Identifier: Apache-2.0

package threadagent

import (
	"time"

	"homenode/internal/unit"
	"homenode/internal/window"
)

// series is a workload's past in buckets of equal numbers of windows. When all buckets
// are full, each two become one: however long a run is, its first and last tenths are
// known to a hundredth.
type series struct {
	id        string
	sensitive unit.Opt[bool]
	threads   int
	moves     int
	per       int // windows in a full bucket
	buckets   []bucket
	standing
}

// mostBuckets is even, and some ten times the number that makes a tenth one
// bucket.
const mostBuckets = 256

// bucket sums some windows.
type bucket struct {
	windows int
	length  time.Duration
	byNode  []float64 // CPU seconds
	penalty ratio     // waits over requests
	local   ratio     // local over all DRAM reads
	how     unit.Source
	cpuFrom string
}

// ratio is one sum over another. It is as certain as the least certain of its
// parts.
type ratio struct {
	above, below float64
	known        int
	how          unit.Source
	from         string // source of the first part; without one, the reason why it is unknown
}

func (r *ratio) addCounts(above, below unit.Value[uint64], whole bool) {
	a, ok1 := above.Get()
	b, ok2 := below.Get()
	if !ok1 || !ok2 {
		if r.known == 0 {
			r.from = above.From
			if ok1 {
				r.from = below.From
			}
		}
		return
	}
	if whole {
		b += a
	}
	r.merge(ratio{float64(a), float64(b), 1, unit.Weakest(above.How, below.How), above.From + ", " + below.From})
}

func (r *ratio) merge(o ratio) {
	switch {
	case o.known == 0 && r.known == 0:
		r.from = o.from
	case o.known > 0 && r.known == 0:
		*r = o
	case o.known > 0:
		r.above, r.below, r.known, r.how = r.above+o.above, r.below+o.below, r.known+o.known, min(r.how, o.how)
	}
}

func (r ratio) value(none string) unit.Value[float64] {
	switch {
	case r.known == 0:
		return unit.UnknownValue[float64](r.from)
	case r.below == 0:
		return unit.UnknownValue[float64](none)
	}
	return unit.ValueOf(r.above/r.below, r.how, r.from)
}

// addWindow adds one window.
func (s *series) addWindow(wl *window.Workload, length time.Duration) {
	s.threads, s.sensitive = len(wl.Threads), wl.Sensitive
	s.per = max(1, s.per)
	if n := len(s.buckets); n == 0 || s.buckets[n-1].windows >= s.per {
		if n == mostBuckets {
			s.halve()
		}
		s.buckets = append(s.buckets, bucket{})
	}
	b := &s.buckets[len(s.buckets)-1]
	b.windows++
	b.length += length
	b.addNodes(wl.CPUByNode, length.Seconds())
	b.penalty.addCounts(wl.UncoreWaits, wl.UncoreRequests, false)
	b.local.addCounts(wl.LocalLoads, wl.RemoteLoads, true)
}

func (b *bucket) addNodes(by []unit.Value[float64], seconds float64) {
	for len(b.byNode) < len(by) {
		b.byNode = append(b.byNode, 0)
	}
	for i, v := range by {
		b.byNode[i] += v.Or(0) * seconds
		if b.cpuFrom == "" || v.Known() {
			b.how, b.cpuFrom = v.How, v.From
		}
	}
}

func (b *bucket) merge(o bucket) {
	b.windows, b.length = b.windows+o.windows, b.length+o.length
	for len(b.byNode) < len(o.byNode) {
		b.byNode = append(b.byNode, 0)
	}
	for i, v := range o.byNode {
		b.byNode[i] += v
	}
	if b.cpuFrom == "" || o.how != unit.HowUnknown {
		b.how, b.cpuFrom = o.how, o.cpuFrom
	}
	b.penalty.merge(o.penalty)
	b.local.merge(o.local)
}

// halve makes one bucket of every two.
func (s *series) halve() {
	for i := 0; i+1 < len(s.buckets); i += 2 {
		b := s.buckets[i]
		b.merge(s.buckets[i+1])
		s.buckets[i/2] = b
	}
	s.buckets = s.buckets[:len(s.buckets)/2]
	s.per *= 2
}

// tenth sums the first or the last tenth of the windows, one bucket at least.
func (s *series) tenth(last bool) Part {
	n := max(1, len(s.buckets)/10)
	some := s.buckets[:min(n, len(s.buckets))]
	if last {
		some = s.buckets[max(0, len(s.buckets)-n):]
	}
	var sum bucket
	for _, b := range some {
		sum.merge(b)
	}
	return sum.part()
}

func (b bucket) part() Part {
	p := Part{Length: b.length, Penalty: b.penalty.value("no request left the private caches"), CPUByNode: []unit.Value[float64]{}}
	local := b.local.value("no DRAM read was counted")
	v, ok := local.Get()
	p.LocalAccessRatio = unit.Value[unit.Ratio]{V: unit.OptOf(unit.Ratio(v), ok), How: local.How, From: local.From}
	for _, s := range b.byNode {
		share := unit.UnknownValue[float64](b.cpuFrom)
		if b.how != unit.HowUnknown && b.length > 0 {
			share = unit.ValueOf(s/b.length.Seconds(), b.how, b.cpuFrom)
		}
		p.CPUByNode = append(p.CPUByNode, share)
	}
	return p
}
