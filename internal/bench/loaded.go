// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"slices"

	"homenode/internal/kernel/membench"
	"homenode/internal/profile"
	"homenode/internal/set"
)

// pauses are instructions that a loader waits after each line: from a load that has no
// effect, some 60 MB/s a CPU, to no wait.
var pauses = []int{4096, 2048, 1024, 512, 256, 128, 64, 32, 16, 0}

// curve is one curve to measure: the CPU that chases, and what the others read
// meanwhile.
type curve struct {
	name     string
	from, to int
	cpu      int
	readers  []readers
}

type readers struct {
	node int
	cpus set.CPUSet
}

func curveKey(c profile.Curve) string { return c.Name }

// planLoaded: a CPU chases while the others read with pauses between the lines. For
// each node, all others read that node. For the whole machine, each reads its own node.
// For the slowest path, those at both its ends read.
func planLoaded(b *bench) plan {
	var pl plan
	var pieces []piece
	curves := b.curves()
	names := make([]string, len(curves))
	for i, c := range curves {
		names[i] = c.name
	}
	for _, c := range curves {
		for _, pause := range pauses {
			if b.hasPoint(c.name, pause) {
				pl.have++
				continue
			}
			job, err := b.loadedJob(c, pause)
			if err != nil {
				pl.skipped = append(pl.skipped, profile.Skipped{Part: profile.Loaded, What: c.name, Why: err.Error()})
				break
			}
			pieces = append(pieces, piece{
				what: fmt.Sprintf("%s, pause %d", c.name, pause), jobs: jobs(job), read: readLoaded,
				keep: func(v [][]float64) {
					b.putPoint(c, names, profile.CurvePoint{Pause: pause, Bandwidth: profile.FigureOf(v[2]), Latency: timed(v[0], v[1])})
				},
			})
		}
	}
	pl.blocks = slices.Collect(slices.Chunk(pieces, len(pauses)))
	return pl
}

func readLoaded(out outcome) ([]float64, error) {
	threads := out.jobs[0].Threads
	v, err := latencyOf(threads[0])
	if err != nil {
		return nil, err
	}
	rate, err := rateOf(threads[1:])
	return append(v, rate), err
}

func (b *bench) loadedJob(c curve, pause int) (membench.Job, error) {
	ws, err := b.far(c.to)
	if err != nil {
		return membench.Job{}, err
	}
	job := b.chase(c.cpu, c.to, ws)
	job.Warm = settle
	for _, r := range c.readers {
		if err := b.addReaders(&job, r.node, r.cpus, membench.Thread{Work: membench.Read, Pause: pause}); err != nil {
			return job, err
		}
	}
	return job, nil
}

func (b *bench) curves() []curve {
	var all []curve
	for _, node := range b.rows() {
		c := b.curve(fmt.Sprintf("node %d, local", node), node, node)
		c.readers = []readers{{node, b.allowed().Without(c.cpu)}}
		all = append(all, c)
	}
	if rows := b.rows(); len(rows) > 1 {
		home, _ := b.home(rows[0])
		c := b.curve("whole machine, all local", rows[0], home)
		for _, node := range rows {
			if near, ok := b.home(node); ok {
				c.readers = append(c.readers, readers{near, b.cpusOf(node).Without(c.cpu)})
			}
		}
		all = append(all, c)
	}
	if w, ok := b.worstPair(); ok {
		c := b.curve(fmt.Sprintf("node %d to node %d", w.from, w.to), w.from, w.to)
		c.readers = []readers{{w.to, b.cpusOf(w.from).Union(b.cpusOf(w.to)).Without(c.cpu)}}
		all = append(all, c)
	}
	return slices.DeleteFunc(all, func(c curve) bool { return !b.canBe(c) })
}

func (b *bench) curve(name string, from, to int) curve {
	cpu, _ := b.cpusOf(from).First()
	return curve{name: name, from: from, to: to, cpu: cpu}
}

// canBe: its node has memory, and there is a CPU to load it.
func (b *bench) canBe(c curve) bool {
	return slices.Contains(b.columns(), c.to) && slices.ContainsFunc(c.readers, func(r readers) bool { return !r.cpus.IsEmpty() })
}

// worstPair is the remote pair with the highest latency, as measured or by distance.
func (b *bench) worstPair() (pair, bool) {
	worst, found, most := pair{}, false, 0.0
	for _, p := range b.pairs() {
		if p.from == p.to {
			continue
		}
		far := float64(b.m.Distance(p.from, p.to).Or(0))
		if f, ok := b.profile.LatencyBetween(p.from, p.to); ok {
			far = 256 + f.Median.Or(0) // measured beats the firmware's word
		}
		if !found || far > most {
			worst, found, most = p, true, far
		}
	}
	return worst, found
}

func (b *bench) hasPoint(name string, pause int) bool {
	for _, c := range b.profile.Loaded {
		if c.Name == name {
			return slices.ContainsFunc(c.Points, func(p profile.CurvePoint) bool { return p.Pause == pause })
		}
	}
	return false
}

func (b *bench) putPoint(c curve, names []string, p profile.CurvePoint) {
	b.profile.Loaded = slices.Clone(b.profile.Loaded)
	i := slices.IndexFunc(b.profile.Loaded, func(have profile.Curve) bool { return have.Name == c.name })
	if i < 0 {
		figuresOf(&b.profile.Loaded, curveKey, names).put(profile.Curve{Name: c.name, From: c.from, To: c.to})
		i = slices.IndexFunc(b.profile.Loaded, func(have profile.Curve) bool { return have.Name == c.name })
	}
	figuresOf(&b.profile.Loaded[i].Points, func(p profile.CurvePoint) int { return p.Pause }, pauses).put(p)
}
