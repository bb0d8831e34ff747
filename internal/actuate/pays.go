// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"homenode/internal/action"
	"homenode/internal/migration"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// judge decides whether it pays to move a workload's remote memory; the job keeps the
// verdict. A window has no page sizes: all pages are priced as small ones, which is too
// high for huge pages.
func (r *round) judge(j *Job, wl *window.Workload, p pages) {
	if p.all == 0 {
		j.Pays = unit.None[migration.Verdict]()
		return
	}
	cpus := j.Nodes.Intersect(r.withCPUs)
	fill, crowded := r.crowd(j, wl, p)
	j.Pays = unit.Some(migration.Pays(migration.Stake{
		Bytes: p.all, RemoteRate: r.remoteRate(j, wl, p), Difference: r.costs.Difference(cpus, p.by, j.Nodes), Horizon: r.cfg.Horizon,
		CPU: wl.CPU, Stalled: window.FeaturesOf(*wl, r.w.Length).MSR, Part: r.partOf(j, wl, p), Slower: r.costs.Slower(cpus, p.by, j.Nodes),
		Requests: migration.RequestsOf(unit.OptOf(wl.Loads()), wl.UncoreRequests, r.w.Length, r.costs.Local(cpus)), Fill: fill, Crowded: crowded,
		PerByte: r.costs.Price(p.by, j.Nodes, false), Undone: r.undone(j, p), Ratio: r.cfg.PayRatio,
		Private: p.anon, Enough: j.Floor + r.threshold(p),
	}))
}

// remoteRate is loads/s of the pages that would move, assuming that all of a workload's
// pages are read equally. Before the CPUs are set no CPU reads from its later place:
// then these are all loads × the share of the pages that is elsewhere. Afterwards they
// are the remote loads: all of them if it runs on one node; on several, the pages of
// one home node are remote for the CPUs of another.
func (r *round) remoteRate(j *Job, wl *window.Workload, p pages) unit.Value[float64] {
	remote, known := wl.RemoteLoads.Get()
	seconds := r.w.Length.Seconds()
	if !known || seconds <= 0 {
		return unit.UnknownValue[float64]("its remote loads are not counted" + colon(wl.RemoteLoads.From))
	}
	all, ok := wl.Loads()
	if ok && all == 0 && wl.CPU.Or(1) > 0 {
		return unit.UnknownValue[float64]("it ran, but no load was counted")
	}
	if j.Stage == StageCPUs || j.Stage == StageAhead {
		if !ok {
			return unit.UnknownValue[float64]("its local loads are not counted" + colon(wl.LocalLoads.From))
		}
		return unit.Estimated(all*float64(p.all)/float64(p.total)/seconds, "all loads ("+wl.RemoteLoads.From+") × share of its pages elsewhere")
	}
	if share := float64(p.all) / r.remoteBytes(j, wl, p); share < 1 {
		return unit.Estimated(float64(remote)*share/seconds, wl.RemoteLoads.From+" × share of its remote pages that would move")
	}
	return unit.ValueOf(float64(remote)/seconds, wl.RemoteLoads.How, wl.RemoteLoads.From)
}

// partOf is the share of all loads that remoteRate is.
func (r *round) partOf(j *Job, wl *window.Workload, p pages) unit.Opt[float64] {
	rate, known := r.remoteRate(j, wl, p).Get()
	all, ok := wl.Loads()
	return unit.OptOf(rate*r.w.Length.Seconds()/all, known && ok && all > 0)
}

