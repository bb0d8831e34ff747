// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Replica is one workload of a service. Orders reach hosts, so all replicas of a host are bound
// together.
type Replica struct {
	Host     string `json:"host"`
	Workload string `json:"workload"`
}

// Plan is how one service is to be bound.
type Plan struct {
	Service  string    `json:"service"`
	Replicas []Replica `json:"replicas"`
	// Stages are the shares of the replicas that are bound, ascending; the last is 1.
	Stages []float64 `json:"stage_ratios"`
	// Seed chooses which hosts come first.
	Seed uint64 `json:"seed"`
	// LowerIsBetter: the indicator is a time, such as a latency; otherwise more of it is better.
	LowerIsBetter bool `json:"lower_is_better"`
	// Margin is the harm that must be excluded before a stage is widened, a share of the indicator.
	Margin float64 `json:"margin_ratio"`
	// Bin is how long the time is over which each replica shows one figure.
	Bin time.Duration `json:"bin_ns"`
	// In bins: Before is watched before the first replica is bound. Washout is left out after a
	// binding. Least is the shortest a stage lasts, Longest when it ends without being widened.
	// Silent is for how long most of the bound replicas may show nothing.
	Before  int `json:"before_bins"`
	Washout int `json:"washout_bins"`
	Least   int `json:"least_bins"`
	Longest int `json:"longest_bins"`
	Silent  int `json:"silent_bins"`
}

// Usual is a plan with the usual figures and bins of ten minutes.
func Usual(service string, replicas []Replica) Plan {
	return Plan{
		Service: service, Replicas: replicas, Stages: []float64{0.1, 0.25, 0.5, 1}, Seed: 1, LowerIsBetter: true, Margin: 0.02,
	}.In(10 * time.Minute)
}

// In is the plan with other bins, which must be above 0, and the usual times: two hours before, ten
// minutes of washout, half an hour of silence, a day at most for each stage.
func (p Plan) In(bin time.Duration) Plan {
	bins := func(d time.Duration, least int) int { return max(least, int((d+bin-1)/bin)) }
	p.Bin, p.Before, p.Washout, p.Least = bin, bins(2*time.Hour, 4), bins(10*time.Minute, 1), 3
	p.Silent, p.Longest = bins(30*time.Minute, 3), bins(24*time.Hour, 12)
	return p
}

// HostCount is how many hosts have a replica.
func (p Plan) HostCount() int {
	hosts := map[string]bool{}
	for _, r := range p.Replicas {
		hosts[r.Host] = true
	}
	return len(hosts)
}

// Bounds of a plan, so that a state fits into memory and a test has something to compare.
const (
	leastHosts   = 6
	leastLeft    = 2 // hosts that are not bound, before the last stage
	mostReplicas = 10_000
	mostBins     = 100_000
	mostFigures  = 6_000_000
)

// Check refuses what cannot be carried out.
func (p Plan) Check() error {
	seen := map[Replica]bool{}
	for _, r := range p.Replicas {
		if r.Host == "" || r.Workload == "" || seen[r] {
			return fmt.Errorf("rollout of %q: replica %q on host %q: want each once, with both names", p.Service, r.Workload, r.Host)
		}
		seen[r] = true
	}
	hosts := p.HostCount()
	switch n := len(p.Stages); {
	case p.Service == "":
		return fmt.Errorf("rollout: the service has no name")
	case hosts < leastHosts || len(p.Replicas) > mostReplicas:
		return fmt.Errorf("rollout of %q: %d replicas on %d hosts: want %d hosts or more, and at most %d replicas: fewer do not show what differs", p.Service, len(p.Replicas), hosts, leastHosts, mostReplicas)
	case n < 2 || !slices.IsSorted(p.Stages) || len(slices.Compact(slices.Clone(p.Stages))) != n || !(p.Stages[0] > 0) || p.Stages[n-1] != 1:
		return fmt.Errorf("rollout of %q: stages %v: want ascending shares above 0 that end with 1", p.Service, p.Stages)
	case p.Stages[n-2] > 0.75:
		return fmt.Errorf("rollout of %q: stages %v: the last but one leaves less than a quarter to compare with: want at most 0.75", p.Service, p.Stages)
	case !(p.Margin > 0 && p.Margin < 1):
		return fmt.Errorf("rollout of %q: margin %v: want a share between 0 and 1, such as 0.02", p.Service, p.Margin)
	case p.Bin < time.Second || p.Bin > 24*time.Hour:
		return fmt.Errorf("rollout of %q: bins of %v: want 1s to 24h", p.Service, p.Bin)
	case p.Silent > p.Before:
		return fmt.Errorf("rollout of %q: %d silent bins, %d before: want as many before, so that silence shows before anything is bound", p.Service, p.Silent, p.Before)
	case p.Before < 2 || p.Washout < 0 || p.Least < 1 || p.Longest < p.Least || p.Silent < 1 || p.Before+p.Longest*n > mostBins:
		return fmt.Errorf("rollout of %q: bins: %d before (2 or more), %d washed out, %d to %d a stage, %d silent: want at most %d in all", p.Service, p.Before, p.Washout, p.Least, p.Longest, p.Silent, mostBins)
	case len(p.Replicas)*(p.Before+p.Longest*len(p.Stages)) > mostFigures:
		return fmt.Errorf("rollout of %q: %d replicas in %d bins a stage: want at most %d figures in all: give longer bins", p.Service, len(p.Replicas), p.Longest, mostFigures)
	}
	return p.checkStages()
}

// checkStages refuses stages that leave too little to compare with, which a host with many replicas
// may make them do.
func (p Plan) checkStages() error {
	order := p.Order()
	for stage := range p.Stages[:len(p.Stages)-1] {
		left := map[string]bool{}
		bound := p.bound(order, stage)
		for _, i := range order[bound:] {
			left[p.Replicas[i].Host] = true
		}
		if len(left) < leastLeft {
			return fmt.Errorf("rollout of %q: stage %d binds %d of %d replicas, and leaves %d hosts to compare with: want %d: try another seed, or a service on more hosts", p.Service, stage+1, bound, len(order), len(left), leastLeft)
		}
	}
	return nil
}

// Order is the order in which replicas are bound, by index: hosts in an order drawn from the
// seed, the replicas of a host together.
func (p Plan) Order() []int {
	by := map[string][]int{}
	var hosts []string
	for i, r := range p.Replicas {
		if by[r.Host] == nil {
			hosts = append(hosts, r.Host)
		}
		by[r.Host] = append(by[r.Host], i)
	}
	slices.Sort(hosts)
	rand.New(rand.NewPCG(p.Seed, 25)).Shuffle(len(hosts), func(i, j int) { hosts[i], hosts[j] = hosts[j], hosts[i] })
	order := make([]int, 0, len(p.Replicas))
	for _, h := range hosts {
		order = append(order, by[h]...)
	}
	return order
}

// bound is how many replicas of the order are bound in a stage: whole hosts, two or more.
func (p Plan) bound(order []int, stage int) int {
	want := int(math.Round(p.Stages[stage] * float64(len(order))))
	hosts, n := 0, 0
	for n < len(order) && (n < want || hosts < 2) {
		h := p.Replicas[order[n]].Host
		for n < len(order) && p.Replicas[order[n]].Host == h {
			n++
		}
		hosts++
	}
	return n
}

// Counts are how many replicas are bound in each stage.
func (p Plan) Counts() []int {
	order := p.Order()
	all := make([]int, len(p.Stages))
	for stage := range p.Stages {
		all[stage] = p.bound(order, stage)
	}
	return all
}
