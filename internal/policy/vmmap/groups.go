// SPDX-License-Identifier: Apache-2.0

package vmmap

import (
	"cmp"
	"container/heap"
	"iter"
	"slices"
)

// groups yields groups of size residents, one by one, the least memory first: 128 residents
// have 341,376 groups of three, and few are ever examined. A group is ascending indices;
// the consumer may use it until the next one.
func groups(residents []resident, of []int, size int) iter.Seq[[]int] {
	order := slices.Clone(of)
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(residents[x].bytes, residents[y].bytes) })
	return func(yield func([]int) bool) {
		if size > len(order) {
			return
		}
		first := make([]int, size)
		for i := range first {
			first[i] = i
		}
		q := &queue{{at: first, bytes: bytesOf(residents, order[:size])}}
		group := make([]int, size)
		for q.Len() > 0 {
			g := heap.Pop(q).(candidate)
			for i, at := range g.at {
				group[i] = order[at]
			}
			slices.Sort(group)
			if !yield(group) {
				return
			}
			q.follow(g, residents, order)
		}
	}
}

// candidate is a group, as ascending positions in the order of memory.
type candidate struct {
	at    []int
	bytes float64
}

// queue orders candidates: the least memory first, then by position.
type queue []candidate

func (q queue) Len() int { return len(q) }

func (q queue) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(q[i].bytes, q[j].bytes), slices.Compare(q[i].at, q[j].at)) < 0
}

func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(candidate)) }

func (q *queue) Pop() any {
	last := len(*q) - 1
	x := (*q)[last]
	*q = (*q)[:last]
	return x
}

// follow adds the successors of a group: groups in which one member has the next larger
// memory. Each group is the successor of exactly one other, the one whose first reducible
// member is smaller, so no group comes twice.
func (q *queue) follow(g candidate, residents []resident, order []int) {
	for i, at := range g.at {
		end := len(order)
		if i+1 < len(g.at) {
			end = g.at[i+1]
		}
		if at+1 < end {
			next := slices.Clone(g.at)
			next[i]++
			more := residents[order[at+1]].bytes - residents[order[at]].bytes
			heap.Push(q, candidate{at: next, bytes: g.bytes + more})
		}
		if at > i {
			return
		}
	}
}

func bytesOf(residents []resident, group []int) (sum float64) {
	for _, i := range group {
		sum += residents[i].bytes
	}
	return sum
}
