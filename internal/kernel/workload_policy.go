// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"
	"time"

	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
)

const (
	// policyShare of the sampled pages under a policy of the workload's own make
	// it pinned. Lower sees every small bound buffer; higher lets a cpuset rebind
	// what somebody placed on purpose (docs: binding without the stall).
	policyShare = 0.1
	// policyProcesses are sampled of a workload; more cost more. policyAgain are, where
	// there was no policy at the last look: a new one shows in each of its processes, or
	// they are looked at all.
	policyProcesses, policyAgain = 8, 2
	// policySettled is the round of the second look: a new workload has come to rest.
	policySettled = 4
	// policyCost is the share of one CPU that looking again may take: the kernel walks
	// every page of a process for its numa_maps, some 1.5 ms for 100 MiB. Higher finds a
	// late mbind sooner.
	policyCost = 0.0001
	// policySaved is the most of it that is saved up: one look of a small workload.
	policySaved = 2 * time.Millisecond
)

// policyTurn rations the looks at workloads that were looked at before.
type policyTurn struct {
	left time.Duration // below 0: owed
	at   time.Time
	next string // whose turn it is in this round; "": nobody's
}

// beginPolicies finds who was not looked at for longest, if there is time for a look.
func (r *Reader) beginPolicies() {
	p, now := &r.policy, r.cfg.Now()
	if !p.at.IsZero() {
		p.left = min(policySaved, p.left+time.Duration(policyCost*float64(now.Sub(p.at))))
	}
	p.at, p.next = now, ""
	if p.left <= 0 {
		return
	}
	var oldest *workload
	for _, w := range r.workloads {
		if w.seen > policySettled && (oldest == nil || w.policyAt < oldest.policyAt || w.policyAt == oldest.policyAt && w.ID < oldest.ID) {
			oldest, p.next = w, w.ID
		}
	}
}

// lookAtPolicies samples the memory policies when the workload is new, once more when it
// has settled, and when it is its turn after that.
func (r *Reader) lookAtPolicies(w *workload) {
	switch {
	case w.seen == 0:
		w.policy = r.policyOf(w, policyProcesses)
	case w.seen == policySettled:
		r.lookAgain(w)
	case r.policy.next == w.ID:
		began := unix.ThreadCPU() + r.patient.cpu
		r.lookAgain(w)
		r.policy.left -= unix.ThreadCPU() + r.patient.cpu - began
	default:
		return
	}
	w.policyAt = r.seq
}

func (r *Reader) lookAgain(w *workload) {
	if w.policy != "" || r.policyOf(w, policyAgain) != "" {
		w.policy = r.policyOf(w, policyProcesses)
	}
}

// policyOf says why the workload's memory counts as pinned by itself; "": it does not. It
// is a sample: of what is too large, what was read counts.
func (r *Reader) policyOf(w *workload, processes int) string {
	var all, explicit uint64
	example := ""
	err := r.eachVMA(w, processes, func(pid int, v procfs.VMA) {
		bytes := v.Pages() * v.PageSize
		all += bytes
		if v.Explicit() {
			explicit += bytes
			example = fmt.Sprintf("%s in /proc/%d/numa_maps", v.Policy, pid)
		}
	})
	r.problem(err)
	share, ok := unit.RatioOf(float64(explicit), float64(all)).Get()
	if !ok || share < policyShare {
		return ""
	}
	return fmt.Sprintf("%s of its sampled pages have a policy of their own (%s)", share, example)
}
