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
	o := offers{part: profile.Bandwidth}
	read := func(to int, cpus set.CPUSet, keep func(profile.Figure)) func() (piece, error) {
		return func() (piece, error) {
			job := membench.Job{Length: lengthRate, Warm: settle}
			err := b.addReaders(&job, to, cpus, membench.Thread{Work: membench.Read})
			return piece{jobs: jobs(job), read: readRate, keep: func(c [][]float64) { keep(profile.FigureOf(c[0])) }}, err
		}
	}
	pairs, peaks := figuresOf(&b.profile.Bandwidth, pairKey, b.pairs()), figuresOf(&b.profile.Peak, nodeKey, b.columns())
	for _, pr := range b.byWorth() {
		o.offer(pr.String(), pairs.has(pr), read(pr.to, b.cpusOf(pr.from), func(f profile.Figure) {
			pairs.put(profile.PairFigure{From: pr.from, To: pr.to, Figure: f})
		}))
	}
	for _, to := range b.columns() {
		o.offer(fmt.Sprintf("all CPUs to node %d", to), peaks.has(to), read(to, b.allowed(), func(f profile.Figure) {
			peaks.put(profile.NodeFigure{Node: to, Figure: f})
		}))
	}
	return o.done()
}
