// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"homenode/internal/action"
	"homenode/internal/agent/decisions"
	"homenode/internal/window"
)

// Totals count what an agent has done since it started.
type Totals struct {
	Rounds       uint64 `json:"rounds"`
	FailedRounds uint64 `json:"failed_rounds"`
	// Decisions by kind ("bind", "unbind", …; "none" means that no place was
	// found).
	Decisions map[string]uint64 `json:"decisions,omitempty"`
	// Steps by kind and outcome: "set-cpus done".
	Steps       map[string]uint64 `json:"steps,omitempty"`
	MovedBytes  uint64            `json:"moved_bytes"`
	Reloads     uint64            `json:"reloads"`
	BadReloads  uint64            `json:"bad_reloads"`
	FileErrors  uint64            `json:"file_errors"` // decisions, recording, histories, status
	RoundTimes  Histogram         `json:"round_times"`
	DecideTimes Histogram         `json:"decide_times"`
}

// Histogram counts durations up to each of its bounds.
type Histogram struct {
	Counts [len(histogramBounds)]uint64 `json:"counts"` // not cumulative; above the last bound: Count − their sum
	Count  uint64                       `json:"count"`
	Sum    time.Duration                `json:"sum_ns"`
}

// histogramBounds range from a decision (MAO promises 1 ms, homenode 100 µs) to a round
// with page moves.
var histogramBounds = [...]time.Duration{
	50 * time.Microsecond, 100 * time.Microsecond, 250 * time.Microsecond, time.Millisecond, 5 * time.Millisecond, 20 * time.Millisecond,
	100 * time.Millisecond, 500 * time.Millisecond, 2 * time.Second, 10 * time.Second, 60 * time.Second,
}

// Bounds are the upper bounds of Counts.
func (h Histogram) Bounds() []time.Duration { return histogramBounds[:] }

func (h *Histogram) observe(d time.Duration) {
	h.Count++
	h.Sum += d
	for i, b := range histogramBounds {
		if d <= b {
			h.Counts[i]++
			return
		}
	}
}

func (t *Totals) decided(e decisions.Entry) {
	if t.Decisions == nil {
		t.Decisions = map[string]uint64{}
	}
	t.Decisions[string(e.Kind)]++
}

func (t *Totals) took(o action.Outcome) {
	if t.Steps == nil {
		t.Steps = map[string]uint64{}
	}
	t.Steps[string(o.Step.Kind)+" "+string(o.Status)]++
	t.MovedBytes += uint64(max(0, o.Moved))
}

// Excluded is a workload that is kept from being bound.
type Excluded struct {
	Workload string    `json:"workload"`
	Until    time.Time `json:"until"`
}

// View is the agent's state at the end of a round. It is shared, and never
// changed.
type View struct {
	Status       Status
	MaxWorkloads int // number of workloads with series of their own
	Decisions    string
}

// View is safe to call at any time, from any goroutine. It returns false before the
// first round has ended.
func (a *Agent) View() (View, bool) {
	v := a.view.Load()
	if v == nil {
		return View{}, false
	}
	return *v, true
}

// Config is what the agent was started with. API and metrics do not change until the end.
func (a *Agent) Config() Config {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.started
}

// publish stores the round for View.
func (a *Agent) publish() {
	a.sumUp()
	a.status.Decisions = a.o.Config.Decisions.Path
	a.status.Hub = a.hubStatus()
	a.view.Store(&View{Status: a.status, MaxWorkloads: a.o.Config.Metrics.MaxWorkloads, Decisions: a.o.Config.Decisions.Path})
}

// publishTotals is for a round that failed. The window stays the last one that was read,
// but the counters show that rounds fail.
func (a *Agent) publishTotals() {
	v, ok := a.View()
	if !ok {
		return
	}
	a.sumUp()
	v.Status.Rounds, v.Status.Totals, v.Status.Reload = a.status.Rounds, a.status.Totals, a.status.Reload
	a.view.Store(&v)
}

func (a *Agent) sumUp() {
	a.mu.Lock()
	a.totals.Reloads, a.totals.BadReloads, a.status.Reload = a.reloads.done, a.reloads.failed, a.reloads.last
	a.mu.Unlock()
	a.status.Totals = a.totals
	a.status.Totals.Decisions, a.status.Totals.Steps = maps.Clone(a.totals.Decisions), maps.Clone(a.totals.Steps)
}

// mostProblems is how many of a window's problems are reported one by one. If one file cannot
// be read in each of 2,000 cgroups, further reports say nothing new.
const mostProblems = 50

// tellProblems logs the problems that the last window did not have.
func (a *Agent) tellProblems(problems []string) {
	now := make(map[string]bool, len(problems))
	reported := 0
	for _, p := range problems {
		if !a.reported[p] && !now[p] {
			if reported++; reported <= mostProblems {
				a.o.Log.Warn("window", "problem", p)
			}
		}
		now[p] = true
	}
	if reported > mostProblems {
		a.o.Log.Warn("window", "more_problems", reported-mostProblems)
	}
	if len(a.reported) > 0 && len(now) == 0 {
		a.o.Log.Info("window: no problems any more")
	}
	a.reported = now
}

// fewProblems returns a window whose list of problems is short enough for a status. Their
// number is reported separately.
func fewProblems(w window.Window) window.Window {
	if n := len(w.Problems); n > mostProblems {
		w.Problems = append(slices.Clone(w.Problems[:mostProblems]), fmt.Sprintf("and %d more", n-mostProblems))
	}
	return w
}

// name gives workloads their services, and removes the approval of excluded ones.
func (a *Agent) name(w *window.Window) {
	a.o.Config.Name(w)
	for i := range w.Workloads {
		wl := &w.Workloads[i]
		wl.Approved, wl.Target = a.ordered(wl.ID, wl.Service, wl.Approved, wl.Target)
	}
	a.status.Excluded = a.excludedNow(w.At)
	for _, x := range a.status.Excluded {
		if i, ok := w.WorkloadIndex(x.Workload); ok {
			w.Workloads[i].Approved = false
		}
	}
	if a.observing() {
		for i := range w.Workloads {
			w.Workloads[i].Approved = false
		}
	}
	for i := range w.Workloads {
		a.tune(&w.Workloads[i])
	}
}

// tune adds what a service's rule holds besides names: devices, latency.
func (a *Agent) tune(wl *window.Workload) {
	for i := range a.o.Config.Services {
		s := &a.o.Config.Services[i]
		if s.Name != wl.Service || !s.matches(wl.ID) {
			continue
		}
		if i < len(a.near) {
			wl.Near = a.near[i]
		}
		if s.LatencyFile != "" {
			wl.Latency = a.latency.of(s.LatencyFile, wl.ID, time.Now(), a.period())
		}
		return
	}
}

// resolveNear finds the nodes of the services' devices, and warns of missing ones.
func (a *Agent) resolveNear() {
	a.near = a.near[:0]
	for _, s := range a.o.Config.Services {
		nodes, problems := NearNodes(a.reader.Machine(), s.Near)
		a.near = append(a.near, nodes)
		for _, p := range problems {
			a.o.Log.Warn("service "+s.Name, "problem", p)
		}
	}
}
