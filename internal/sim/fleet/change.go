// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"slices"

	"homenode/internal/sim/detmath"
)

const (
	// Level is the level of a change's intervals.
	Level = 0.95
	// resamples of the servers. The ends of an interval are the 25th values.
	resamples = 1000
)

// Change compares servers with MAO with those without: the same servers if Paired, else
// others with the same services. Negative is less.
type Change struct {
	Paired bool `json:"paired"`
	// CPU and Latency are per operation. Each service is weighted by what it used, or
	// waited for.
	CPU        *float64 `json:"cpu"`
	Latency    *float64 `json:"latency_change"`
	LocalRatio *float64 `json:"local_ratio"` // difference

	// The same changes for a different sample of servers: by bootstrap over servers, for a
	// paired change over pairs. nil: a side has one server, which says nothing about
	// others.
	Level              float64   `json:"level"`
	CPUInterval        *Interval `json:"cpu_interval"`
	LatencyInterval    *Interval `json:"latency_interval"`
	LocalRatioInterval *Interval `json:"local_ratio_interval"`
}

// Interval contains the share Level of the resampled changes.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// serviceShare is what a service got on a server. It holds as little as a change needs,
// since all servers' shares are kept until the end.
type serviceShare struct {
	service                                   int32
	ops, cpu, requests, latency, local, reads float64
}

func (a *serviceShare) plus(b *serviceShare) {
	a.ops += b.ops
	a.cpu += b.cpu
	a.requests += b.requests
	a.latency += b.latency
	a.local += b.local
	a.reads += b.reads
}

// shares is a part without what no change needs.
func (p *part) shares() []serviceShare {
	all := make([]serviceShare, len(p.services))
	for i := range p.services {
		t := &p.services[i]
		all[i] = serviceShare{t.service, t.Ops, t.CPU, t.Requests, t.Latency, t.Local, t.Local + t.Remote}
	}
	return all
}

// compared is the data for a change. If paired, on[i] and off[i] are one server.
type compared struct {
	paired  bool
	on, off [][]serviceShare
}

// addServer keeps a server, if there is another side to compare it with. With a data set, servers
// without MAO have no pair and are left out.
func (c *compared) addServer(config *Config, o *outcome) {
	c.paired = config.DataSet
	n := config.sharers()
	if n == 0 || !c.paired && n == config.Size.Servers || c.paired && !o.with.ran {
		return
	}
	if o.with.ran {
		c.on = append(c.on, o.with.shares())
	}
	if o.without.ran {
		c.off = append(c.off, o.without.shares())
	}
}

// change computes the change with its intervals.
func (c *compared) change(seed uint64, services int) *Change {
	if len(c.on) == 0 || len(c.off) == 0 {
		return nil
	}
	s := sampled{on: make([]serviceShare, services), off: make([]serviceShare, services)}
	for i := range c.on {
		plusAll(s.on, c.on[i])
	}
	for i := range c.off {
		plusAll(s.off, c.off[i])
	}
	cpu, latency, local := s.change()
	change := &Change{Paired: c.paired, Level: Level, CPU: cpu, Latency: latency, LocalRatio: local}
	if len(c.on) < 2 || len(c.off) < 2 {
		return change
	}
	var all [3][]float64
	r := detmath.NewRandom(seed, "fleet", "bootstrap")
	for range resamples {
		c.draw(&s, &r)
		cpu, latency, local := s.change()
		for i, v := range []*float64{cpu, latency, local} {
			if v != nil {
				all[i] = append(all[i], *v)
			}
		}
	}
	change.CPUInterval, change.LatencyInterval, change.LocalRatioInterval = interval(all[0]), interval(all[1]), interval(all[2])
	return change
}

// draw is a sample of the same number of servers, some of them more than once.
func (c *compared) draw(s *sampled, r *detmath.Random) {
	clear(s.on)
	clear(s.off)
	for range c.on {
		i := r.Below(len(c.on))
		plusAll(s.on, c.on[i])
		if c.paired {
			plusAll(s.off, c.off[i])
		}
	}
	if !c.paired {
		for range c.off {
			plusAll(s.off, c.off[r.Below(len(c.off))])
		}
	}
}

func plusAll(to []serviceShare, server []serviceShare) {
	for i := range server {
		to[server[i].service].plus(&server[i])
	}
}

// sampled is both sides, by service.
type sampled struct{ on, off []serviceShare }

// change compares service by service, as two halves of a fleet have their services in
// different proportions.
func (s *sampled) change() (cpu, latency, local *float64) {
	var cpuOn, cpuOff, latencyOn, latencyOff float64
	var on, off serviceShare
	for i := range s.on {
		a, b := &s.on[i], &s.off[i]
		on.plus(a)
		off.plus(b)
		if a.ops > 0 && b.ops > 0 {
			cpuOn += a.cpu / a.ops * b.ops
			cpuOff += b.cpu
		}
		if a.requests > 0 && b.requests > 0 {
			latencyOn += a.latency / a.requests * b.requests
			latencyOff += b.latency
		}
	}
	if x, y := over(on.local, on.reads), over(off.local, off.reads); x != nil && y != nil {
		local = known(*x - *y)
	}
	return relative(cpuOn, cpuOff), relative(latencyOn, latencyOff), local
}

func relative(a, b float64) *float64 {
	if v := over(a, b); v != nil {
		return known(*v - 1)
	}
	return nil
}

// interval leaves out the same number of values at both ends.
func interval(values []float64) *Interval {
	if len(values) == 0 {
		return nil
	}
	slices.Sort(values)
	n := len(values) * 25 / 1000 // (1 - Level) / 2
	return &Interval{values[n], values[len(values)-1-n]}
}
