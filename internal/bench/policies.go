// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"slices"

	"homenode/internal/kernel/membench"
	"homenode/internal/profile"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// policy is one way of placing the memory of a program.
type policy struct {
	name  string
	mode  membench.Policy
	nodes set.NodeSet
}

// works are the kinds of work on it, as in numademo.
var works = []membench.Work{membench.Read, membench.Write, membench.Copy, membench.Chase}

func rowKey(r profile.PolicyRow) [2]string { return [2]string{r.Policy, r.Work} }

// planPolicies: one CPU of the first node works on memory placed by each policy.
func planPolicies(b *bench) plan {
	o := offers{part: profile.Policies}
	rows := b.rows()
	if len(rows) == 0 || len(b.columns()) == 0 {
		return o.plan
	}
	cpu, _ := b.cpusOf(rows[0]).First()
	var order [][2]string
	all := b.policies(rows[0])
	for _, p := range all {
		for _, w := range works {
			order = append(order, [2]string{p.name, string(w)})
		}
	}
	got := figuresOf(&b.profile.Policies, rowKey, order)
	for _, p := range all {
		bytes, err := b.policyRoom(p)
		if err != nil {
			o.skip(p.name, err)
			continue
		}
		for _, w := range works {
			o.offer(p.name+", "+string(w), got.has([2]string{p.name, string(w)}), func() (piece, error) {
				return b.policyPiece(p, w, cpu, bytes, got), nil
			})
		}
	}
	return o.done()
}

func (b *bench) policyPiece(p policy, w membench.Work, cpu int, bytes unit.Bytes, got figures[profile.PolicyRow, [2]string]) piece {
	row := profile.PolicyRow{Policy: p.name, Work: string(w), CPU: cpu, Unit: "bytes/s"}
	job := b.chase(cpu, 0, bytes)
	job.Buffers[0].Policy, job.Buffers[0].Nodes = p.mode, p.nodes
	job.Buffers[0].Huge = job.Buffers[0].Huge && p.hugeEnough(w, bytes)
	job.Threads[0].Work = w
	read := readRate
	if w == membench.Chase {
		row.Unit, read = "ns", readChase
	} else {
		job.Length, job.Warm = lengthRate, settle
		job.Threads[0].Count = false
	}
	keep := func(f profile.Figure) {
		row.Figure = f
		got.put(row)
		b.against()
	}
	return piece{
		jobs: jobs(job), read: read,
		keep: func(v [][]float64) {
			if w == membench.Chase {
				keep(timed(v[0], v[1]))
				return
			}
			keep(profile.FigureOf(v[0]))
		},
		// The kernel may be too old for it: that belongs in the table.
		fail: func(why string) { keep(profile.UnknownFigure(why)) },
	}
}

// spreadHuge is the number of huge pages of each node from which a chase's batches are
// alike.
const spreadHuge = 64

// hugeEnough: memory that a policy spreads needs pages that are small compared with the
// work between two clock reads. With huge pages a stream changes nodes every 2 MiB, and
// the median of its batches shows one of them; a few MiB have at most one huge page for
// each node.
func (p policy) hugeEnough(w membench.Work, bytes unit.Bytes) bool {
	switch p.mode {
	case membench.Interleave, membench.WeightedInterleave, membench.PreferredMany:
		return w == membench.Chase && bytes >= spreadHuge*hugePage*unit.Bytes(p.nodes.Len())
	}
	return true
}

// policies are the policies that a program on a node can have.
func (b *bench) policies(node int) []policy {
	has := b.chosen(b.m.NodesWithMemory())
	all := []policy{{"local", membench.Local, set.NodeSet{}}}
	if !has.Has(node) {
		all = nil // local would mean another node
	}
	far, others := -1, set.NodeSet{}
	for _, id := range b.m.Nearest(node) {
		if !has.Has(id) || id == node {
			continue
		}
		all = append(all, policy{fmt.Sprintf("bind %d", id), membench.Bind, set.FromNodes(id)})
		far, others = id, others.With(id)
	}
	if far < 0 || has.Len() < 2 {
		return all
	}
	several := func(mode membench.Policy, nodes set.NodeSet) {
		all = append(all, policy{fmt.Sprintf("%s %s", mode, nodes), mode, nodes})
	}
	several(membench.Interleave, has)
	several(membench.Preferred, set.FromNodes(far))
	several(membench.PreferredMany, others)
	several(membench.WeightedInterleave, has)
	return all
}

// policyRoom is one size for all policies: what fits on the node with the least room.
func (b *bench) policyRoom(p policy) (unit.Bytes, error) {
	nodes := p.nodes.IDs()
	if len(nodes) == 0 {
		nodes = b.rows()[:1]
	}
	bytes := beyondLLC * b.llc()
	for _, node := range nodes {
		got, err := b.far(node)
		if err != nil {
			return 0, err
		}
		bytes = min(bytes, got)
	}
	return bytes, nil
}

// against compares each row with the local policy's of the same work.
func (b *bench) against() {
	rows := slices.Clone(b.profile.Policies)
	local := map[string]float64{}
	for _, r := range rows {
		if v, ok := r.Median.Get(); ok && r.Policy == string(membench.Local) {
			local[r.Work] = v
		}
	}
	for i, r := range rows {
		v, ok := r.Median.Get()
		base, known := local[r.Work]
		if !ok || !known || v <= 0 || base <= 0 {
			continue
		}
		rows[i].Against = unit.Some(v / base)
		if r.Work == string(membench.Chase) { // less is better
			rows[i].Against = unit.Some(base / v)
		}
	}
	b.profile.Policies = rows
}