func colon(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

// remoteBytes is the memory that is remote for its CPUs, weighted by the use of each
// node's CPUs: unknown use counts the same on all home nodes.
func (r *round) remoteBytes(j *Job, wl *window.Workload, p pages) float64 {
	sum, weight := 0.0, 0.0
	for i := range r.w.Nodes {
		n, cpu := &r.w.Nodes[i], 0.0
		if len(wl.CPUByNode) == len(r.w.Nodes) && wl.CPU.Or(0) > 0 {
			cpu = wl.CPUByNode[i].Or(0)
		} else if j.Nodes.Has(n.ID) {
			cpu = 1
		}
		sum, weight = sum+float64(cpu*float64(p.total-bytesOn(wl, i))), weight+cpu
	}
	if weight == 0 {
		return float64(p.all)
	}
	return sum / weight
}

// worth says that pages may be moved, by cost.
func (r *round) worth(j *Job) bool {
	v, ok := j.Pays.Get()
	return !ok || v.Answer == migration.PaysYes || v.Answer == migration.PaysCannotTell && r.cfg.WhenUnknown == MoveAnyway
}

// staying is the reason why remote memory is not moved now; false if it is moved. A
// move in progress stops after NoProgressWindows in a row in which it does not pay: the
// rest may be read less than what was moved first.
func (r *round) staying(j *Job, p pages) (why action.Reason, stays bool) {
	worth := r.worth(j)
	wait := r.patience(j, p)
	switch {
	case j.Waiting: // since before its CPUs were set
		return r.waits(j, p, max(r.cfg.NoProgressWindows, wait)), true
	case j.Moving && worth:
		j.Turn = 0
		return why, false
	case j.Moving:
		if j.Turn++; j.Turn < r.cfg.NoProgressWindows {
			return why, false
		}
		return j.short(), true
	case !worth:
		return j.short(), true
	case wait > 0:
		return r.waits(j, p, wait), true
	}
	return why, false
}

// short is the last verdict as a reason.
func (j *Job) short() action.Reason {
	v, _ := j.Pays.Get()
	return v.Short()
}

// waits is the number of windows in which moving must have been worth it.
func (r *round) waits(j *Job, p pages, windows int) action.Reason {
	return action.Reason{Rule: "actuate.waits", Numbers: []action.Number{
		{Name: "bytes_elsewhere", Value: unit.Measured(float64(p.all), "pages by node"), Unit: "bytes"},
		action.Counted("windows_to_pay", float64(windows), "windows"),
		action.Counted("moves", float64(len(r.movesOf(j.Workload))), "times"),
		{Name: "horizon", Value: unit.Measured(r.cfg.Horizon.Seconds(), "configuration"), Unit: "s"},
	}}
}

// weigh counts a settled workload's window for or against moving its memory:
//
//  1. A window counts by its length × (gain / cost − 1). The sum is above 0 while
//     moving has paid on average since it began to pay. So a workload that is busy in
//     every other window counts with its average.
//  2. Once it has not paid on average, counting starts again.
//  3. No sum outlives a horizon without reads: a single window, however busy, predicts
//     no more than the horizon.
//
// What is unknown counts as WhenUnknown says.
func (r *round) weigh(j *Job) {
	j.Credit = min(j.Credit+float64(r.times(j)*r.w.Length.Seconds()), r.cfg.Horizon.Seconds()) // 1, 3
	if !(j.Credit > 0) {                                                                       // 2
		j.Turn, j.Credit = 0, 0
		return
	}
	j.Turn++
}

// times is by how many times the gain exceeds the cost.
func (r *round) times(j *Job) float64 {
	v, _ := j.Pays.Get()
	gain, known := v.Gain.Get()
	least := v.Cost.Or(0) * r.cfg.PayRatio
	switch {
	case known && least > 0 && v.Answer != migration.PaysCannotTell:
		return gain/least - 1
	case r.worth(j):
		return 1
	}
	return -1
}

// reconsider checks again memory that was left elsewhere because moving did not pay, or
// had to wait.
func (r *round) reconsider(j *Job, wl *window.Workload, p pages) {
	wait := max(r.cfg.NoProgressWindows, r.patience(j, p))
	switch {
	case p.anon <= r.threshold(p) && !j.MemsSet: // it left by itself
		j.Waiting = false
		j.enter(StagePages)
		r.pursue(j, wl, p)
	case p.all <= r.threshold(p):
		j.Waiting, j.Turn, j.Credit, j.Why = false, 0, 0, action.Reason{}
	default:
		r.weigh(j)
		r.begins(j, p, wait)
	}
}

// begins moves memory that has waited, in a window in which that pays: a window in
// which it does not may be the first of many.
func (r *round) begins(j *Job, p pages, wait int) {
	switch {
	case !r.worth(j):
		j.Why = j.short()
	case j.Turn >= wait:
		r.resume(j, p)
	default:
		j.Why = r.waits(j, p, wait)
	}
}

// resume moves again what had settled.
func (r *round) resume(j *Job, p pages) {
	j.Waiting = false
	j.enter(StagePages)
	j.progress(p)
	r.move(j, p)
}
