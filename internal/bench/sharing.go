// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"errors"
	"fmt"
	"math"

	"homenode/internal/kernel/membench"
	"homenode/internal/profile"
	"homenode/internal/unit"
)

const (
	// fillLLC is the share of the last-level cache for each of two working sets: one
	// fits, two do not. More would not fit a cache whose pages are unevenly spread over
	// its sets; with less, two might still fit.
	fillLLC = 0.7
	// Where the latency with both running lies between alone and memory: above the
	// first they share the cache, below the second they do not.
	sharedAbove   = 0.25
	unsharedBelow = 0.10
)

var (
	errNoLLC  = errors.New("the size of the last-level cache is not known: measure caches, too")
	errNoDRAM = errors.New("the latency of memory is not known: measure caches or latency, too")
)

func sharingKey(t profile.SharingTest) [2]int { return t.CPUs }

// planSharing: a CPU chases over most of a last-level cache, alone and while
// another CPU does the same.
func planSharing(b *bench) plan {
	o := offers{part: profile.CacheSharing}
	ws, err := b.sharingSize()
	if err != nil {
		o.skip("", err)
		return o.plan
	}
	dram, _ := b.dram()
	all := b.couples(1)
	got := figuresOf(&b.profile.CacheSharing, sharingKey, cpusOfCouples(all))
	for _, c := range all {
		o.offer(fmt.Sprintf("CPU %d and CPU %d", c.cpus[0], c.cpus[1]), got.has(c.cpus), func() (piece, error) {
			alone, together, err := b.sharingJobs(c, ws)
			return piece{jobs: jobs(alone, together), read: readSharing, keep: func(v [][]float64) {
				t := profile.SharingTest{
					CPUs: c.cpus, Level: c.level, Distance: c.distance,
					Alone: timed(v[0], v[1]), Together: timed(v[2], v[3]),
				}
				t.Shared = verdict(t.Alone, t.Together, dram)
				got.put(t)
			}}, err
		})
	}
	return o.done()
}

func readSharing(out outcome) ([]float64, error) {
	alone, err1 := latencyOf(out.jobs[0].Threads[0])
	together, err2 := latencyOf(out.jobs[1].Threads[0])
	return append(alone, together...), errors.Join(err1, err2)
}

// sharingSize is the working set of each of the two. An estimate of the plan needs no
// latency of memory; a measurement does.
func (b *bench) sharingSize() (unit.Bytes, error) {
	_, measured := b.profile.LLC()
	if b.parts[0] == profile.CacheSharing {
		if !measured && (b.guest || b.firmwareLLC() == 0) {
			return 0, errNoLLC
		}
		if _, ok := b.dram(); !ok {
			return 0, errNoDRAM
		}
	}
	size := b.firmwareLLC()
	if measured || size == 0 {
		size = b.llc()
		if m, ok := b.profile.LLC(); ok {
			size = m // not the larger of the two: it has to fit
		}
	}
	return max(pageSize, unit.Bytes(math.Round(fillLLC*float64(size)))/pageSize*pageSize), nil
}

func (b *bench) sharingJobs(c couple, ws unit.Bytes) (alone, together membench.Job, err error) {
	first, err := b.roomNear(c.cpus[0], ws)
	if err != nil {
		return alone, together, err
	}
	second, err := b.roomNear(c.cpus[1], ws)
	if err != nil {
		return alone, together, err
	}
	alone = b.chase(c.cpus[0], first, ws)
	together = b.chase(c.cpus[0], first, ws)
	together.Buffers = append(together.Buffers, b.bound(second, c.cpus[1], ws))
	together.Threads = append(together.Threads, membench.Thread{CPU: c.cpus[1], Work: membench.Chase, Buffer: 1})
	return alone, together, nil
}

func verdict(alone, together profile.Figure, dram float64) unit.Opt[bool] {
	a, ok1 := alone.Median.Get()
	t, ok2 := together.Median.Get()
	if !ok1 || !ok2 || dram <= a {
		return unit.None[bool]()
	}
	switch way := (t - a) / (dram - a); {
	case way > sharedAbove:
		return unit.Some(true)
	case way < unsharedBelow:
		return unit.Some(false)
	}
	return unit.None[bool]()
}
