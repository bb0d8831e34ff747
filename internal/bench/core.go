// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"

	"homenode/internal/kernel/membench"
	"homenode/internal/profile"
	"homenode/internal/unit"
)

const (
	// transferBytes is 256 lines: small enough for every L1, and large enough that a
	// lap takes far longer than the two CPUs need to agree on its start.
	transferBytes = 256 * line
	// couplesPerLevel is the number of couples of each distance that are measured.
	couplesPerLevel = 4
)

func coreKey(f profile.CoreFigure) [2]int { return f.CPUs }

// planCore: one CPU chases over lines that another has just stored to.
func planCore(b *bench) plan {
	o := offers{part: profile.CoreToCore}
	all := b.couples(couplesPerLevel)
	got := figuresOf(&b.profile.CoreToCore, coreKey, cpusOfCouples(all))
	for _, c := range all {
		o.offer(fmt.Sprintf("CPU %d to CPU %d", c.cpus[0], c.cpus[1]), got.has(c.cpus), func() (piece, error) {
			job, err := b.transferJob(c)
			return piece{jobs: jobs(job), read: readChase, keep: func(v [][]float64) {
				got.put(profile.CoreFigure{CPUs: c.cpus, Level: c.level, Distance: c.distance, Figure: timed(v[0], v[1])})
			}}, err
		})
	}
	return o.done()
}

// transferJob places the lines on the reader's node.
func (b *bench) transferJob(c couple) (membench.Job, error) {
	node, err := b.roomNear(c.cpus[0], transferBytes)
	if err != nil {
		return membench.Job{}, err
	}
	buffer := b.bound(node, c.cpus[0], transferBytes)
	buffer.Huge = false
	return membench.Job{
		Buffers: []membench.Buffer{buffer},
		Threads: []membench.Thread{{CPU: c.cpus[0], Work: membench.Transfer, Owner: c.cpus[1], Count: true}},
		Length:  lengthMin, Warm: settleChase,
	}, nil
}

// roomNear is the nearest node to a CPU with memory, if it has that much.
func (b *bench) roomNear(cpu int, bytes unit.Bytes) (int, error) {
	own, _ := b.m.NodeOf(cpu)
	node, ok := b.home(own)
	if !ok {
		return 0, fmt.Errorf("no node with memory is near CPU %d", cpu)
	}
	_, err := b.room(node, bytes, bytes)
	return node, err
}
