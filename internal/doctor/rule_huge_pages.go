// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"fmt"
	"slices"

	"homenode/internal/render"
	"homenode/internal/snapshot"
	"homenode/internal/unit"
)

// Huge-page pools differ between the nodes: a request on the node with too few gets a
// page of another node, or none (hugetlb takes from any allowed node with a free page:
// dequeue_hugetlb_folio_nodemask in mm/hugetlb.c).
//
//  1. For each page size, the pools of the nodes that have CPUs and memory.
//  2. Unequal: the smallest is below PoolShare of the largest. The advice gives each
//     node the mean.
//  3. Used up: a node has pages, none of them free, while others have free ones. The
//     advice gives it a quarter more.
//  4. A pool grows only into memory that is free on its node, above the low watermarks.
//     It gives back only pages that are free.
//  5. The cost is not known: accesses to huge pages are not counted separately.
func hugePagePools(s snapshot.Snapshot, c Config) (found []Finding, skipped []Skipped) {
	l := view{s, c}
	for _, size := range l.poolSizes() {
		pools, unknown := l.pools(size) // 1
		if unknown != "" {
			skipped = append(skipped, skip("the huge-page pool is unknown: "+unknown, size.String()))
			continue
		}
		if short := c.smallest(pools); len(short) > 0 { // 2
			found = append(found, l.unequalPools(size, pools, short))
		}
		if short := usedUp(pools); len(short) > 0 { // 3
			found = append(found, l.usedUpPools(size, pools, short))
		}
	}
	return found, skipped
}

// smallest is number 2: one pool, or several of the same size; nil when they are equal
// enough.
func (c Config) smallest(pools []pool) []pool {
	if len(pools) < 2 {
		return nil
	}
	bySize := func(a, b pool) int { return cmp.Compare(a.total, b.total) }
	least, most := slices.MinFunc(pools, bySize).total, slices.MaxFunc(pools, bySize).total
	if most == 0 || float64(least) >= c.PoolShare*float64(most) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(pools), func(p pool) bool { return p.total != least })
}

// usedUp is number 3.
func usedUp(pools []pool) []pool {
	if !slices.ContainsFunc(pools, func(p pool) bool { return p.free > 0 }) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(pools), func(p pool) bool { return p.free > 0 || p.total == 0 })
}

type pool struct {
	node        int // position
	total, free uint64
	v           snapshot.HugePool
}

func (l view) poolSizes() []unit.Bytes {
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

func (l view) pools(size unit.Bytes) (pools []pool, unknown string) {
	for i, n := range l.Machine.Nodes {
		if n.CPUs.IsEmpty() || l.total(i).Or(1) == 0 {
			continue
		}
		k := slices.IndexFunc(l.mem(i).Pools, func(p snapshot.HugePool) bool { return p.PageSize == size })
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

func (l view) unequalPools(size unit.Bytes, pools, short []pool) Finding {
	f := l.poolFinding(pools, short)
	f.Title = fmt.Sprintf("Huge-page pools of %v are unequal: %s on %s", size, pagesOf(short[0].total), l.poolNodes(short))
	f.Cause = "The pools were filled while some node had no contiguous memory left, or by a program that reserves them on the node it started on. " +
		"A request on the short node gets pages of another node, or none."
	f.Remedy = "Give each node its part; do it early after boot, while memory is contiguous. Pages in use stay where they are."
	sum := uint64(0)
	for _, p := range pools {
		sum += p.total
	}
	mean := max(1, sum/uint64(len(pools)))
	f.Afterwards = l.poolsStay(pools, short, size, mean)
	for _, p := range short {
		f.Commands = append(f.Commands, l.grow(p, size, mean))
	}
	for _, p := range pools {
		if p.total > mean && p.free >= p.total-mean { // 4
			f.Commands = append(f.Commands, setPool(l.id(p.node), size, mean))
		}
	}
	return f
}

func (l view) usedUpPools(size unit.Bytes, pools, short []pool) Finding {
	f := l.poolFinding(pools, short)
	f.Title = fmt.Sprintf("Huge-page pool of %v is used up on %s, while other nodes have free pages", size, l.poolNodes(short))
	f.Cause = "Programs took all that was set aside there. A request there now gets pages of another node, or none."
	f.Remedy = "Set more aside where it is needed, or run some of their users on the other nodes; early after boot, while memory is contiguous."
	for _, p := range short {
		want := p.total + max(1, p.total/4)
		f.Commands = append(f.Commands, l.grow(p, size, want))
		if l.granted(p, size, want) <= p.total {
			f.Afterwards = onlyShow(nodeName(l.id(p.node)) + " has free memory for more huge pages")
		}
	}
	return f
}

// poolsStay says so if the pools are still unequal with the short ones grown as far as
// their nodes' free memory allows, and the others shrunk as far as their free pages do.
func (l view) poolsStay(pools, short []pool, size unit.Bytes, mean uint64) string {
	least, most := mean, uint64(0)
	for _, p := range short {
		least = min(least, l.granted(p, size, mean))
	}
	for _, p := range pools {
		if p.total > mean && p.free >= p.total-mean {
			p.total = mean
		}
		most = max(most, p.total)
	}
	if float64(least) >= l.c.PoolShare*float64(most) {
		return ""
	}
	return fmt.Sprintf("The finding stays until %s has free memory for more huge pages: it gets %s of %d.", l.poolNodes(short), pagesOf(least), mean)
}

// poolFinding is what both have in common.
func (l view) poolFinding(pools, short []pool) Finding {
	f := Finding{
		Subject: Subject{Kind: SubjectHost, Name: l.poolNodes(short)},
		Cost:    unit.UnknownValue[float64]("nothing counts accesses to huge pages"), // 5
	}
	if len(short) == 1 {
		f.Subject = onNode(l.id(short[0].node))
	}
	for _, p := range pools {
		f.Evidence = append(f.Evidence, fact(nodeName(l.id(p.node)), fmt.Sprintf("%s, %d free", pagesOf(p.total), p.free), p.v.Total.How, p.v.Total.From))
	}
	return f
}

func (l view) poolNodes(pools []pool) string {
	return nodeNames(l.nodeSet(each(pools, func(p pool) int { return l.id(p.node) })...))
}

func pagesOf(n uint64) string { return render.Count(int(min(n, 1<<40)), "page") }

// grow makes a pool this large, or as large as the node's free memory allows (4). If
// that is nothing, or unknown, the command shows the node's memory.
func (l view) grow(p pool, size unit.Bytes, want uint64) string {
	want = l.granted(p, size, want)
	if want <= p.total {
		return fmt.Sprintf("cat /sys/devices/system/node/node%d/meminfo", l.id(p.node)) + remark("no free memory is known for more huge pages")
	}
	return setPool(l.id(p.node), size, want)
}

// granted is number 4: the pages that the pool will have.
func (l view) granted(p pool, size unit.Bytes, want uint64) uint64 {
	free, _ := l.free(p.node).Get()
	room := uint64(max(0, free-l.mem(p.node).LowFree.Or(0)) / size)
	return min(want, p.total+room)
}

func setPool(id int, size unit.Bytes, pages uint64) string {
	return fmt.Sprintf("echo %d > /sys/devices/system/node/node%d/hugepages/hugepages-%dkB/nr_hugepages", pages, id, int64(size/unit.KiB))
}
