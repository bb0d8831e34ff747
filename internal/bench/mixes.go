// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"

	"homenode/internal/kernel/membench"
	"homenode/internal/profile"
)

// mixed are the reads and writes of Intel's MLC, with the two extremes.
var mixed = [][2]int{{1, 0}, {3, 1}, {2, 1}, {1, 1}, {0, 1}}

func mixKey(m profile.Mix) [2]int { return [2]int{m.Reads, m.Writes} }

// planMixes: all CPUs, each on its own node's memory.
func planMixes(b *bench) plan {
	o := offers{part: profile.Mixes}
	got := figuresOf(&b.profile.Mixes, mixKey, mixed)
	for _, mix := range mixed {
		o.offer(fmt.Sprintf("%d:%d", mix[0], mix[1]), got.has(mix), func() (piece, error) {
			job, err := b.everyHome(membench.Thread{Work: membench.Mixed, Reads: mix[0], Writes: mix[1]})
			return piece{jobs: jobs(job), read: readRate, keep: func(c [][]float64) {
				got.put(profile.Mix{Reads: mix[0], Writes: mix[1], Figure: profile.FigureOf(c[0])})
			}}, err
		})
	}
	return o.done()
}

// everyHome makes all CPUs work on memory of their own node.
func (b *bench) everyHome(t membench.Thread) (membench.Job, error) {
	job := membench.Job{Length: lengthRate, Warm: settle}
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

func jobs(j ...membench.Job) []membench.Job { return j }
