// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"strings"
	"time"

	"homenode/internal/kernel"
	"homenode/internal/window"
)

// Counting says whether memory accesses are counted. Where they are not, every local access
// ratio is an estimate.
type Counting struct {
	Counts bool   `json:"is_counted"`
	Why    string `json:"why,omitempty"`    // why not
	Remedy string `json:"remedy,omitempty"` // what would change it
}

// countingOf judges a window; false: it does not say, because it has no workload, or only
// workloads that were counted for the first time.
func countingOf(w window.Window) (Counting, bool) {
	why := ""
	for i := range w.Workloads {
		wl := &w.Workloads[i]
		if wl.LocalLoads.V.Known() && wl.RemoteLoads.V.Known() {
			return Counting{Counts: true}, true
		}
		if from := wl.LocalLoads.From; why == "" && !kernel.NotYetCounted(from) {
			why = from
		}
	}
	if why == "" {
		return Counting{}, false
	}
	return Counting{Why: why, Remedy: remedy(why)}, true
}

// remedy is what makes this host count, by why it does not.
func remedy(why string) string {
	has := func(parts ...string) bool {
		for _, p := range parts {
			if strings.Contains(why, p) {
				return true
			}
		}
		return false
	}
	switch {
	case has("switched off"):
		return "set events: auto in the configuration"
	case has("not permitted", "CAP_", "permission"):
		return "run as root, or give it CAP_PERFMON and CAP_BPF"
	case has("perf_event hierarchy"):
		return "cgroup v2, or with v1 the same path in the perf_event hierarchy for its processes"
	case has("no such event"):
		return "nothing on this CPU; with kernel.numa_balancing=1 the estimates come from NUMA hint faults, which is better than from CPU time"
	case has("not supported", "no such file", "no such device", "no perf"):
		return "a PMU: a host of its own, or a VM whose hypervisor passes one through (KVM: -cpu host,pmu=on)"
	case has("model off"):
		return "switch the lab's model on"
	}
	return "'homenode events' tries to open each event, and says what fails"
}

// countingEvery is how often the log repeats that nothing is counted.
const countingEvery = 24 * time.Hour

// trier is a reader that can say without a workload why nothing would be counted.
type trier interface{ WhyNotCounted() string }

// countingNow judges a window. As long as no window had a workload, the reader tries the
// events itself. It says only that they do not count: that they would is not a count.
func (a *Agent) countingNow(w window.Window) (Counting, bool) {
	now, ok := countingOf(w)
	old := a.status.Counting
	switch {
	case ok:
		return now, true
	case old != nil:
		return *old, true
	case len(w.Workloads) > 0:
		return Counting{}, false
	}
	t, ok := a.reader.(trier)
	if !ok || a.tried {
		return Counting{}, false
	}
	a.tried = true
	why := t.WhyNotCounted()
	return Counting{Why: why, Remedy: remedy(why)}, why != ""
}

// tellCounting keeps the status up to date. It logs a change, and once a day that nothing
// is counted.
func (a *Agent) tellCounting(w window.Window) {
	now, ok := a.countingNow(w)
	if !ok {
		return
	}
	old := a.status.Counting
	a.status.Counting = &now
	since := w.At.Sub(a.counting)
	switch due := a.counting.IsZero() || since < 0 || since >= countingEvery; {
	case now.Counts:
		if old != nil && !old.Counts {
			a.o.Log.Info("memory accesses are counted again")
		}
		a.counting = time.Time{}
	case due:
		a.counting = w.At
		a.o.Log.Warn("estimates only: no memory access is counted", "why", now.Why, "remedy", now.Remedy)
	}
}
