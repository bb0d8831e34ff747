// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"math"
	"time"

	"homenode/internal/machine"
	"homenode/internal/sim"
	"homenode/internal/sim/detmath"
	"homenode/internal/sim/memsys"
	"homenode/internal/unit"
)

// GeneratorVersion is the version of everything that a seed decides: services, replicas,
// where and when they are. Any change of its bytes is a new version.
const GeneratorVersion = 1

// Host is what the generator knows about a server: its sizes, nothing about its nodes.
type Host struct {
	CPUs   float64 `json:"cpus"`
	Memory float64 `json:"memory_bytes"`
	Hz     float64 `json:"hz"` // core cycles a second
}

// HostOf is the host of a machine.
func HostOf(m machine.Machine, sys memsys.System) Host {
	h := Host{Hz: sys.Hz}
	for _, n := range m.Nodes {
		h.CPUs += float64(n.CPUs.Len())
		h.Memory += float64(n.Memory.Or(0))
	}
	return h
}

// Service is an entry of the catalogue: what all of its replicas have in common.
type Service struct {
	Name     string     `json:"name"`
	Kind     string     `json:"kind"`
	Replicas int        `json:"replicas"`
	CPU      float64    `json:"cpu_request"`    // CPUs that the scheduler reserves for a replica
	Memory   unit.Bytes `json:"memory_request"` // bytes, likewise
	// Life is how long a replica stays on a server, on average. Then it is rolled out anew,
	// or its server is drained.
	Life time.Duration `json:"life_ns"`
	// Elastic is the share of its replicas that are present only around the peak of its
	// day, for elasticHours.
	Elastic float64  `json:"elastic"`
	Spec    sim.Spec `json:"spec"` // spec of a replica of middle size
}

// span is a range to draw from.
type span struct{ low, high float64 }

// between draws uniformly.
func (s span) between(r *detmath.Random) float64 { return s.low + float64((s.high-s.low)*r.Float()) }

// scale draws uniformly in the logarithm: for sizes, of which few are large.
func (s span) scale(r *detmath.Random) float64 {
	return float64(s.low * detmath.Pow(s.high/s.low, r.Float()))
}

// kind is a sort of service. Spans of sizes are drawn by scale, spans of shares uniformly.
type kind struct {
	name   string
	weight float64 // share of the services
	why    string  // these figures
	cpu    span    // request, relative to the fleet's mean request
	// Of a replica, in MiB.
	anon, files, cache span
	private            span // share of anonymous memory that single threads own
	cacheGrowth        span // MiB per hour
	// stall is the share of its cycles in which it waits for DRAM at 90 ns with nothing
	// else running; parallel is how many of its misses are outstanding at once.
	stall, parallel span
	stream          bool
	hot             span // KiB per thread, accessed most: what caches may hold
	ipc             span // without waits for memory
	request         span // milliseconds of CPU time
	load            span // CPU use at the peak / request
	low             span // load at the bottom of the day / at the peak
	spread          span // squared coefficient of variation of a request's work
}

