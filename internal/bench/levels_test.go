// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"homenode/internal/profile"
	"homenode/internal/unit"
)

// simCache is a set-associative cache; ages grow with use (LRU) or with filling
// (FIFO).
type simCache struct {
	bytes   unit.Bytes
	ways    int
	cycles  float64
	fifo    bool
	virtual bool // indexed by virtual address
	tags    []uint64
	ages    []uint64
	clock   uint64
}

func (c *simCache) reset() {
	n := int(c.bytes / line)
	c.tags, c.ages, c.clock = make([]uint64, n), make([]uint64, n), 0
}

// hit looks up a line, and fills it in when it is missing.
func (c *simCache) hit(lineNo uint64) bool {
	sets := uint64(len(c.tags) / c.ways)
	at := int(lineNo%sets) * c.ways
	c.clock++
	oldest := at
	for i := at; i < at+c.ways; i++ {
		if c.tags[i] == lineNo+1 {
			if !c.fifo {
				c.ages[i] = c.clock
			}
			return true
		}
		if c.ages[i] < c.ages[oldest] {
			oldest = i
		}
	}
	c.tags[oldest], c.ages[oldest] = lineNo+1, c.clock
	return false
}

// simMachine is some caches in front of memory, and the costs of memory and TLB.
type simMachine struct {
	name   string
	caches []*simCache
	memory float64
	noise  float64    // relative, standard deviation
	huge   bool       // memory is contiguous
	tlb    unit.Bytes // reach; beyond it walk is added, growing over two octaves; 0 = none
	walk   float64
}

// latency is that of a chase over a working set, in the second lap of a random cycle.
func (m simMachine) latency(ws unit.Bytes, rng *rand.Rand) float64 {
	lines := int(ws / line)
	pages := make([]uint64, int(ws/pageSize))
	for i := range pages {
		pages[i] = uint64(i)
		if !m.huge {
			pages[i] = rng.Uint64N(1 << 24)
		}
	}
	order := rng.Perm(lines)
	for _, c := range m.caches {
		c.reset()
	}
	sum := 0.0
	for range 2 {
		sum = 0
		for _, v := range order {
			physical := pages[v/64]*64 + uint64(v%64)
			sum += m.access(uint64(v), physical)
		}
	}
	ns := sum / float64(lines)
	if m.tlb > 0 && ws > m.tlb {
		ns += m.walk * min(1, math.Log2(float64(ws)/float64(m.tlb))/2)
	}
	return ns * (1 + m.noise*rng.NormFloat64())
}

func (m simMachine) access(virtual, physical uint64) float64 {
	cost := m.memory
	for _, c := range m.caches { // all are looked up and filled down to the one that hits
		at := physical
		if c.virtual {
			at = virtual
		}
		if c.hit(at) {
			cost = c.cycles
			break
		}
	}
	return cost
}

// scan does what planCaches does.
func (m simMachine) scan(most unit.Bytes, rng *rand.Rand) []profile.SizeFigure {
	steps := halfOctaves(most)
	last := len(steps) - 1
	reference := profile.SizeFigure{Bytes: most, Figure: profile.FigureOf([]float64{m.latency(most, rng)})}
	var sets []profile.SizeFigure
	for _, ws := range steps[:last] {
		draws := scanDraws
		if m.huge || ws > drawsBelow {
			draws = 1
		}
		mean := 0.0
		for range draws {
			mean += m.latency(ws, rng) / float64(draws)
		}
		sets = append(sets, profile.SizeFigure{Bytes: ws, Figure: profile.FigureOf([]float64{mean})})
		if len(sets)%scanBlock == 0 && scanned(append(slices.Clone(sets), reference), 0) {
			break
		}
	}
	return append(sets, reference)
}

// stepsApart is how many half octaves lie between two sizes.
func stepsApart(a, b unit.Bytes) float64 {
	return math.Abs(2 * math.Log2(float64(a)/float64(b)))
}

func (m simMachine) check(t *testing.T, seed uint64, most unit.Bytes) {
	t.Helper()
	sets := m.scan(most, rand.New(rand.NewPCG(seed, 1)))
	found := findLevels(sets)
	wrong := len(found) != len(m.caches)
	text := ""
	for i, l := range found {
		text += fmt.Sprintf(" %v (%.1f)", sets[l.last].Bytes, sets[l.middle].Median.Or(0))
		if i < len(m.caches) {
			c := m.caches[i]
			wrong = wrong || stepsApart(sets[l.last].Bytes, c.bytes) > 1.2 // pages are whole
			ns := sets[l.middle].Median.Or(0)
			wrong = wrong || ns < 0.85*c.cycles || ns > 1.5*c.cycles
		}
	}
	if wrong {
		t.Errorf("%s, seed %d: found%s", m.name, seed, text)
		for _, s := range sets {
			t.Logf("  %8v %.1f", s.Bytes, s.Median.Or(0))
		}
	}
}

