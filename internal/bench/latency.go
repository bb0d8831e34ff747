// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"

	"homenode/internal/profile"
)

type pair struct{ from, to int }

func pairKey(f profile.PairFigure) pair { return pair{f.From, f.To} }

// pairs are the nodes with CPUs × the nodes with memory.
func (b *bench) pairs() []pair {
	var all []pair
	for _, from := range b.rows() {
		for _, to := range b.columns() {
			all = append(all, pair{from, to})
		}
	}
	return all
}

func (p pair) String() string { return fmt.Sprintf("node %d to node %d", p.from, p.to) }

// planLatency: one CPU of each node chases over memory of each node, which no cache
// holds.
func planLatency(b *bench) plan {
	var pl plan
	var pieces []piece
	order := b.pairs()
	rank, have := ranks(order), keysOf(b.profile.Latency, pairKey)
	for _, pr := range order {
		if have[pr] {
			pl.have++
			continue
		}
		ws, err := b.far(pr.to)
		if err != nil {
			pl.skipped = append(pl.skipped, profile.Skipped{Part: profile.Latency, What: pr.String(), Why: err.Error()})
			continue
		}
		cpu, _ := b.cpusOf(pr.from).First()
		job := b.chase(cpu, pr.to, ws)
		pieces = append(pieces, piece{
			what: pr.String(), jobs: jobs(job), read: readChase,
			keep: func(c [][]float64) {
				f := profile.PairFigure{From: pr.from, To: pr.to, Figure: timed(c[0], c[1])}
				b.profile.Latency = putRanked(b.profile.Latency, f, pairKey, rank)
			},
		})
	}
	pl.blocks = inBlocks(pieces)
	return pl
}