// kinds. MAO names predictors, routers and feature services (papers.md §1) with what
// binding saved them: 10–12 %, 3 %, 24 % of CPU. Remote memory of a key workload is 51 MB
// to 6 GB there, 2.5 GB on average, at a local ratio of 58 %: so 0.1 to 14 GB in total. The
// other kinds fill up a typical server: search, caches, web, streams, storage. Stall shares
// are those of published top-down profiles of warehouse computers (Kanev et al., ISCA 2015:
// half of all cycles wait for the back end, DRAM being most of that in few of them).
var kinds = []kind{
	{
		name: "predictor", weight: 0.20, why: "inference: rows of large tables that all threads share, a few reads at once",
		cpu: span{0.8, 3}, anon: span{2048, 14336}, files: span{16, 512}, cache: span{64, 1024}, private: span{0.05, 0.35}, cacheGrowth: span{1, 64},
		stall: span{0.20, 0.42}, parallel: span{2, 5}, hot: span{128, 768}, ipc: span{1.2, 2.2}, request: span{2, 20},
		load: span{0.35, 0.7}, low: span{0.25, 0.5}, spread: span{0.5, 2},
	},
	{
		name: "feature", weight: 0.12, why: "look-ups by key: chains of dependent reads; what gained most there",
		cpu: span{0.6, 2}, anon: span{3072, 14336}, files: span{16, 256}, cache: span{64, 1024}, private: span{0.2, 0.7}, cacheGrowth: span{1, 64},
		stall: span{0.35, 0.60}, parallel: span{1.1, 2.5}, hot: span{64, 384}, ipc: span{0.9, 1.6}, request: span{0.3, 4},
		load: span{0.35, 0.7}, low: span{0.25, 0.5}, spread: span{0.5, 2},
	},
	{
		name: "router", weight: 0.14, why: "passes requests on: little memory, caches hold most; what gained least there",
		cpu: span{0.4, 1.5}, anon: span{96, 1024}, files: span{16, 128}, cache: span{32, 512}, private: span{0.4, 0.9}, cacheGrowth: span{1, 32},
		stall: span{0.02, 0.12}, parallel: span{1.5, 3}, hot: span{64, 512}, ipc: span{0.9, 1.6}, request: span{0.1, 1},
		load: span{0.35, 0.7}, low: span{0.25, 0.5}, spread: span{0.5, 1.5},
	},
	{
		name: "search", weight: 0.15, why: "an index in mapped files beside its own structures: posting lists, then random reads",
		cpu: span{0.8, 3}, anon: span{1024, 6144}, files: span{1024, 6144}, cache: span{256, 4096}, private: span{0.2, 0.6}, cacheGrowth: span{8, 256},
		stall: span{0.12, 0.38}, parallel: span{2, 6}, hot: span{128, 1024}, ipc: span{1.0, 2.0}, request: span{4, 40},
		load: span{0.35, 0.7}, low: span{0.2, 0.45}, spread: span{0.8, 4},
	},
	{
		name: "cache", weight: 0.10, why: "a store of values in memory, its threads each with a shard",
		cpu: span{0.4, 1.2}, anon: span{4096, 12288}, files: span{8, 64}, cache: span{16, 256}, private: span{0.6, 0.95}, cacheGrowth: span{1, 16},
		stall: span{0.25, 0.50}, parallel: span{1.2, 2.2}, hot: span{64, 256}, ipc: span{0.9, 1.5}, request: span{0.05, 0.5},
		load: span{0.3, 0.65}, low: span{0.3, 0.6}, spread: span{0.3, 1},
	},
	{
		name: "web", weight: 0.16, why: "renders pages: instructions more than data",
		cpu: span{0.5, 2}, anon: span{256, 2048}, files: span{64, 512}, cache: span{64, 1024}, private: span{0.5, 0.95}, cacheGrowth: span{1, 64},
		stall: span{0.03, 0.20}, parallel: span{1.5, 4}, hot: span{128, 768}, ipc: span{0.8, 1.6}, request: span{3, 30},
		load: span{0.35, 0.65}, low: span{0.2, 0.45}, spread: span{0.8, 3},
	},
	{
		name: "stream", weight: 0.08, why: "reads logs and joins them: end to end, many reads at once, day and night",
		cpu: span{0.5, 2}, anon: span{512, 3072}, files: span{16, 128}, cache: span{2048, 10240}, private: span{0.7, 1}, cacheGrowth: span{128, 1024},
		stall: span{0.15, 0.40}, parallel: span{6, 12}, stream: true, hot: span{64, 512}, ipc: span{1.2, 2.4}, request: span{10, 100},
		load: span{0.45, 0.7}, low: span{0.6, 1}, spread: span{0.3, 1},
	},
	{
		name: "storage", weight: 0.05, why: "serves files: unmapped page cache is most of what it holds",
		cpu: span{0.4, 1.2}, anon: span{256, 1024}, files: span{16, 128}, cache: span{4096, 14336}, private: span{0.3, 0.8}, cacheGrowth: span{128, 1024},
		stall: span{0.08, 0.25}, parallel: span{3, 8}, hot: span{64, 512}, ipc: span{0.7, 1.4}, request: span{0.5, 5},
		load: span{0.3, 0.65}, low: span{0.4, 0.8}, spread: span{0.8, 4},
	},
}

const (
	// Stalls are given for this idle latency, that of the machines of latency.md.
	referenceSeconds = 90e-9
	// The most of a server that all requests together may take. The rest lets the scheduler
	// find a place, and is what real fleets leave free.
	cpuFill, memoryFill = 0.80, 0.70
	largestShare        = 0.25 // share of a server, for one replica
	smallestCPU         = 0.25 // CPUs per request
	elasticHours        = 10
	mib                 = float64(1 << 20)
)

