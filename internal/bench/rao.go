// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"homenode/internal/kernel/membench"
	"homenode/internal/profile"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
)

const (
	// addEvery is the number of elements a thread visits for one atomic add to the
	// shared region: docs/decisions/0015-rao-grid.md.
	addEvery = 1
	// raoDraws is the number of places in which a cell is measured in each repeat, if
	// its pages are small and it is at most raoDrawn last-level caches large
	// (drawsBelow).
	raoDraws = 2
	raoDrawn = 2
	// raoFill and raoLaps are how often a list is passed before it is measured: one
	// that fits the last-level cache, and one of up to raoWarm of them. A cache with
	// random replacement that is full of earlier data misses 40, 18, 8, 4, 2, 1 % of a
	// set of three quarters in the second to seventh laps. Beyond raoWarm a load misses
	// anyway.
	raoFill = 8
	raoLaps = 3
	raoWarm = 4
	// raoPlaces is the number of places: places differ in size, by a line each.
	raoPlaces = 32
)

// cell is one cell of Rao's grid (HPCA 2013): each thread chases a working set of its
// own, and adds to lines that all share.
type cell struct{ profile.RaoKey }

func cellKey(r profile.RaoCell) cell { return cell{r.Key()} }

func (c cell) String() string {
	return fmt.Sprintf("%d threads %s, %s memory, %v, sharing %v", c.Threads, c.Spread, c.Memory, c.WS, c.Sharing)
}

// planRao: some sixty cells. A block has one working set: in a guest the larger ones
// take long.
func planRao(b *bench) plan {
	o := offers{part: profile.Rao}
	nodes := b.raoNodes()
	if len(nodes) < 2 {
		o.skip("", errors.New("fewer than two nodes have CPUs and memory: there is nothing to spread over"))
		return o.plan
	}
	if b.cpusOf(nodes[0]).Len() < 2 {
		o.skip("", fmt.Errorf("node %d has one CPU: two threads cannot run on it", nodes[0]))
		return o.plan
	}
	order := b.cells(nodes)
	got := figuresOf(&b.profile.Rao, cellKey, order)
	for _, c := range order {
		o.offer(c.String(), got.has(c), func() (piece, error) {
			again := func(repeat int) []membench.Job { return b.raoJobs(c, nodes, repeat) }
			return piece{jobs: again(0), again: again, read: readRao, keep: func(v [][]float64) { got.put(raoCell(c, v)) }}, b.raoRoom(c, nodes)
		})
	}
	return o.done()
}

// raoNodes are the nodes with CPUs and memory; the second is the nearest to the first.
func (b *bench) raoNodes() []int {
	rows, has := b.rows(), b.chosen(b.m.NodesWithMemory())
	rows = slices.DeleteFunc(rows, func(id int) bool { return !has.Has(id) })
	if len(rows) == 0 {
		return nil
	}
	return slices.DeleteFunc(b.m.Nearest(rows[0]), func(id int) bool { return !slices.Contains(rows, id) })
}

// cells: working sets from a quarter of the last-level cache to eight of it. The slides
// begin at a third; less could fit in a second-level cache, in full or half.
//
//  1. Two threads, everything but sharing. Two sets of 4/16 fit one cache; sets of
//     12/16 hardly fit even on two caches.
//  2. Two threads that share, on local memory.
//  3. As many threads as a node has CPUs, if that is more. With so many, larger sets
//     are not needed.
//  4. All CPUs.
func (b *bench) cells(nodes []int) []cell {
	llc := b.llc()
	ws := func(sixteenths ...unit.Bytes) (all []unit.Bytes) {
		for _, s := range sixteenths {
			all = append(all, max(pageSize, s*llc/16/pageSize*pageSize))
		}
		return slices.Compact(all)
	}
	var all []cell
	add := func(threads int, spreads, memories []string, sets, sharing []unit.Bytes) {
		for _, w := range sets {
			for _, s := range spreads {
				for _, m := range memories {
					for _, share := range sharing {
						all = append(all, cell{profile.RaoKey{Threads: threads, Spread: s, Memory: m, WS: w, Sharing: share}})
					}
				}
			}
		}
	}
	const few, some, many = 256, 4 * unit.KiB, 32 * unit.KiB
	both, where, none := []string{profile.Intra, profile.Inter}, []string{profile.Local, profile.Remote}, []unit.Bytes{0}
	add(2, both, where, ws(4, 6, 12, 16, 32, 64, 128), none)                      // 1
	add(2, both, where[:1], ws(4, 6, 12, 32, 128), []unit.Bytes{few, some, many}) // 2
	worth := min(b.cpusOf(nodes[0]).Len(), max(2, b.cpusOf(nodes[1]).Len()))
	if worth > 2 { // 3
		fits := unit.Bytes(max(1, 8/worth))
		add(worth, both, where, ws(fits, 16, 32), none)
		add(worth, both, where[:1], ws(fits, 16), []unit.Bytes{many})
	}
	if n := b.everyone(nodes).Len(); n > worth { // 4
		add(n, both[1:], where[:1], ws(4, 12, 32), []unit.Bytes{0, many})
	}
	return all
}

func (b *bench) everyone(nodes []int) set.CPUSet {
	return b.m.CPUsOf(set.FromNodes(nodes...)).Intersect(b.allowed())
}

// raoUsed are the nodes that a cell's threads run on, or may run on.
func (b *bench) raoUsed(c cell, nodes []int) []int {
	if c.Threads == b.everyone(nodes).Len() {
		return nodes
	}
	return nodes[:2]
}

