// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
	"strconv"
	"time"

	"homenode/internal/sim/detmath"
	"homenode/internal/unit"
)

// scheduler places replicas by their requests of CPU and memory. Like most schedulers it
// knows nothing of nodes: that is MAO's task.
//
//  1. At the start all replicas that are present arrive, in an arbitrary order.
//  2. A stay ends when its life is over (the replica comes back elsewhere at once), or
//     when an elastic replica's hours are over (it comes back the next day).
//  3. Some servers with room are drawn at random, and the best one takes the replica: see
//     score. Servers are drawn, not all examined: a fleet's scheduler does the same to save
//     time (Verma et al.: Borg, EuroSys 2015, "relaxed randomization").
type scheduler struct {
	p        *Plan
	replicas []replica
	servers  []server
	events   events
}

type replica struct {
	service, number int32
	life            int32
	since           int32 // start of its stay
	server          int32 // -1: none
	leaves          int32 // minute in which its stay ends
	from, hours     int32 // minute of the day in which an elastic replica comes, and for how many minutes; hours 0: always present
	random          detmath.Random
}

type server struct {
	cpu    float64
	memory unit.Bytes
	has    []int32 // services, one entry per replica
}

const (
	candidates = 12 // servers with room that are compared; more: denser packing, slower
	tries      = 64 // servers drawn before all are tried in turn
	// memoryLimit is the share of a server's memory that is given away; the kernel needs
	// the rest.
	memoryLimit  = 0.95
	shortestLife = 30 // minutes
)

func newScheduler(p *Plan) *scheduler {
	s := &scheduler{p: p, servers: make([]server, p.Servers)}
	for i := range p.Services {
		for n := range p.Services[i].Replicas {
			s.replicas = append(s.replicas, newReplica(p, int32(i), int32(n)))
		}
	}
	return s
}

func newReplica(p *Plan, service, number int32) replica {
	v := &p.Services[service]
	r := replica{service: service, number: number, server: -1, random: detmath.NewRandom(p.Seed, "fleet", "stay", v.Name, strconv.Itoa(int(number)))}
	if r.random.Float() < v.Elastic {
		peak := int32(v.Spec.Demand.Peak / time.Minute)
		jitter := int32(r.random.Below(60))
		r.hours = elasticHours * 60
		r.from = (peak - r.hours/2 + jitter + 24*60) % (24 * 60)
	}
	return r
}

func (s *scheduler) run() {
	for i := range s.replicas { // 1
		r := &s.replicas[i]
		heap.Push(&s.events, event{minute: r.next(0), order: r.random.Uint64(), replica: int32(i)})
	}
	for len(s.events) > 0 && int(s.events[0].minute) < s.p.Minutes {
		e := &s.events[0]
		r := &s.replicas[e.replica]
		switch {
		case r.server >= 0: // 2
			s.leave(r, e.minute)
			e.minute = r.next(e.minute)
		case s.arrive(r, e.minute):
			e.minute = r.until(e.minute)
		default: // there was no room
			e.minute = r.next(e.minute + 60)
		}
		e.leaves = r.server >= 0
		heap.Fix(&s.events, 0)
	}
	for i := range s.replicas {
		if r := &s.replicas[i]; r.server >= 0 {
			s.leave(r, int32(s.p.Minutes))
		}
	}
}

// next is the first minute from t on in which the replica should be present.
func (r *replica) next(t int32) int32 {
	if r.hours == 0 {
		return t
	}
	since := (t%(24*60) - r.from + 24*60) % (24 * 60)
	if since < r.hours {
		return t
	}
	return t + 24*60 - since
}

// until is when it leaves after arriving at t.
func (r *replica) until(t int32) int32 {
	end := r.leaves
	if r.hours > 0 {
		since := (t%(24*60) - r.from + 24*60) % (24 * 60)
		end = min(end, t+r.hours-since)
	}
	return end
}

// arrive finds a place; false if no server has room.
func (s *scheduler) arrive(r *replica, t int32) bool {
	v := &s.p.Services[r.service]
	life := math.Ceil(float64(float64(v.Life/time.Minute) * r.random.Exponential()))
	r.leaves = t + int32(min(max(life, shortestLife), MostMinutes))
	r.server = s.choose(r, v) // 3
	if r.server < 0 {
		s.p.Unplaced++
		return false
	}
	r.since = t
	x := &s.servers[r.server]
	x.cpu, x.memory, x.has = x.cpu+v.CPU, x.memory+v.Memory, append(x.has, r.service)
	return true
}

func (s *scheduler) leave(r *replica, t int32) {
	v, x := &s.p.Services[r.service], &s.servers[r.server]
	x.cpu, x.memory = x.cpu-v.CPU, x.memory-v.Memory // requests are eighths: exact
	i := slices.Index(x.has, r.service)
	x.has = slices.Delete(x.has, i, i+1)
	s.p.Stays = append(s.p.Stays, Stay{Service: r.service, Replica: r.number, Life: r.life, Server: r.server, From: r.since, To: t})
	r.server, r.life = -1, r.life+1
}

// choose returns the best of some servers with room, -1 if there is none.
func (s *scheduler) choose(r *replica, v *Service) int32 {
	best, found := int32(-1), 0
	var least float64
	for range tries {
		at := int32(r.random.Below(len(s.servers)))
		if score, fits := s.score(at, r.service, v); fits {
			if best < 0 || score < least || score == least && at < best {
				best, least = at, score
			}
			if found++; found == candidates {
				return best
			}
		}
	}
	if best >= 0 {
		return best
	}
	from := r.random.Below(len(s.servers))
	for i := range s.servers {
		at := int32((from + i) % len(s.servers))
		if _, fits := s.score(at, r.service, v); fits {
			return at
		}
	}
	return -1
}

// score is lower for a better server; false if it has no room.
//
// - spreading: how full its fuller resource would be
// - best fit: how much fuller one resource is than the other, as a rest of only one is of
// no use
// - replicas of one service are kept apart, as they should not fail together
func (s *scheduler) score(at, service int32, v *Service) (float64, bool) {
	x, h := &s.servers[at], s.p.Host
	cpu := (x.cpu + v.CPU) / h.CPUs
	memory := float64(x.memory+v.Memory) / (memoryLimit * h.Memory)
	if cpu > 1 || memory > 1 {
		return 0, false
	}
	sisters := 0
	for _, o := range x.has {
		if o == service {
			sisters++
		}
	}
	return max(cpu, memory) + float64(0.5*math.Abs(cpu-memory)) + float64(sisters), true
}

// event is the time of something that happens to a replica. Within a minute, replicas that
// leave come first, as they make room.
type event struct {
	minute  int32
	leaves  bool
	order   uint64 // arbitrary, but always the same
	replica int32
}

type events []event

func (e events) Len() int      { return len(e) }
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e events) Less(i, j int) bool {
	a, b := &e[i], &e[j]
	if a.minute == b.minute && a.leaves != b.leaves {
		return a.leaves
	}
	return cmp.Or(cmp.Compare(a.minute, b.minute), cmp.Compare(a.order, b.order), cmp.Compare(a.replica, b.replica)) < 0
}
func (e *events) Push(x any) { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	old := *e
	last := old[len(old)-1]
	*e = old[:len(old)-1]
	return last
}