// Services is how many services a fleet of this many servers has: one per ten servers, so
// that a service has 200 replicas where a server has 20.
func Services(servers int) int { return min(max(servers/10, 20), 400) }

// catalogue draws the services of a fleet whose servers hold this many workloads on
// average.
//
//  1. Each service is drawn by itself; the n-th largest has 1/n^0.7 of the largest's
//     replicas, a usual distribution of sizes.
//  2. CPU requests are scaled so that the fleet's servers are cpuFill full; memory
//     requests likewise, but never above what was drawn.
//  3. Then what depends on the size of the request: threads, limit, rate.
func catalogue(seed uint64, h Host, servers, workloads int) []Service {
	all := make([]Service, Services(servers))
	drawn := make([]draw, len(all))
	for i := range all { // 1
		drawn[i] = drawService(detmath.NewRandom(seed, "fleet", "service", fmt.Sprint(i)), i)
		all[i] = drawn[i].Service
	}
	replicate(all, float64(servers)*float64(workloads))
	cpu, memory := meanRequests(all)
	each := float64(max(workloads, 1))
	grow := cpuFill * h.CPUs / each / cpu // 2
	shrink := min(1, memoryFill*h.Memory/each/memory)
	for i := range all {
		all[i].size(h, drawn[i], grow, shrink) // 3
	}
	return all
}

// draw is a service before its size is known.
type draw struct {
	Service
	kind                 kind
	stall, parallel, hot float64
	hotAccesses, load    float64
	private              float64
	threads, limit       float64
	milliseconds         float64
}

func drawService(r detmath.Random, i int) draw {
	k := pickKind(&r)
	d := draw{kind: k, Service: Service{Name: fmt.Sprintf("%s-%03d", k.name, i), Kind: k.name}}
	d.CPU = k.cpu.scale(&r)
	d.Life = time.Duration(span{1, 14}.scale(&r)*24*60) * time.Minute
	if r.Float() < 0.3 {
		d.Elastic = span{0.1, 0.4}.between(&r)
	}
	s := &d.Spec
	s.Service, s.Replicas, s.Approved = d.Name, 1, true
	d.private = k.private.between(&r)
	d.memory(s, &r)
	d.stall, d.parallel = k.stall.between(&r), k.parallel.scale(&r)
	d.hot, d.hotAccesses = k.hot.scale(&r), span{0.0005, 0.002}.scale(&r)
	d.milliseconds = k.request.scale(&r)
	s.Work.Instructions = k.ipc.between(&r)
	d.load = k.load.between(&r)
	d.threads, d.limit = span{1.5, 6}.scale(&r), span{1.25, 2.5}.between(&r)
	if r.Float() < 0.2 {
		d.limit = 0
	}
	s.Demand = sim.DemandSpec{
		Low: k.low.between(&r), Peak: peakHour(&r), Noise: span{0.03, 0.15}.between(&r),
		Spread: k.spread.scale(&r), Bursts: span{1, 3}.between(&r), Wakes: -1,
	}
	return d
}

func pickKind(r *detmath.Random) kind {
	at := r.Float()
	for _, k := range kinds[:len(kinds)-1] {
		if at -= k.weight; at < 0 {
			return k
		}
	}
	return kinds[len(kinds)-1]
}

// peakHour is in the evening for most, at noon for some, as people read and search then. A
// service that works for other services may have any hour.
func peakHour(r *detmath.Random) time.Duration {
	hour := 20.5 + r.Normal()
	switch at := r.Float(); {
	case at < 0.15:
		hour = 24 * r.Float()
	case at < 0.35:
		hour = 12.5 + r.Normal()
	}
	minutes := int(math.Floor(hour*60)) + 24*60
	return time.Duration(minutes%(24*60)) * time.Minute
}

func (d *draw) memory(s *sim.Spec, r *detmath.Random) {
	k := d.kind
	anon := k.anon.scale(r)
	s.Memory = sim.MemorySpec{
		Private: mebibytes(anon * d.private), Shared: mebibytes(anon * (1 - d.private)),
		Files: mebibytes(k.files.scale(r)), Cache: mebibytes(k.cache.scale(r)),
		Churn: span{0.02, 1}.scale(r), CacheGrowth: mebibytes(k.cacheGrowth.scale(r)), Toucher: "workers",
	}
	if r.Float() < 0.4 { // loads its tables in one thread
		s.Memory.Toucher = "main"
	}
}