// memoryOf is the node of a thread's memory. Remote memory is the next node's, so with
// threads on two nodes each uses the other's.
func (b *bench) memoryOf(c cell, cpu int, used []int) int {
	own, _ := b.m.NodeOf(cpu)
	if c.Memory == profile.Remote {
		return used[(slices.Index(used, own)+1)%len(used)]
	}
	return own
}

// raoRoom is the reason why a cell cannot be measured.
func (b *bench) raoRoom(c cell, nodes []int) error {
	used := b.raoUsed(c, nodes)
	cpus := b.raoCPUs(c, used)
	if len(cpus) < c.Threads {
		return fmt.Errorf("%d CPUs are there for %d threads", len(cpus), c.Threads)
	}
	need := map[int]unit.Bytes{}
	for _, cpu := range cpus {
		need[b.memoryOf(c, cpu, used)] += c.WS
	}
	for node, bytes := range need {
		if _, err := b.room(node, bytes, bytes); err != nil {
			return err
		}
	}
	return nil
}

// raoJobs are one job, or one for each place of a repeat.
func (b *bench) raoJobs(c cell, nodes []int, repeat int) []membench.Job {
	if !b.small(c.WS) || c.WS > raoDrawn*b.llc() {
		return jobs(b.raoJob(c, nodes, 0))
	}
	var all []membench.Job
	for i := range raoDraws {
		all = append(all, b.raoJob(c, nodes, (repeat*raoDraws+i)%raoPlaces))
	}
	return all
}

// raoJob gives each thread its CPU and its buffer, which is smaller than the cell's
// working set by place lines: another place (draws).
func (b *bench) raoJob(c cell, nodes []int, place int) membench.Job {
	used := b.raoUsed(c, nodes)
	job := membench.Job{Length: b.lengthFor(c.WS), Warm: settleChase}
	switch {
	case c.WS <= b.llc()/2:
		job.Laps = raoFill
	case c.WS <= raoWarm*b.llc():
		job.Laps = raoLaps
	}
	for i, cpu := range b.raoCPUs(c, used) {
		job.Buffers = append(job.Buffers, b.bound(b.memoryOf(c, cpu, used), cpu, c.WS-unit.Bytes(place)*line))
		job.Threads = append(job.Threads, membench.Thread{CPU: cpu, Work: membench.Chase, Buffer: i, Count: true})
	}
	b.share(&job, c, used[0])
	return job
}

// share adds the region that all threads add to.
func (b *bench) share(job *membench.Job, c cell, node int) {
	if c.Sharing == 0 {
		return
	}
	buffer := b.bound(node, job.Threads[0].CPU, c.Sharing)
	buffer.Huge = false
	job.Buffers = append(job.Buffers, buffer)
	for i := range job.Threads {
		job.Threads[i].Shared, job.Threads[i].AddEvery = len(job.Buffers)-1, addEvery
	}
}

// coresFirst are a node's CPUs, one of each core before the others: threads that share
// a core slow each other down on any memory.
func (b *bench) coresFirst(node int) []int {
	var first, others []int
	seen := map[int]bool{}
	for id := range b.cpusOf(node).All() {
		c, _ := b.m.CPU(id)
		core, known := c.Core.Get()
		if known && seen[core] {
			others = append(others, id)
			continue
		}
		seen[core] = known || seen[core]
		first = append(first, id)
	}
	return append(first, others...)
}

// raoCPUs: intra uses the first CPUs of the first node; inter alternates between the
// nodes.
func (b *bench) raoCPUs(c cell, used []int) []int {
	if c.Spread == profile.Intra {
		ids := b.coresFirst(used[0])
		return ids[:min(c.Threads, len(ids))]
	}
	var lists [][]int
	for _, node := range used {
		lists = append(lists, b.coresFirst(node))
	}
	var cpus []int
	for i := 0; len(cpus) < c.Threads; i++ {
		before := len(cpus)
		for _, ids := range lists {
			if i < len(ids) && len(cpus) < c.Threads {
				cpus = append(cpus, ids[i])
			}
		}
		if len(cpus) == before {
			break
		}
	}
	return cpus
}

// readRao is the mean over the places: columns in the order of raoCell.
func readRao(out outcome) ([]float64, error) { return meanOf(out.jobs, raoPerOp) }

// raoPerOp sums the threads of one job.
func raoPerOp(r membench.Result) ([]float64, error) {
	var ns, ops float64
	var cycles, l2, llc, requests, critical float64
	for _, t := range r.Threads {
		if t.Ops == 0 {
			return nil, errNoOp
		}
		ns, ops = ns+float64(pace(t)), ops+float64(t.Ops)
		for sum, v := range map[*float64]unit.Opt[float64]{&cycles: t.Cycles, &l2: t.L2Misses, &llc: t.LLCMisses, &requests: t.Requests, &critical: t.Critical} {
			*sum += v.Or(math.NaN())
		}
	}
	return []float64{ns / ops, cycles / ops, llc / ops, llc / l2, window.UncorePenalty(critical, requests).Or(math.NaN()), requests / ops, critical / ops}, nil
}

func raoCell(c cell, v [][]float64) profile.RaoCell {
	counted := func(values []float64) profile.Figure {
		f := profile.FigureOf(values)
		if !f.Known() {
			f.Why = "its counters could not be read, or counted nothing"
		}
		return f
	}
	every := 0
	if c.Sharing > 0 {
		every = addEvery
	}
	return profile.RaoCell{
		Threads: c.Threads, Spread: c.Spread, Memory: c.Memory, WS: c.WS, Sharing: c.Sharing, AddEvery: every,
		PerOp: timed(v[0], v[1]), Cycles: counted(v[1]), LLCMiss: counted(v[2]), MissRate: counted(v[3]),
		Penalty: counted(v[4]), Requests: counted(v[5]), PenaltyPerOp: counted(v[6]),
	}
}
