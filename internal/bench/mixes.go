// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"

	"homenode/internal/kernel/probe"
	"homenode/internal/profile"
)

// mixed are the reads and writes, as Intel's MLC has them, with the two ends.
var mixed = [][2]int{{1, 0}, {3, 1}, {2, 1}, {1, 1}, {0, 1}}

func mixKey(m profile.Mix) [2]int { return [2]int{m.Reads, m.Writes} }

// planMixes: all CPUs, each on its own node's memory.
func planMixes(b *bench) plan {
	var pl plan
	var pieces []piece
	for _, mix := range mixed {
		if there(b.profile.Mixes, mixKey, mix) {
			pl.have++
			continue
		}
		what := fmt.Sprintf("%d:%d", mix[0], mix[1])
		job, err := b.everyHome(probe.Thread{Work: probe.Mixed, Reads: mix[0], Writes: mix[1]})
		if err != nil {
			pl.skipped = append(pl.skipped, profile.Skipped{Part: profile.Mixes, What: what, Why: err.Error()})
			continue
		}
		pieces = append(pieces, piece{
			what: what, jobs: jobs(job), read: readRate,
			keep: func(c [][]float64) {
				m := profile.Mix{Reads: mix[0], Writes: mix[1], Figure: profile.FigureOf(c[0])}
				b.profile.Mixes = put(b.profile.Mixes, m, mixKey, mixed)
			},
		})
	}
	pl.blocks = inBlocks(pieces)
	return pl
}

// everyHome has all CPUs work on memory of their own node.
func (b *bench) everyHome(t probe.Thread) (probe.Job, error) {
	job := probe.Job{Length: lengthRate, Warm: settle}
	for _, node := range b.rows() {
		home, ok := b.home(node)
		if !ok {
			continue
		}
		if err := b.addReaders(&job, home, b.cpusOf(node), t); err != nil {
			return job, err
		}
	}
	return job, nil
}

func jobs(j ...probe.Job) []probe.Job { return j }