func mebibytes(n float64) unit.Bytes { return unit.Bytes(math.Round(n)) * unit.MiB }

// replicate gives each service its replicas: total replicas of all services are present at
// a time, on average.
func replicate(all []Service, total float64) {
	weights := make([]float64, len(all))
	var sum float64
	for i := range all {
		weights[i] = detmath.Pow(float64(i+1), -0.7)
		sum += float64(weights[i] * presence(all[i]))
	}
	for i := range all {
		all[i].Replicas = max(1, int(math.Round(total*weights[i]/sum)))
	}
}

// presence is the share of its time in which a replica is present, on average.
func presence(s Service) float64 { return 1 - float64(s.Elastic*(24-elasticHours)/24) }

func meanRequests(all []Service) (cpu, memory float64) {
	var n float64
	for _, s := range all {
		w := float64(float64(s.Replicas) * presence(s))
		n += w
		cpu += float64(w * s.CPU)
		memory += float64(w * float64(held(s.Spec.Memory)))
	}
	return cpu / n, memory / n
}

// held is what the scheduler reserves. Unmapped page cache counts half, as the kernel takes
// it back.
func held(m sim.MemorySpec) unit.Bytes { return m.Private + m.Shared + m.Files + m.Cache/2 }

// size sets what depends on a replica's size on this host.
func (s *Service) size(h Host, d draw, grow, shrink float64) {
	s.CPU = min(max(math.Round(s.CPU*grow*8)/8, smallestCPU), math.Max(largestShare*h.CPUs, smallestCPU))
	m := &s.Spec.Memory
	shrink = min(shrink, largestShare*h.Memory/float64(held(*m)))
	for _, b := range []*unit.Bytes{&m.Private, &m.Shared, &m.Files, &m.Cache, &m.CacheGrowth} {
		*b = scaled(*b, shrink)
	}
	s.Memory = held(*m)
	s.Spec.Threads = int(min(max(math.Round(s.CPU*d.threads), 2), 128))
	if d.limit > 0 {
		s.Spec.CPULimit = math.Round(s.CPU*d.limit*8) / 8
	}
	s.work(h, d)
}

func scaled(b unit.Bytes, by float64) unit.Bytes { return unit.Bytes(math.Floor(float64(b) * by)) }

// work turns shares into counts.
//
//  1. A request is its CPU time at the reference latency, all memory local.
//  2. The stall share of it waits for DRAM: stall cycles × parallelism / latency reads.
//  3. Reads go to tables that all threads share and to what each thread has, by the share
//     of accesses; the hot part takes the rest.
func (s *Service) work(h Host, d draw) {
	all := d.milliseconds / 1000 * h.Hz // 1
	cycles := all * (1 - d.stall)
	reads := all * d.stall * d.parallel / (referenceSeconds * h.Hz) // 2
	w := &s.Spec.Work
	w.Cycles, w.Instructions = math.Round(cycles), math.Round(cycles*w.Instructions)
	m := &s.Spec.Memory
	m.PrivateAccesses = &d.private // 3
	own := m.Private / unit.Bytes(s.Spec.Threads)
	hot := min(unit.Bytes(math.Round(d.hot))*unit.KiB, own/2)
	for _, g := range []sim.RegionSpec{
		{Size: hot, Accesses: cycles * d.hotAccesses, Parallelism: 3, Writes: 0.2},
		{Size: m.Shared + m.Files, Shared: true, Accesses: reads * (1 - d.private), Parallelism: d.parallel, Stream: d.kind.stream, Writes: 0.1},
		{Size: own - hot, Accesses: reads * d.private, Parallelism: d.parallel, Stream: d.kind.stream, Writes: 0.25},
	} {
		if g.Accesses = math.Round(g.Accesses); g.Accesses > 0 && g.Size > 0 {
			w.Regions = append(w.Regions, g)
		}
	}
	s.Spec.Demand.Rate = d.load * s.CPU * h.Hz / all
	s.Spec.Demand.Queue = 64 * s.Spec.Threads
}
