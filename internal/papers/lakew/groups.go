// SPDX-License-Identifier: Apache-2.0

package lakew

import (
	"cmp"
	"math"
	"slices"

	"homenode/internal/sim/arena"
	"homenode/internal/sim/detmath"
)

// run is one VM in one cell.
type run struct {
	seed  uint64
	speed float64 // operations per second
	cost  float64 // CPU seconds per operation
	local float64 // local share of its DRAM reads
}

// group is an application in VMs of one size, in the same mix. It can be compared from seed
// to seed, and between policies.
type group struct {
	mix, app, size string
	runs           map[string][]run // by policy
}

// groupsOf returns the groups of a machine's cells, by size, application and mix. It leaves
// out workloads that are not VMs of the experiment.
func groupsOf(r arena.Result, machine string) []*group {
	var all []*group
	for _, c := range r.Cells {
		if c.Machine != machine {
			continue
		}
		for _, a := range c.Apps {
			if size := sizeOf(a.ID); size != "" {
				g := groupFor(&all, c.Mix, a.Service, size)
				g.runs[c.Policy] = append(g.runs[c.Policy], run{c.Seed, a.Ops, a.CPUPerOp, a.LocalRatio})
			}
		}
	}
	slices.SortFunc(all, func(a, b *group) int {
		return cmp.Or(cmp.Compare(rank(a.size), rank(b.size)), cmp.Compare(a.app, b.app), cmp.Compare(a.mix, b.mix))
	})
	return all
}

func groupFor(all *[]*group, mix, app, size string) *group {
	for _, g := range *all {
		if g.mix == mix && g.app == app && g.size == size {
			return g
		}
	}
	g := &group{mix, app, size, map[string][]run{}}
	*all = append(*all, g)
	return g
}

// rank orders sizes, from small to huge.
func rank(size string) int {
	return slices.IndexFunc(Sizes, func(s Size) bool { return s.Name == size })
}

// mean is the mean of a figure over the policy's runs; false: it has no runs.
func (g *group) mean(policy string, of func(run) float64) (float64, bool) {
	runs, sum := g.runs[policy], 0.0
	for _, r := range runs {
		sum += of(r)
	}
	return sum / float64(max(1, len(runs))), len(runs) > 0
}

func speed(r run) float64 { return r.speed }
func local(r run) float64 { return r.local }

// factor is the ratio of mean speeds of the group's VMs, with the policy and with another;
// false: unknown.
func (g *group) factor(policy, against string) (float64, bool) {
	with, ok := g.mean(policy, speed)
	without, ok2 := g.mean(against, speed)
	return with / without, ok && ok2 && with > 0 && without > 0
}

// cheaper is the ratio of CPU time per operation, with another policy and with this one.
// The rest of factor is CPU time that VMs got or waited for.
func (g *group) cheaper(policy, against string) (float64, bool) {
	with, ok := g.cost(policy)
	without, ok2 := g.cost(against)
	return without / with, ok && ok2
}

// cost is CPU seconds per operation, over all of the policy's runs.
func (g *group) cost(policy string) (float64, bool) {
	cpu, _ := g.mean(policy, func(r run) float64 { return r.cost * r.speed })
	ops, ok := g.mean(policy, speed)
	return cpu / ops, ok && ops > 0 && cpu > 0
}

// leastRuns is the number of runs below which a spread means nothing.
const leastRuns = 3

// spread is the standard deviation of the runs' speeds as a share of their mean (the
// paper's sigma/mean).
func (g *group) spread(policy string) (float64, bool) {
	mean, _ := g.mean(policy, speed)
	runs := g.runs[policy]
	if len(runs) < leastRuns || mean <= 0 {
		return 0, false
	}
	sum := 0.0
	for _, r := range runs {
		sum += (r.speed - mean) * (r.speed - mean)
	}
	return math.Sqrt(sum/float64(len(runs)-1)) / mean, true
}

// ofSeed keeps the runs of one seed.
func (g *group) ofSeed(seed uint64) *group {
	some := &group{g.mix, g.app, g.size, map[string][]run{}}
	for policy, runs := range g.runs {
		for _, r := range runs {
			if r.seed == seed {
				some.runs[policy] = append(some.runs[policy], r)
			}
		}
	}
	return some
}

// geometric is the geometric mean of a figure over groups; n is the number of groups that
// have it.
func geometric(groups []*group, of func(*group) (float64, bool)) (mean float64, n int) {
	sum := 0.0
	for _, g := range groups {
		if x, ok := of(g); ok && x > 0 {
			sum += detmath.Log(x)
			n++
		}
	}
	return detmath.Exp(sum / float64(max(1, n))), n
}

// factorOf is the mean factor of a policy over groups, with equal weights.
func factorOf(groups []*group, policy, against string) (float64, int) {
	return geometric(groups, func(g *group) (float64, bool) { return g.factor(policy, against) })
}

// leastFactor is the factor in the worst seed.
func leastFactor(groups []*group, policy, against string, seeds []uint64) (least float64) {
	least = math.Inf(1)
	for _, seed := range seeds {
		some := make([]*group, len(groups))
		for i, g := range groups {
			some[i] = g.ofSeed(seed)
		}
		if f, n := factorOf(some, policy, against); n > 0 {
			least = min(least, f)
		}
	}
	return least
}

// keep returns the groups for which yes returns true.
func keep(groups []*group, yes func(*group) bool) []*group {
	var some []*group
	for _, g := range groups {
		if yes(g) {
			some = append(some, g)
		}
	}
	return some
}

func bySize(groups []*group, size string) []*group {
	return keep(groups, func(g *group) bool { return g.size == size })
}

func byApp(groups []*group, app string) []*group {
	return keep(groups, func(g *group) bool { return g.app == app })
}
