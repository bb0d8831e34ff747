// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"

	"homenode/internal/kernel/membench"
	"homenode/internal/profile"
	"homenode/internal/set"
)

func nodeKey(f profile.NodeFigure) int { return f.Node }

// planBandwidth: all CPUs of a node read the memory of each node; then all CPUs of the
// machine read each node.
func planBandwidth(b *bench) plan {
	var pl plan
	var pieces []piece
	add := func(p piece, have bool, to int, cpus set.CPUSet) {
		if have {
			pl.have++
			return
		}
		job := membench.Job{Length: lengthRate, Warm: settle}
		if err := b.addReaders(&job, to, cpus, membench.Thread{Work: membench.Read}); err != nil {
			pl.skipped = append(pl.skipped, profile.Skipped{Part: profile.Bandwidth, What: p.what, Why: err.Error()})
			return
		}
		p.jobs, p.read = jobs(job), readRate
		pieces = append(pieces, p)
	}
	pairs, peaks := figuresOf(&b.profile.Bandwidth, pairKey, b.pairs()), figuresOf(&b.profile.Peak, nodeKey, b.columns())
	for _, pr := range b.byWorth() {
		add(piece{
			what: pr.String(),
			keep: func(c [][]float64) {
				pairs.put(profile.PairFigure{From: pr.from, To: pr.to, Figure: profile.FigureOf(c[0])})
			},
		}, pairs.has(pr), pr.to, b.cpusOf(pr.from))
	}
	for _, to := range b.columns() {
		add(piece{
			what: fmt.Sprintf("all CPUs to node %d", to),
			keep: func(c [][]float64) {
				peaks.put(profile.NodeFigure{Node: to, Figure: profile.FigureOf(c[0])})
			},
		}, peaks.has(to), to, b.allowed())
	}
	pl.blocks = inBlocks(pieces)
	return pl
}
