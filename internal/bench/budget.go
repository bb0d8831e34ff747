// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"homenode/internal/kernel/membench"
	"homenode/internal/profile"
	"homenode/internal/unit"
)

// budgetOf begins the reason for what was skipped for lack of time.
const budgetOf = "budget of "

// size is what the duration of a job depends on.
type size struct {
	nominal time.Duration // warm-up and measured stretch
	bytes   float64       // that are set up; for a chase chaseWeight times as many
}

// chaseWeight is how much more it costs to set up a random cycle than to touch memory
// in order: a random access per line, against a fraction of one.
const chaseWeight = 4

// moveWeight: pages are touched, and then moved.
const moveWeight = 2

// made are the buffers that were set up: a prober keeps them for the next similar job,
// as far as it has room. One that it did not keep makes jobs look slower than they are,
// never faster.
type made map[madeBuffer]bool

type madeBuffer struct {
	membench.Buffer
	ordinal int  // among the equal ones of one job
	cycle   bool // has the chase's cycle
}

// addJob is the size of a job, with the buffers that are new.
func (m made) addJob(j membench.Job) size {
	s := size{nominal: j.Length + j.Warm}
	alike := map[membench.Buffer]int{}
	set := func(k madeBuffer, weight float64) {
		if !m[k] {
			s.bytes += weight * float64(k.Bytes)
			m[k] = true
		}
	}
	for i, b := range j.Buffers {
		if b.Policy != membench.Local {
			b.TouchCPU = 0 // it has no effect
		}
		k := madeBuffer{Buffer: b, ordinal: alike[b]}
		alike[b]++
		set(k, 1)
		if slices.ContainsFunc(j.Threads, func(t membench.Thread) bool { return t.Buffer == i && t.Work == membench.Chase }) {
			k.cycle = true
			set(k, chaseWeight-1)
		}
	}
	return s
}

// jobSize is the size of a job, with the buffers that are new, and its laps.
func (b *bench) jobSize(m made, j membench.Job) size {
	s := m.addJob(j)
	s.nominal += b.lapsOf(j)
	return s
}

// lapsOf estimates the time of the laps before a measurement: a load misses as often as
// the set is larger than the cache.
func (b *bench) lapsOf(j membench.Job) time.Duration {
	most := time.Duration(0)
	for _, t := range j.Threads {
		if t.Work == membench.Chase {
			ws := j.Buffers[t.Buffer].Bytes
			misses := min(1, float64(ws)/float64(b.llc()))
			most = max(most, time.Duration(misses*float64(j.Laps)*float64(b.lap(ws))))
		}
	}
	return most
}

func moveSize(m membench.Move) size { return size{bytes: moveWeight * float64(m.Bytes)} }

// costs learns how long jobs take beyond their nominal time: a line with a cost per job
// and a cost per byte, fitted by least squares over all jobs so far. It starts with two
// invented jobs, which real ones soon outweigh.
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
		c.addPoint(bytes, guessedJob+guessedByte*bytes)
	}
	return c
}

func (c *costs) addPoint(x, y float64) {
	c.n, c.x, c.xx, c.y, c.xy = c.n+1, c.x+x, c.xx+x*x, c.y+y, c.xy+x*y
}

func (c *costs) learn(s size, took time.Duration) {
	c.addPoint(s.bytes, max(0, (took-s.nominal).Seconds()))
}

// of is the expected time of a job of that size.
func (c costs) of(s size) time.Duration {
	perByte := 0.0
	if d := c.n*c.xx - c.x*c.x; d > 0 {
		perByte = max(0, (c.n*c.xy-c.x*c.y)/d)
	}
	perJob := max(0, (c.y-perByte*c.x)/c.n)
	return s.nominal + time.Duration((perJob+perByte*s.bytes)*float64(time.Second))
}

// estimate is the expected time of plans. A scan that may stop early counts in full; a
// buffer is set up once, for any number of repeats and pieces.
func (b *bench) estimate(repeats int, plans ...plan) time.Duration {
	var sum time.Duration
	kept := maps.Clone(b.made)
	for _, pl := range plans {
		for _, block := range pl.blocks {
			for _, p := range block {
				sum += b.pieceCost(p, kept)
				if again := p.runs(repeats) - 1; again > 0 {
					sum += time.Duration(again) * b.pieceCost(p, kept)
				}
			}
		}
	}
	return sum
}

// later are the plans of the parts after the current one, as far as they can be made
// now.
func (b *bench) later() []plan {
	var plans []plan
	for _, part := range b.parts[1:] {
		plans = append(plans, b.plan(part))
	}
	return plans
}

func (b *bench) pieceCost(p piece, kept made) time.Duration {
	var sum time.Duration
	for _, j := range p.jobs {
		sum += b.cost.of(b.jobSize(kept, j))
	}
	if p.move != nil {
		sum += b.cost.of(moveSize(*p.move))
	}
	return sum
}

func (b *bench) overBudget() bool { return b.o.Budget > 0 && b.elapsed() >= b.until }

// afford decides the number of repeats of the current part and its deadline, or why it
// is not measured.
//
//  1. The most repeats with which this part and all that are left fit.
//  2. If there is none: once, if this part alone fits. Later ones may still fit.
//  3. Otherwise once, as far as it gets, with the most telling pieces first. It gets
//     the time that the later parts do not need, and at least as much as each of them.
func (b *bench) afford(current plan, later []plan) (repeats int, why string) {
	if b.o.Budget <= 0 {
		return b.o.Repeats, ""
	}
	left := b.o.Budget - b.elapsed()
	if b.until = b.o.Budget; left <= 0 {
		return 0, b.usedUp()
	}
	for r := b.o.Repeats; r > 0; r-- { // 1
		if b.estimate(r, append(later[:len(later):len(later)], current)...) <= left {
			return r, ""
		}
	}
	if b.estimate(1, current) > left { // 3
		b.until = b.elapsed() + max(left/time.Duration(len(b.parts)), left-b.estimate(1, later...))
	}
	return 1, "" // 2
}

// usedUp is the reason why a part, or its rest, is not measured.
func (b *bench) usedUp() string {
	if b.until < b.o.Budget {
		return fmt.Sprintf(budgetOf+"%v: this part's share of it used up", b.o.Budget)
	}
	return fmt.Sprintf(budgetOf+"%v used up", b.o.Budget)
}

// OutOfTime are the parts of a profile that the budget was too small for.
func OutOfTime(p profile.Profile) []profile.Part {
	var parts []profile.Part
	for _, s := range p.Skipped {
		if strings.HasPrefix(s.Why, budgetOf) && !slices.Contains(parts, s.Part) {
			parts = append(parts, s.Part)
		}
	}
	return parts
}
