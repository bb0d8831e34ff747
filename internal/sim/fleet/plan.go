// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"homenode/internal/sim"
	"homenode/internal/sim/detmath"
	"homenode/internal/unit"
)

// Plan is a fleet: its services, and which replica is on which server at what time.
type Plan struct {
	Host     Host
	Seed     uint64
	Servers  int
	Minutes  int
	Services []Service
	// Stays are ordered by server, then by arrival. Stays[First[s]:First[s+1]] are server
	// s's.
	Stays []Stay
	First []int
	// Unplaced is the number of stays that no server had room for.
	Unplaced int
}

// Stay is a replica on a server. Minutes count from the start. To is when it leaves, at
// most the plan's Minutes.
type Stay struct {
	Service, Replica, Life int32 // Life: number of the stay among the replica's stays
	Server                 int32
	From, To               int32
}

// Size is the size of the fleet that Generate makes.
type Size struct {
	Servers   int
	Minutes   int // duration
	Workloads int // per server, on average
}

// The largest possible fleet: what fits into the plan's types, and into a day of computing.
const (
	MostServers   = 1_000_000
	MostMinutes   = 366 * 24 * 60
	MostWorkloads = 1000
)

// Validate says what is invalid.
func (z Size) Validate() error {
	switch {
	case z.Servers < 1 || z.Servers > MostServers:
		return fmt.Errorf("a fleet of %d servers: want 1 to %d", z.Servers, MostServers)
	case z.Minutes < 1 || z.Minutes > MostMinutes:
		return fmt.Errorf("a fleet for %d minutes: want 1 to %d (366 days)", z.Minutes, MostMinutes)
	case z.Workloads < 1 || z.Workloads > MostWorkloads:
		return fmt.Errorf("%d workloads a server: want 1 to %d", z.Workloads, MostWorkloads)
	}
	return nil
}

// Validate says why a host cannot carry a fleet.
func (h Host) Validate() error {
	for _, v := range []struct {
		what  string
		value float64
	}{{"CPUs", h.CPUs}, {"memory", h.Memory}, {"clock rate", h.Hz}} {
		if !(v.value > 0) || math.IsInf(v.value, 0) {
			return fmt.Errorf("a fleet's machine has %s %v: it must be known and more than 0", v.what, v.value)
		}
	}
	return nil
}

// Generate makes the fleet of a seed.
func Generate(seed uint64, h Host, z Size) (*Plan, error) {
	if err := z.Validate(); err != nil {
		return nil, err
	}
	if err := h.Validate(); err != nil {
		return nil, err
	}
	p := &Plan{Host: h, Seed: seed, Servers: z.Servers, Minutes: z.Minutes, Services: catalogue(seed, h, z.Servers, z.Workloads)}
	newScheduler(p).run()
	p.byServer()
	return p, nil
}

func (p *Plan) byServer() {
	slices.SortFunc(p.Stays, func(a, b Stay) int {
		return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(a.From, b.From), cmp.Compare(a.Service, b.Service), cmp.Compare(a.Replica, b.Replica))
	})
	p.First = make([]int, p.Servers+1)
	for _, s := range p.Stays {
		p.First[s.Server+1]++
	}
	for i := range p.Servers {
		p.First[i+1] += p.First[i]
	}
}

// Of returns the stays on a server.
func (p *Plan) Of(server int) []Stay { return p.Stays[p.First[server]:p.First[server+1]] }

// Specs returns the workloads of a server, parallel to its stays.
func (p *Plan) Specs(server int) []sim.Spec {
	stays := p.Of(server)
	specs := make([]sim.Spec, len(stays))
	for i, s := range stays {
		specs[i] = p.spec(s)
	}
	return specs
}

// spec is a replica: its service's spec, a little larger or smaller, and more or less
// loaded than other replicas, as no two replicas are alike.
func (p *Plan) spec(y Stay) sim.Spec {
	service := &p.Services[y.Service]
	r := detmath.NewRandom(p.Seed, "fleet", "replica", service.Name, strconv.Itoa(int(y.Replica)))
	s := service.Spec
	s.Name = fmt.Sprintf("%s-%d-%d", service.Name, y.Replica, y.Life)
	s.Demand.Rate = float64(s.Demand.Rate * span{0.85, 1.15}.between(&r))
	f := span{0.9, 1}.between(&r) // never more than was requested from the scheduler
	for _, b := range []*unit.Bytes{&s.Memory.Private, &s.Memory.Shared, &s.Memory.Files, &s.Memory.Cache} {
		*b = scaled(*b, f)
	}
	s.Work.Regions = slices.Clone(s.Work.Regions)
	for i := range s.Work.Regions {
		if g := &s.Work.Regions[i]; g.Shared {
			g.Size = s.Memory.Shared + s.Memory.Files
		} else {
			g.Size = scaled(g.Size, f)
		}
	}
	s.Arrive = time.Duration(y.From) * time.Minute
	if int(y.To) < p.Minutes {
		s.Depart = time.Duration(y.To) * time.Minute
	}
	return s
}
