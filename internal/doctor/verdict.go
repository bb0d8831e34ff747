// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
	"strings"

	"homenode/internal/action"
	"homenode/internal/render"
	"homenode/internal/snapshot"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// Is NUMA the bottleneck?
//
//  1. Without nodes, or in a guest whose topology is flat or wrong, the answer is
//     "cannot tell". With one node it is no.
//  2. If no CPU time was used, there is nothing to judge.
//  3. A finding that decides (a node's memory or bandwidth is used up while others
//     have some) is a yes.
//  4. Add up what the workloads lose to remote memory (lostCPUs), of nested ones the
//     outermost with a known loss. If those have Covered of the busy time, the rest is
//     assumed to lose the same share. The cost of lines that several nodes write is
//     added.
//  5. The certain loss reaches Bottleneck: yes.
//  6. The largest possible loss (unknown workloads at their bound, unattributed time
//     with all reads remote) stays below it: no.
//  7. Otherwise "cannot tell", and the verdict names what is missing.
func verdict(s snapshot.Snapshot, c Config, found []Finding) Verdict {
	l := view{s, c}
	if v, done := l.atOnce(found); done {
		return v
	}
	t := l.tally()
	busy := t.busy.Or(0)
	lost, least := t.extrapolated(c)+t.lines, t.lost+t.lines
	v := Verdict{How: t.how, Numbers: t.numbers(lost, lostOtherwise(found), c)}
	most := least + t.unknown // 6
	if t.covers(c) {
		most = max(lost, least)
	}
	switch i := slices.IndexFunc(found, func(f Finding) bool { return f.Decides }); {
	case i >= 0: // 3
		v.Answer, v.Why, v.How = Yes, strings.ToLower(found[i].Title[:1])+found[i].Title[1:], found[i].How
	case lost/busy >= c.Bottleneck && (t.covers(c) || least/busy >= c.Bottleneck): // 5
		v.Answer, v.Why = Yes, t.sentence(lost)
	case most/busy < c.Slight:
		v.Answer, v.Why = No, t.sentence(most)
	case most/busy < c.Bottleneck:
		v.Answer, v.Why = No, "but not nothing: "+t.sentence(most)
	default: // 7
		v.Answer, v.How = CannotTell, unit.HowUnknown
		v.Why = fmt.Sprintf("between %s and %s of the busy CPU time may be lost to remote memory", render.Percent(least/busy), render.Percent(min(1, most/busy)))
		v.Missing = t.missing()
	}
	return v
}

// atOnce is numbers 1 and 2.
func (l view) atOnce(found []Finding) (Verdict, bool) {
	busy := l.busy()
	used, known := busy.Get()
	cannot := func(why, missing string) (Verdict, bool) {
		return Verdict{Answer: CannotTell, Why: why, Missing: missing}, true
	}
	switch n := len(l.Machine.Nodes); {
	case n == 0:
		return cannot("the snapshot has no nodes", "a kernel with CONFIG_NUMA, or /sys/devices/system/node")
	case slices.ContainsFunc(found, func(f Finding) bool { return f.Rule == "guest-topology" }):
		return cannot("this guest's topology is flat or wrong, so local reads in here mean nothing", "a snapshot of the host below")
	case n == 1:
		return Verdict{Answer: No, Why: "this machine has one node", How: unit.HowMeasured}, true
	case !known:
		return cannot("the CPU time of the nodes is unknown: "+because(busy), "/proc/stat")
	case used < l.c.IdleCPUs:
		v, _ := cannot(fmt.Sprintf("nothing ran while we looked: %s CPUs were busy", render.Amount(used)), "a look while the load runs")
		v.Numbers = []action.Number{{Name: "busy", Value: busy, Limit: unit.Some(l.c.IdleCPUs), Unit: "cpus"}}
		return v, true
	}
	return Verdict{}, false
}

// tally is number 4.
type tally struct {
	busy    unit.Value[float64]
	lost    float64 // to remote memory, by workloads with a known loss
	lines   float64 // to lines that several nodes write
	covered float64 // their CPU time
	unknown float64 // what the others lose at most
	how     unit.Source
	why     []string // why a loss is unknown, each once
}

