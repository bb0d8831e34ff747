// SPDX-License-Identifier: Apache-2.0

package rao

import (
	"math"
	"slices"

	"homenode/internal/experiment"
	"homenode/internal/profile"
	"homenode/internal/sim/arena"
	"homenode/internal/sim/detmath"
)

// figures computes the paper's figures from a result. Run time is the time of an operation,
// 1 / (operations per second). Runs of one seed are compared with each other, so both have
// the same random start.
type figures struct {
	r     *arena.Result
	mixes []string // those with cells, in order
	at    map[cellKey][]int
}

type cellKey struct{ mix, policy string }

func newFigures(r *arena.Result) *figures {
	f := &figures{r: r, at: map[cellKey][]int{}}
	for i := range r.Cells {
		c := &r.Cells[i]
		if !slices.Contains(f.mixes, c.Mix) {
			f.mixes = append(f.mixes, c.Mix)
		}
		key := cellKey{c.Mix, c.Policy}
		f.at[key] = append(f.at[key], i)
	}
	return f
}

// of returns the mixes of some families.
func (f *figures) of(families ...Family) (names []string) {
	for _, m := range f.mixes {
		if slices.Contains(families, FamilyOf(m)) {
			names = append(names, m)
		}
	}
	return names
}

func (f *figures) cell(mix, policy string, seed uint64) *arena.Cell {
	for _, i := range f.at[cellKey{mix, policy}] {
		if f.r.Cells[i].Seed == seed {
			return &f.r.Cells[i]
		}
	}
	return nil
}

// slower is the run time under one policy as a multiple of that under another: the
// geometric mean over a mix's workloads, and over seeds. It is not ok where a run is
// missing or did no operation.
func (f *figures) slower(mix, policy, than string) (ratio float64, ok bool) {
	sum, n := 0.0, 0
	for _, seed := range f.r.Seeds {
		a, b := f.cell(mix, policy, seed), f.cell(mix, than, seed)
		if a == nil || b == nil {
			return 0, false
		}
		v, ok := slowerIn(a, b)
		if !ok {
			return 0, false
		}
		sum, n = sum+v, n+1
	}
	if n == 0 {
		return 0, false
	}
	return detmath.Exp(sum / float64(n)), true
}

// slowerIn is the logarithm of slower for one seed.
func slowerIn(a, b *arena.Cell) (log float64, ok bool) {
	if len(a.Apps) != len(b.Apps) || len(a.Apps) == 0 {
		return 0, false
	}
	for i := range a.Apps {
		x, y := a.Apps[i].Ops, b.Apps[i].Ops
		if a.Apps[i].ID != b.Apps[i].ID || !(x > 0) || !(y > 0) {
			return 0, false
		}
		log += detmath.Log(y / x)
	}
	return log / float64(len(a.Apps)), true
}

// compared is slower for each of some mixes, for those that have it.
type compared struct {
	mixes  []string
	ratios []float64
}

func (f *figures) compare(mixes []string, policy, than string) (c compared) {
	for _, m := range mixes {
		if v, ok := f.slower(m, policy, than); ok {
			c.mixes, c.ratios = append(c.mixes, m), append(c.ratios, v)
		}
	}
	return c
}

// least and most return the mixes with the smallest and the largest ratio.
func (c compared) least() (mix string, ratio float64) { return c.pick(1) }
func (c compared) most() (mix string, ratio float64)  { return c.pick(-1) }

func (c compared) pick(sign float64) (mix string, ratio float64) {
	for i, v := range c.ratios {
		if i == 0 || sign*v < sign*ratio {
			mix, ratio = c.mixes[i], v
		}
	}
	return mix, ratio
}

// variation is the standard deviation of run times over seeds as a share of their mean: the
// mean over a mix's workloads.
func (f *figures) variation(mix, policy string) (share float64, ok bool) {
	times := map[string][]float64{}
	var ids []string
	for _, i := range f.at[cellKey{mix, policy}] {
		for _, a := range f.r.Cells[i].Apps {
			if !(a.Ops > 0) {
				return 0, false
			}
			if times[a.ID] == nil {
				ids = append(ids, a.ID)
			}
			times[a.ID] = append(times[a.ID], 1/a.Ops)
		}
	}
	sum := 0.0
	for _, id := range ids {
		if len(times[id]) < 2 {
			return 0, false
		}
		mean := meanOf(times[id])
		sum += deviation(times[id], mean) / mean
	}
	if len(ids) == 0 {
		return 0, false
	}
	return sum / float64(len(ids)), true
}

// variations is the variation of each of some mixes.
func (f *figures) variations(mixes []string, policy string) (all []float64) {
	for _, m := range mixes {
		if v, ok := f.variation(m, policy); ok {
			all = append(all, v)
		}
	}
	return all
}

