// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"math"
	"slices"

	"homenode/internal/kernel/membench"
	"homenode/internal/profile"
	"homenode/internal/unit"
)

const (
	// scanFrom is smaller than every first-level cache.
	scanFrom = 4 * unit.KiB
	// scanLeast and scanLLC: the largest working set has this size, or this many of the
	// firmware's last-level caches. Only a memory-side cache can hold it.
	scanLeast = 64 * unit.MiB
	scanLLC   = 4
	// leastMemory is the least size of the largest working set.
	leastMemory = unit.MiB
	// atMemory is the share of the latency of memory from which a step counts as
	// memory.
	atMemory = 0.95
	// stepsAtMemory ends a scan. Fewer could be a step at which a cache thrashes.
	stepsAtMemory = 3
	// drawsBelow: a working set of small pages up to this size is measured in scanDraws
	// places in each repeat. Which sets of a cache overflow depends on the place of a
	// few pages: of eleven pages in a cache of sixteen, between none and half are in
	// sets that overflow.
	drawsBelow = unit.MiB
	scanDraws  = 8
	// scanBlock is the number of steps between two checks whether to continue.
	scanBlock = 4
)

func sizeKey(f profile.SizeFigure) unit.Bytes { return f.Bytes }

// planCaches: one CPU chases over working sets of local memory.
//
//  1. The largest first, once: the latency of memory. Without it nothing is scanned:
//     the largest step that exists would pass for memory.
//  2. From scanFrom up by half octaves, whole pages.
//  3. Until three steps are as slow as memory, the last of them larger than the
//     firmware's cache size.
//  4. The levels are read from the curve (findLevels).
func planCaches(b *bench) plan {
	rows := b.rows()
	if len(rows) == 0 {
		return plan{}
	}
	cpu, _ := b.cpusOf(rows[0]).First()
	node, ok := b.home(rows[0])
	if !ok {
		return plan{}
	}
	most, err := b.room(node, max(scanLeast, scanLLC*b.firmwareLLC()), leastMemory)
	if err != nil {
		return plan{skipped: []profile.Skipped{{Part: profile.Caches, Why: err.Error()}}}
	}
	if memory, ok := b.memoryStep(); ok { // of a continued profile
		most = memory.Bytes
	}
	steps := halfOctaves(most)
	pl := plan{blocks: make([][]piece, 1+(len(steps)-1+scanBlock-1)/scanBlock)}
	got := figuresOf(&b.profile.WorkingSets, sizeKey, steps)
	for i, ws := range steps {
		if got.has(ws) {
			pl.have++
			continue
		}
		p := piece{
			what: ws.String(), jobs: b.draws(cpu, node, ws), read: readDraws,
			keep: func(v [][]float64) {
				got.put(profile.SizeFigure{Bytes: ws, Figure: timed(v[0], v[1])})
			},
		}
		block := 1 + i/scanBlock                // 2; existing steps leave their blocks empty
		if p.once = i == len(steps)-1; p.once { // 1
			block = 0
		}
		pl.blocks[block] = append(pl.blocks[block], p)
	}
	pl.first = func() bool { _, ok := b.memoryStep(); return ok }
	pl.enough = func(block int) bool { // 3
		return scanned(upTo(b.profile.WorkingSets, steps, block*scanBlock), b.expectedLLC())
	}
	pl.finish = func() { b.profile.Caches = b.cacheSizes(cpu) } // 4
	return pl
}

// memoryStep is the largest working set, if memory's latency can be read from it: it is
// measured first, and others only beside it.
func (b *bench) memoryStep() (profile.SizeFigure, bool) {
	n := len(b.profile.WorkingSets)
	if n == 0 {
		return profile.SizeFigure{}, false
	}
	last := b.profile.WorkingSets[n-1]
	return last, last.Known() && last.Bytes >= leastMemory
}

func (b *bench) draws(cpu, node int, ws unit.Bytes) []membench.Job {
	job := b.chase(cpu, node, ws)
	if !b.small(ws) || ws > drawsBelow {
		return jobs(job)
	}
	var all []membench.Job
	for i := range unit.Bytes(scanDraws) {
		// Each has a size of its own, a line less: a prober may keep buffers, and give
		// the same pages to a similar job.
		all = append(all, b.chase(cpu, node, ws-i*line))
	}
	return all
}

