// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"

	"homenode/internal/survey"
	"homenode/internal/unit"
)

// Huge-page pools differ between the nodes: who asks on the short node gets a page
// of another one, or none (hugetlb takes from any allowed node with a free page:
// dequeue_hugetlb_folio_nodemask in mm/hugetlb.c).
//
//  1. Of each page size, the pools of the nodes that have CPUs and memory.
//  2. Unequal: the smallest is below PoolShare of the largest.
//  3. Or used up: none free on one node while others have some.
//  4. The advice gives each node the mean. The cost is not known: nothing counts
//     accesses to huge pages apart.
func hugePagePools(s survey.Survey, c Config) (found []Finding, skipped []Skipped) {
	l := look{s, c}
	for _, size := range l.poolSizes() {
		pools, unknown := l.pools(size) // 1
		if unknown != "" {
			skipped = append(skipped, skip("the huge-page pool is unknown: "+unknown, size.String()))
			continue
		}
		if len(pools) < 2 {
			continue
		}
		short := shortest(pools)
		most, free, sum := uint64(0), uint64(0), uint64(0)
		for _, p := range pools {
			most, free, sum = max(most, p.total), max(free, p.free), sum+p.total
		}
		unequal := float64(short[0].total) < c.PoolShare*float64(most) // 2
		usedUp := short[0].free == 0 && free > 0 && most > 0           // 3
		if most > 0 && (unequal || usedUp) {
			found = append(found, l.poolFinding(size, pools, short, sum/uint64(len(pools))))
		}
	}
	return found, skipped
}

type pool struct {
	node        int // position
	total, free uint64
	v           survey.HugePool
}

// shortest are the pools that are worst off: one, or several that are alike.
func shortest(pools []pool) []pool {
	least := slices.MinFunc(pools, comparePools)
	return slices.DeleteFunc(slices.Clone(pools), func(p pool) bool { return comparePools(p, least) != 0 })
}

func comparePools(a, b pool) int {
	switch {
	case (a.free == 0) != (b.free == 0):
		if a.free == 0 {
			return -1
		}
		return 1
	case a.total < b.total:
		return -1
	case a.total > b.total:
		return 1
	}
	return 0
}

func (l look) poolSizes() []unit.Bytes {
	var sizes []unit.Bytes
	for _, n := range l.Nodes {
		for _, p := range n.Pools {
			if p.PageSize > 0 {
				sizes = append(sizes, p.PageSize)
			}
		}
	}
	slices.Sort(sizes)
	return slices.Compact(sizes)
}

func (l look) pools(size unit.Bytes) (pools []pool, unknown string) {
	for i, n := range l.Machine.Nodes {
		if n.CPUs.IsEmpty() || l.total(i).Or(1) == 0 {
			continue
		}
		k := slices.IndexFunc(l.mem(i).Pools, func(p survey.HugePool) bool { return p.PageSize == size })
		if k < 0 {
			return nil, fmt.Sprintf("node %d has no figures of it", n.ID)
		}
		v := l.mem(i).Pools[k]
		total, ok1 := v.Total.Get()
		free, ok2 := v.Free.Get()
		if !ok1 || !ok2 {
			return nil, because(v.Total)
		}
		pools = append(pools, pool{i, total, free, v})
	}
	return pools, ""
}

func (l look) poolFinding(size unit.Bytes, pools, short []pool, mean uint64) Finding {
	nodes := l.nodeSet(each(short, func(p pool) int { return l.id(p.node) })...)
	least := short[0]
	f := Finding{
		Title:   fmt.Sprintf("Huge-page pools of %v are unequal: %s, %d free, on %s", size, plural(int(min(least.total, 1<<40)), "page"), least.free, nodeNames(nodes)),
		Subject: Subject{Kind: SubjectHost, Name: nodeNames(nodes)}, Cost: unit.UnknownValue[float64]("nothing counts accesses to huge pages"), // 4
		Cause: "The pools were filled while some node had no contiguous memory left, or by a program that reserves them on the node it started on. " +
			"Who asks on the short node gets pages of another one, or none.",
		Remedy: "Give each node its part; do it early after boot, while memory is contiguous. Pages in use stay where they are.",
	}
	if nodes.Len() == 1 {
		f.Subject = onNode(l.id(least.node))
	}
	for _, p := range pools {
		f.Evidence = append(f.Evidence, fact(nodeName(l.id(p.node)), fmt.Sprintf("%d pages, %d free", p.total, p.free), p.v.Total.How, p.v.Total.From))
	}
	f.Commands = l.poolCommands(size, pools, short, max(mean, 1))
	return f
}

func (l look) poolCommands(size unit.Bytes, pools, short []pool, mean uint64) []string {
	var out []string
	least := short[0].total
	for _, p := range short {
		want := mean
		if least >= mean { // enough pages, none free
			want = least + max(1, least/4)
		}
		out = append(out, setPool(l.id(p.node), size, want))
	}
	for _, p := range pools {
		if p.total > mean && least < mean {
			out = append(out, setPool(l.id(p.node), size, mean))
		}
	}
	return out
}

func setPool(id int, size unit.Bytes, pages uint64) string {
	return fmt.Sprintf("echo %d > /sys/devices/system/node/node%d/hugepages/hugepages-%dkB/nr_hugepages", pages, id, int64(size/unit.KiB))
}