// fairness is the least CPU time of a thread divided by the most, among the threads of one
// workload: the mean over seeds and over workloads with several threads.
func (f *figures) fairness(mixes []string, policy string) (mean float64, n int) {
	for _, m := range mixes {
		for _, i := range f.at[cellKey{m, policy}] {
			for _, a := range f.r.Cells[i].Apps {
				if a.Threads > 1 {
					mean, n = mean+a.Fairness, n+1
				}
			}
		}
	}
	return mean / max(1, float64(n)), n
}

// fairnessOfApps is the same for programs of one thread, by the CPU time of each.
func (f *figures) fairnessOfApps(mixes []string, policy string) (mean float64, n int) {
	for _, m := range mixes {
		for _, i := range f.at[cellKey{m, policy}] {
			var cpus []float64
			for _, a := range f.r.Cells[i].Apps {
				cpus = append(cpus, a.Ops*a.CPUPerOp)
			}
			if len(cpus) > 1 && slices.Max(cpus) > 0 {
				mean, n = mean+slices.Min(cpus)/slices.Max(cpus), n+1
			}
		}
	}
	return mean / max(1, float64(n)), n
}

func meanOf(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / max(1, float64(len(v)))
}

// deviation is the sample standard deviation.
func deviation(v []float64, mean float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += (x - mean) * (x - mean)
	}
	return math.Sqrt(sum / max(1, float64(len(v)-1)))
}

// medianOf an empty list is 0.
func medianOf(v []float64) float64 {
	median, _ := experiment.Median(v)
	return median
}

// sample is one workload's run under one policy with one seed, each figure as a multiple of
// its geometric mean over all policies and seeds of that workload in that mix. This removes
// what the workload does and which others run beside it, and keeps where it ran. All are
// logarithms.
type sample struct{ time, penalty, mpi, cpi float64 }

// ownCPU is the least share of a CPU that a thread must get to count as having a CPU of its
// own. A thread that waits for CPUs is slow for a reason other than memory.
const ownCPU = 0.98

// samples returns the samples of some mixes, by workload; with own, only of runs in which
// each thread had a CPU of its own. A workload without DRAM reads or uncore requests in
// some run has no samples.
func (f *figures) samples(mixes []string, own bool) (all [][]sample) {
	for _, m := range mixes {
		by := map[string][]sample{}
		var ids []string
		for i := range f.r.Cells {
			if f.r.Cells[i].Mix != m {
				continue
			}
			for _, a := range f.r.Cells[i].Apps {
				if own && a.Ops*a.CPUPerOp < ownCPU*float64(a.Threads) {
					continue
				}
				if by[a.ID] == nil {
					ids = append(ids, a.ID)
				}
				by[a.ID] = append(by[a.ID], sample{1 / a.Ops, a.Penalty, a.MPI, 1 / a.IPC})
			}
		}
		for _, id := range ids {
			all = append(all, relative(by[id]))
		}
	}
	return all
}

// relative subtracts the mean of the logarithms.
func relative(list []sample) (out []sample) {
	var mean sample
	n := float64(len(list))
	for _, s := range list {
		for _, v := range []float64{s.time, s.penalty, s.mpi, s.cpi} {
			if !(v > 0) || math.IsInf(v, 1) {
				return nil
			}
		}
		l := sample{detmath.Log(s.time), detmath.Log(s.penalty), detmath.Log(s.mpi), detmath.Log(s.cpi)}
		out = append(out, l)
		mean = sample{mean.time + l.time/n, mean.penalty + l.penalty/n, mean.mpi + l.mpi/n, mean.cpi + l.cpi/n}
	}
	for i, s := range out {
		out[i] = sample{s.time - mean.time, s.penalty - mean.penalty, s.mpi - mean.mpi, s.cpi - mean.cpi}
	}
	return out
}

// correlationOf is r with run time over all samples.
func correlationOf(list [][]sample) (r correlation) {
	var time, penalty, mpi, cpi []float64
	for _, some := range list {
		for _, s := range some {
			time, penalty, mpi, cpi = append(time, s.time), append(penalty, s.penalty), append(mpi, s.mpi), append(cpi, s.cpi)
		}
	}
	r.n = len(time)
	r.penalty, _ = profile.Correlation(penalty, time)
	r.miss, _ = profile.Correlation(mpi, time)
	r.cpi, _ = profile.Correlation(cpi, time)
	return r
}

// predicted counts the pairs of runs of one workload that differ in time, and for each
// index the pairs in which it is lower for the faster run. That is what a scheduler needs
// from an index.
type predicted struct{ pairs, penalty, mpi, cpi int }

func predictedOf(list [][]sample) (t predicted) {
	least := detmath.Log(1 + profile.RaoWins)
	for _, some := range list {
		for _, fast := range some {
			for _, slow := range some {
				if slow.time-fast.time < least {
					continue
				}
				t.pairs++
				t.penalty += one(fast.penalty < slow.penalty)
				t.mpi += one(fast.mpi < slow.mpi)
				t.cpi += one(fast.cpi < slow.cpi)
			}
		}
	}
	return t
}
