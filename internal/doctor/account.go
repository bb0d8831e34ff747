// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"slices"
	"strings"

	"homenode/internal/snapshot"
	"homenode/internal/unit"
)

// Findings share one account, so that their costs add up to no more than the verdict.
//
//  1. A workload's waiting for memory (its stall cycles) is spent once: first on lines
//     that several nodes write (lineShare), then on remote memory (lostCPUs), and what
//     is left on queues in front of a busy controller.
//  2. A finding's cost is drawn from one of these, or from the cost of NUMA balancing.
//     A workload inside another one draws on the outer one, because the verdict counts
//     that one.
//  3. Findings that draw more than there is share it in proportion to what they draw.

// draw is what a finding takes from an account.
type draw struct {
	from account
	cpus float64
}

type account struct {
	of       accountKind
	workload int // in the window; 0 for what is the host's
}

type accountKind int

const (
	remoteMemory accountKind = iota
	queues
	balancing
)

// draws is a known cost as one draw; an unknown cost makes none.
func draws(from account, cost unit.Value[float64]) []draw {
	if v, ok := cost.Get(); ok {
		return []draw{{from, v}}
	}
	return nil
}

// remoteOf is the account of a workload's remote memory.
func (l view) remoteOf(k int) account { return account{remoteMemory, l.owner(k)} }

// owner is the outermost workload with a known loss that contains this one (2).
func (l view) owner(k int) int {
	if k < 0 {
		return 0
	}
	best := k
	for i, w := range l.Window.Workloads {
		if within(l.Window.Workloads[best].ID, w.ID) && i != best && l.lostCPUs(w).cpus.Known() {
			best = i
		}
	}
	return best
}

// within says that a workload lies in another one, or is the same one.
func within(id, outer string) bool {
	return id == outer || strings.HasPrefix(id, strings.TrimSuffix(outer, "/")+"/")
}

// balance is what an account has (1).
func (l view) balance(a account) float64 {
	if a.of == balancing {
		return l.balancingCost().Or(0)
	}
	w := at(l.Window.Workloads, a.workload)
	lost := l.lostCPUs(w).cpus.Or(0)
	if a.of == remoteMemory {
		return lost
	}
	return max(0, l.stalledCPUs(w.ID).Or(0)*(1-l.lineShare(w.ID))-lost)
}

// charge makes the findings share what there is (3).
func (l view) charge(all []Finding) {
	drawn, have := map[account]float64{}, map[account]float64{}
	for _, f := range all {
		for _, d := range f.draws {
			drawn[d.from] += d.cpus
			have[d.from] = l.balance(d.from)
		}
	}
	for i := range all {
		f, cost, shared := &all[i], 0.0, false
		for _, d := range f.draws {
			part := 1.0
			if have[d.from] < drawn[d.from] {
				part, shared = have[d.from]/drawn[d.from], true
			}
			cost += d.cpus * part
		}
		if shared {
			f.Cost = unit.Estimated(cost, f.Cost.From+"; its part: other findings are about the same loss")
		}
	}
}

// contended says that a line is written by threads on several nodes (rule shared-line).
func (l view) contended(line snapshot.Line) bool {
	return total(line.Loads)+total(line.Stores) >= l.c.MinSamples && line.Writers >= 2 && l.samplers(line.Stores).Len() >= 2
}

// users are the workloads whose samples a line has.
func users(line snapshot.Line) []snapshot.LineUser {
	if len(line.Users) > 0 {
		return line.Users
	}
	return []snapshot.LineUser{{PID: line.PID, Workload: line.Workload, Samples: total(line.Loads) + total(line.Stores)}}
}

// sampled is the number of samples of a workload, and how many of them are of contended
// lines; known is false when not all of them are known.
func (l view) sampled(id string) (all, onLines uint64, known bool) {
	if l.noSamples() != "" || l.Samples.Stores == 0 {
		return 0, 0, false
	}
	for _, p := range l.Samples.Places {
		if within(p.Workload, id) {
			all += total(p.Loads) + total(p.Stores)
		}
	}
	for _, line := range l.Samples.Lines {
		for _, u := range users(line) {
			if within(u.Workload, id) && l.contended(line) {
				onLines += u.Samples
			}
		}
	}
	return all, onLines, all > 0 && onLines <= all
}

// lineShare is the part of a workload's samples that fell on contended lines. It is
// taken for the part of its waiting. 0 without samples.
func (l view) lineShare(id string) float64 {
	all, onLines, known := l.sampled(id)
	if !known {
		return 0
	}
	return float64(onLines) / float64(all)
}

// lineCost is the time that all users of the line spend waiting for it.
func (l view) lineCost(line snapshot.Line) unit.Value[float64] {
	sum, known, why := 0.0, false, ""
	for _, u := range users(line) {
		all, _, ok := l.sampled(u.Workload)
		stalled := l.stalledCPUs(u.Workload)
		v, ok2 := stalled.Get()
		switch {
		case !ok:
			why = "the samples of its workload are not all known"
		case !ok2:
			why = because(stalled)
		default:
			sum, known = sum+v*float64(u.Samples)/float64(all), true
		}
	}
	if !known {
		return unit.UnknownValue[float64](orElse(why, "its users are unknown"))
	}
	return unit.Estimated(sum, "stall cycles of its workload × its part of the samples")
}

// lostToLines is what all contended lines cost.
func (l view) lostToLines() (sum float64) {
	for _, line := range l.Samples.Lines {
		if l.noSamples() == "" && l.Samples.Stores > 0 && l.contended(line) {
			sum += l.lineCost(line).Or(0)
		}
	}
	return sum
}

// lostOtherwise is the cost of findings about neither remote memory nor lines.
func lostOtherwise(found []Finding) (sum float64) {
	for _, f := range found {
		remote := slices.ContainsFunc(f.draws, func(d draw) bool { return d.from.of == remoteMemory })
		if !remote && f.Rule != sharedLineID {
			sum += f.Cost.Or(0)
		}
	}
	return sum
}
