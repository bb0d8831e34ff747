// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"homenode/internal/kernel/probe"
	"homenode/internal/profile"
	"homenode/internal/unit"
)

// budgetOf begins the reason of what was skipped for want of time.
const budgetOf = "budget of "

// size is what a job's duration depends on.
type size struct {
	nominal time.Duration // warm-up and measured stretch
	bytes   float64       // that are set up; those of a chase count chaseWeight times
}

// chaseWeight is how much more it costs to set up a random cycle than to touch
// memory in order: a random access a line, against a part of one.
const chaseWeight = 4

// moveWeight: pages are touched, and then moved.
const moveWeight = 2

func (b *bench) jobSize(j probe.Job) size {
	s := size{nominal: j.Length + j.Warm + b.lapsOf(j)}
	for i, buffer := range j.Buffers {
		weight := 1.0
		for _, t := range j.Threads {
			if t.Buffer == i && t.Work == probe.Chase {
				weight = chaseWeight
			}
		}
		s.bytes += weight * float64(buffer.Bytes)
	}
	return s
}

// lapsOf is about what the laps before a measurement take: as often as a set is
// larger than the cache, a load misses.
func (b *bench) lapsOf(j probe.Job) time.Duration {
	most := time.Duration(0)
	for _, t := range j.Threads {
		if t.Work == probe.Chase {
			ws := j.Buffers[t.Buffer].Bytes
			misses := min(1, float64(ws)/float64(b.llc()))
			most = max(most, time.Duration(misses*float64(j.Laps)*float64(b.lap(ws))))
		}
	}
	return most
}

func moveSize(m probe.Move) size { return size{bytes: moveWeight * float64(m.Bytes)} }

// costs learns what jobs take beyond their nominal time: a line, so much a job and
// so much a byte, fitted by least squares over all jobs so far. Before the first it
// holds two made-up ones, which real ones soon outweigh.
type costs struct {
	n, x, xx, y, xy float64 // sums over jobs; x in bytes, y in seconds
}

const (
	guessedJob  = 5e-3    // seconds: threads, mappings, counters
	guessedByte = 0.25e-9 // seconds: 4 GB/s, what one CPU can clear
)

func newCosts() costs {
	var c costs
	for _, bytes := range []float64{float64(4 * unit.KiB), float64(64 * unit.MiB)} {
		c.add(bytes, guessedJob+guessedByte*bytes)
	}
	return c
}

func (c *costs) add(x, y float64) {
	c.n, c.x, c.xx, c.y, c.xy = c.n+1, c.x+x, c.xx+x*x, c.y+y, c.xy+x*y
}

func (c *costs) learn(s size, took time.Duration) {
	c.add(s.bytes, max(0, (took-s.nominal).Seconds()))
}

// of is what a job of that size will take.
func (c costs) of(s size) time.Duration {
	perByte := 0.0
	if d := c.n*c.xx - c.x*c.x; d > 0 {
		perByte = max(0, (c.n*c.xy-c.x*c.y)/d)
	}
	perJob := max(0, (c.y-perByte*c.x)/c.n)
	return s.nominal + time.Duration((perJob+perByte*s.bytes)*float64(time.Second))
}

// estimate is what a plan will take. A scan that may stop early is taken whole.
func (b *bench) estimate(pl plan, repeats int) time.Duration {
	var sum time.Duration
	for _, block := range pl.blocks {
		for _, p := range block {
			sum += time.Duration(p.runs(repeats)) * b.pieceCost(p)
		}
	}
	return sum
}

// estimateAll is of several plans.
func (b *bench) estimateAll(plans []plan, repeats int) time.Duration {
	var sum time.Duration
	for _, pl := range plans {
		sum += b.estimate(pl, repeats)
	}
	return sum
}

// later are the plans of the parts after the current one, as far as they can be
// made by now.
func (b *bench) later() []plan {
	var plans []plan
	for _, part := range b.parts[1:] {
		plans = append(plans, b.plan(part))
	}
	return plans
}

func (b *bench) pieceCost(p piece) time.Duration {
	var sum time.Duration
	for _, j := range p.jobs {
		sum += b.cost.of(b.jobSize(j))
	}
	if p.move != nil {
		sum += b.cost.of(moveSize(*p.move))
	}
	return sum
}

func (b *bench) overBudget() bool { return b.o.Budget > 0 && b.elapsed() >= b.o.Budget }

// afford decides with how many repeats the current part is measured, or why not.
//
//  1. The most repeats with which this part and all that are left fit.
//  2. If none: once, if this part alone does. Later ones may still fit.
//  3. Else not.
func (b *bench) afford(current plan, later []plan) (repeats int, why string) {
	if b.o.Budget <= 0 {
		return b.o.Repeats, ""
	}
	left := b.o.Budget - b.elapsed()
	if left <= 0 {
		return 0, fmt.Sprintf(budgetOf+"%v used up", b.o.Budget)
	}
	for r := b.o.Repeats; r > 0; r-- { // 1
		if b.estimate(current, r)+b.estimateAll(later, r) <= left {
			return r, ""
		}
	}
	need := b.estimate(current, 1)
	if need <= left { // 2
		return 1, ""
	}
	return 0, fmt.Sprintf(budgetOf+"%v used up: %v left, it takes about %v", b.o.Budget, left.Round(time.Second), need.Round(time.Second)) // 3
}

// OutOfTime are the parts of a profile for which the budget was too small.
func OutOfTime(p profile.Profile) []profile.Part {
	var parts []profile.Part
	for _, s := range p.Skipped {
		if strings.HasPrefix(s.Why, budgetOf) && !slices.Contains(parts, s.Part) {
			parts = append(parts, s.Part)
		}
	}
	return parts
}