// small says whether a working set gets small pages: one that fills no huge page does
// in any case.
func (b *bench) small(ws unit.Bytes) bool { return !b.huge || ws < hugePage }

// readDraws is the mean of the jobs of one repeat.
func readDraws(out outcome) ([]float64, error) {
	return meanOf(out.jobs, func(r membench.Result) ([]float64, error) { return latencyOf(r.Threads[0]) })
}

// meanOf is the mean of jobs, column by column.
func meanOf(jobs []membench.Result, of func(membench.Result) ([]float64, error)) ([]float64, error) {
	var mean []float64
	for _, r := range jobs {
		v, err := of(r)
		if err != nil {
			return nil, err
		}
		if mean == nil {
			mean = make([]float64, len(v))
		}
		for i := range v {
			mean[i] += v[i] / float64(len(jobs))
		}
	}
	return mean, nil
}

// halfOctaves are 4 KiB, 4 KiB·√2 … most, in whole pages.
func halfOctaves(most unit.Bytes) []unit.Bytes {
	var all []unit.Bytes
	for i := 0; ; i++ {
		size := float64(scanFrom) * math.Pow(2, float64(i)/2)
		ws := unit.Bytes(math.Round(size/float64(pageSize))) * pageSize
		if ws >= most {
			return append(all, most)
		}
		if len(all) == 0 || ws > all[len(all)-1] {
			all = append(all, ws)
		}
	}
}

// upTo are the first n steps, and the largest. In a continued profile there may be
// steps beyond, and gaps between.
func upTo(sets []profile.SizeFigure, steps []unit.Bytes, n int) []profile.SizeFigure {
	last := len(steps) - 1
	return slices.DeleteFunc(slices.Clone(sets), func(f profile.SizeFigure) bool {
		i := slices.Index(steps, f.Bytes)
		return i >= n && i < last
	})
}

// expectedLLC is the last-level cache by the firmware; 0 if that is not the cache that is
// measured: the lab's model has caches of its own.
func (b *bench) expectedLLC() unit.Bytes {
	if b.how == unit.HowModelled {
		return 0
	}
	return b.firmwareLLC()
}

// scanned says that the last steps before the largest are as slow as the largest, and
// are larger than beyond.
func scanned(sets []profile.SizeFigure, beyond unit.Bytes) bool {
	n := len(sets) - 1
	if n < stepsAtMemory || sets[n-1].Bytes <= beyond {
		return false
	}
	memory := sets[n].Median.Or(math.Inf(1))
	for _, f := range sets[n-stepsAtMemory : n] {
		if f.Median.Or(0) < atMemory*memory {
			return false
		}
	}
	return true
}

// cacheSizes reads the levels from the scan, with the firmware's sizes beside them. If
// the scan may have ended within the last-level cache, that cache has no size.
func (b *bench) cacheSizes(cpu int) []profile.CacheSize {
	sets := slices.DeleteFunc(slices.Clone(b.profile.WorkingSets), func(f profile.SizeFigure) bool { return f.Median.Or(0) <= 0 })
	var all []profile.CacheSize
	for i, l := range findLevels(sets) {
		all = append(all, profile.CacheSize{
			Level: i + 1, Size: unit.Some(sets[l.last].Bytes), Next: unit.Some(sets[l.last+1].Bytes),
			Latency: sets[l.middle].Figure, Firmware: b.firmwareSize(cpu, i+1),
		})
	}
	if n := len(sets); n > 0 && sets[n-1].Bytes < 2*b.expectedLLC() {
		all = append(all, profile.CacheSize{
			Level: len(all) + 1, Firmware: unit.Some(b.firmwareLLC()),
			Latency: profile.UnknownFigure("the scan did not get beyond it"),
			Why:     "the scan ended at " + sets[n-1].Bytes.String() + ": its node has too little free memory",
		})
	}
	return all
}

// firmwareSize is the size of a CPU's cache of some level by the firmware.
func (b *bench) firmwareSize(cpu, level int) unit.Opt[unit.Bytes] {
	c, _ := b.m.CPU(cpu)
	if i, ok := c.LLC.Get(); ok && i < len(b.m.LLCs) && b.m.LLCs[i].Level == level {
		return b.m.LLCs[i].Size
	}
	if i, ok := c.L2.Get(); ok && i < len(b.m.L2s) && level == 2 {
		return b.m.L2s[i].Size
	}
	return unit.None[unit.Bytes]()
}