func (l view) tally() tally {
	t := tally{busy: l.busy(), how: unit.HowMeasured, lines: l.lostToLines()}
	seen, worst := 0.0, l.worstShare()
	for i, w := range l.Window.Workloads {
		cpu := w.CPU.Or(0)
		if !l.below(i) {
			seen += cpu
		}
		lost := l.lostCPUs(w)
		if v, ok := lost.cpus.Get(); ok {
			if l.owner(i) != i {
				continue
			}
			t.lost, t.covered = t.lost+v, t.covered+cpu
			if lost.remote.Known() && cpu > 0 {
				t.how = min(t.how, lost.remote.How)
			}
			continue
		}
		if l.below(i) {
			continue
		}
		t.unknown += lost.atMost.Or(cpu * worst)
		if why := because(lost.cpus); !slices.Contains(t.why, why) {
			t.why = append(t.why, why)
		}
	}
	if rest := t.busy.Or(0) - seen; rest > 0 {
		t.unknown += rest * worst
		if rest > l.c.IdleCPUs {
			t.why = append(t.why, fmt.Sprintf("%s CPUs' worth of time belong to no workload in the snapshot", render.Amount(rest)))
		}
	}
	if t.covered == 0 {
		t.how = unit.HowUnknown
	}
	return t
}

// below says that a workload lies in another one, whose figures include its own.
func (l view) below(i int) bool {
	id := l.Window.Workloads[i].ID
	return slices.ContainsFunc(l.Window.Workloads, func(o window.Workload) bool {
		return o.ID != id && strings.HasPrefix(id, strings.TrimSuffix(o.ID, "/")+"/")
	})
}

// worstShare is the share of time that is lost with every read remote, to the farthest
// node: (k − 1) / k. Without distances, all of it.
func (l view) worstShare() float64 {
	worst, ratio := 0.0, l.ratios()
	for _, from := range l.Machine.Nodes {
		for _, to := range l.Machine.Nodes {
			if k, _, ok := ratio(from.ID, to.ID); ok {
				worst = max(worst, (k-1)/k)
			}
		}
	}
	if worst == 0 {
		return 1
	}
	return worst
}

func (t tally) covers(c Config) bool {
	busy := t.busy.Or(0)
	return busy > 0 && t.covered >= c.Covered*busy
}

// extrapolated is the loss with the rest assumed to lose the same share, where that is
// allowed.
func (t tally) extrapolated(c Config) float64 {
	if !t.covers(c) {
		return t.lost
	}
	return t.lost * max(1, t.busy.Or(0)/t.covered)
}

func (t tally) sentence(lost float64) string {
	busy := t.busy.Or(0)
	how := map[unit.Source]string{
		unit.HowMeasured: "reads counted", unit.HowModelled: "reads counted by a model", unit.HowEstimated: "reads estimated from pages",
	}[t.how]
	if how == "" {
		how = "reads unknown, taken at their worst"
	}
	to := "remote memory"
	if t.lines > 0 {
		to += " and to lines that several nodes write"
	}
	return fmt.Sprintf("about %s of %s busy CPUs, %s, are lost to %s (%s, cost estimated)", render.Amount(lost), render.Amount(busy), render.Percent(min(1, lost/busy)), to, how)
}

// numbers are the figures that the findings' costs add up to: lost, the part of it that
// is lost to lines, and other losses.
func (t tally) numbers(lost, otherwise float64, c Config) []action.Number {
	busy := t.busy.Or(0)
	out := []action.Number{
		{Name: "busy", Value: t.busy, Unit: "cpus"},
		{Name: "lost", Value: unit.Estimated(lost, "sum over workloads: stall cycles × remote share × (1 − local/remote latency)"), Limit: unit.Some(c.Bottleneck * busy), Unit: "cpus"},
		{Name: "lost_at_most_besides", Value: unit.Estimated(t.unknown, "workloads and CPU time whose loss is unknown, at its bound"), Unit: "cpus"},
		{Name: "covered", Value: unit.Estimated(t.covered, "CPU time of workloads with a known loss"), Limit: unit.Some(c.Covered * busy), Unit: "cpus"},
	}
	if t.lines > 0 {
		out = append(out, action.Number{Name: "lost_to_lines", Value: unit.Estimated(t.lines, "of lost: stall cycles × part of the samples that fell on lines that several nodes write"), Unit: "cpus"})
	}
	if otherwise > 0 {
		out = append(out, action.Number{Name: "lost_otherwise", Value: unit.Estimated(otherwise, "beside lost: waiting for busy controllers and CPUs, NUMA balancing, far interrupts"), Unit: "cpus"})
	}
	return out
}

func (t tally) missing() string {
	if len(t.why) == 0 {
		return "counters of local and remote DRAM reads, and of stall cycles (perf, on bare metal)"
	}
	return strings.Join(t.why, "; ") + ": counters of DRAM reads and stall cycles would tell (perf, on bare metal)"
}