func labCaches() []*simCache {
	return []*simCache{
		{bytes: 8 * unit.KiB, ways: 1, cycles: 1.5, fifo: true, virtual: true},
		{bytes: 64 * unit.KiB, ways: 4, cycles: 13, fifo: true},
		{bytes: 512 * unit.KiB, ways: 16, cycles: 41, fifo: true},
	}
}

// Sizes are found within a step of the scan, for any seed of pages, cycle and noise:
// machines with two, three and four levels.
func TestLevelsAreRecovered(t *testing.T) {
	kinds := []simMachine{
		{name: "lab, small pages", caches: labCaches(), memory: 217},
		{name: "lab, huge pages", caches: labCaches(), memory: 217, huge: true},
		{name: "lab, noisy", caches: labCaches(), memory: 217, noise: 0.04},
		{name: "two levels", memory: 110, noise: 0.02, caches: []*simCache{
			{bytes: 32 * unit.KiB, ways: 8, cycles: 4, virtual: true}, {bytes: unit.MiB, ways: 16, cycles: 18}}},
		{name: "three levels, page walks", memory: 250, noise: 0.02, tlb: 256 * unit.KiB, walk: 10, caches: []*simCache{
			{bytes: 32 * unit.KiB, ways: 8, cycles: 4, virtual: true}, {bytes: 256 * unit.KiB, ways: 8, cycles: 14}, {bytes: 2 * unit.MiB, ways: 16, cycles: 50}}},
		{name: "four levels", memory: 400, noise: 0.02, huge: true, caches: []*simCache{
			{bytes: 16 * unit.KiB, ways: 8, cycles: 4, virtual: true}, {bytes: 128 * unit.KiB, ways: 8, cycles: 13},
			{bytes: 512 * unit.KiB, ways: 8, cycles: 45}, {bytes: 2 * unit.MiB, ways: 16, cycles: 130}}},
	}
	machines := 0
	for seed := range uint64(9) {
		for _, m := range kinds {
			m.check(t, seed, 4*m.caches[len(m.caches)-1].bytes)
			machines++
		}
	}
	if machines < 50 {
		t.Errorf("%d machines were tried", machines)
	}
}

// Skylake-SP: the firmware's size is 22 MiB, eleven ways of 2 MiB.
func TestLevelsOfALargeCache(t *testing.T) {
	m := simMachine{name: "Skylake-SP", memory: 250, noise: 0.01, tlb: 6 * unit.MiB, walk: 20, caches: []*simCache{
		{bytes: 32 * unit.KiB, ways: 8, cycles: 4, virtual: true}, {bytes: unit.MiB, ways: 16, cycles: 14}, {bytes: 22 * unit.MiB, ways: 11, cycles: 50}}}
	m.check(t, 1, 96*unit.MiB)
}

func TestLevelsOfNothing(t *testing.T) {
	if l := findLevels(nil); len(l) != 0 {
		t.Errorf("%v", l)
	}
	flat := []profile.SizeFigure{{Bytes: 4096, Figure: profile.FigureOf([]float64{90})}, {Bytes: 8192, Figure: profile.FigureOf([]float64{91})}}
	if l := findLevels(flat); len(l) != 0 {
		t.Errorf("%v", l)
	}
}

// The partition is the best one, compared with all others.
func TestPartitionAgainstBruteForce(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		ns := make([]float64, 1+rng.IntN(9))
		for i := range ns {
			ns[i] = math.Exp(rng.Float64() * 5)
		}
		best := math.Inf(1)
		for mask := range 1 << (len(ns) - 1) {
			starts := []int{0}
			for i := range len(ns) - 1 {
				if mask&(1<<i) != 0 {
					starts = append(starts, i+1)
				}
			}
			best = min(best, partitionCost(ns, starts))
		}
		if got := partitionCost(ns, partition(ns)); got > best+1e-9 {
			t.Fatalf("%v: cost %g, best %g", ns, got, best)
		}
	}
}

func partitionCost(ns []float64, starts []int) float64 {
	cost := 0.0
	for i, from := range starts {
		to := len(ns)
		if i+1 < len(starts) {
			to = starts[i+1]
		}
		mean := 0.0
		for _, v := range ns[from:to] {
			mean += math.Log(v) / float64(to-from)
		}
		cost += plateauCost
		for _, v := range ns[from:to] {
			cost += (math.Log(v) - mean) * (math.Log(v) - mean)
		}
	}
	return cost
}
