// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"
	"time"

	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
	"homenode/internal/window"
)

const (
	// policyShare: from this share of sampled pages under a policy of its own the
	// workload counts as pinned. Lower reacts to every small bound buffer; higher lets
	// a cpuset rebind memory that was placed on purpose (docs: binding without the
	// stall).
	policyShare = 0.1
	// policyProcesses processes of a workload are sampled; more cost more. policyAgain
	// are sampled where the last sample had no policy: a new one shows in each of its
	// processes, or all are read.
	policyProcesses, policyAgain = 8, 2
	// policySettled is the round of the second look, when a new workload has settled.
	policySettled = 4
	// policyCost is the share of one CPU that later looks may take: the kernel walks
	// every page of a process for its numa_maps, some 1.5 ms for 100 MiB. Higher finds a
	// late mbind sooner.
	policyCost = 0.0001
	// policySaved is the most of that time that is saved up: one look at a small
	// workload.
	policySaved = 2 * time.Millisecond
)

// policyCollector samples the memory policies of each workload: when it is new, once more
// when it has settled, and then in turns within policyCost.
type policyCollector struct {
	base
	of   map[string]*policySensor
	left time.Duration // of the time for later looks; below 0: owed
	at   time.Time
	next string // the workload whose turn it is in this round; "": none
}

// policySensor is a collector's sensor of one workload.
type policySensor struct {
	c    *policyCollector
	w    *workload
	seen uint64 // round of the last look
	why  string // its memory counts as pinned by itself; "": it does not
}

func newPolicyCollector() *policyCollector { return &policyCollector{of: map[string]*policySensor{}} }

func (c *policyCollector) attach(w *workload) sensor {
	c.of[w.ID] = &policySensor{c: c, w: w}
	return c.of[w.ID]
}

func (c *policyCollector) forget(id string) { delete(c.of, id) }

// begin finds the workload whose last look is oldest, if there is time for a look.
func (c *policyCollector) begin(rd *round) error {
	now := rd.now()
	if !c.at.IsZero() {
		c.left = min(policySaved, c.left+time.Duration(policyCost*float64(now.Sub(c.at))))
	}
	c.at, c.next = now, ""
	if c.left <= 0 {
		return nil
	}
	var oldest *policySensor
	for _, s := range c.of {
		if s.w.seen > policySettled && (oldest == nil || s.seen < oldest.seen || s.seen == oldest.seen && s.w.ID < oldest.w.ID) {
			oldest, c.next = s, s.w.ID
		}
	}
	return nil
}

// read adds to the binding that the cpuset's files gave.
func (s *policySensor) read(rd *round, out *window.Workload) error {
	s.look(rd)
	if s.why != "" {
		out.Binding.PinnedMems = true
		out.Binding.PinnedWhy = join(out.Binding.PinnedWhy, s.why)
	}
	return nil
}

// unknown leaves the binding as it is: nothing speaks against it.
func (s *policySensor) unknown(*round, *window.Workload, string) {}

func (s *policySensor) look(rd *round) {
	switch {
	case s.w.seen == 0:
		s.why = s.sample(rd, policyProcesses)
	case s.w.seen == policySettled:
		s.lookAgain(rd)
	case s.c.next == s.w.ID:
		began := unix.ThreadCPU() + rd.patient.cpu
		s.lookAgain(rd)
		s.c.left -= unix.ThreadCPU() + rd.patient.cpu - began
	default:
		return
	}
	s.seen = rd.seq
}

func (s *policySensor) lookAgain(rd *round) {
	if s.why != "" || s.sample(rd, policyAgain) != "" {
		s.why = s.sample(rd, policyProcesses)
	}
}

// sample says why the workload's memory counts as pinned by itself; "": it does not. If
// a file is too large, the part that was read counts.
func (s *policySensor) sample(rd *round, processes int) string {
	var all, explicit uint64
	example := ""
	err := rd.eachVMA(s.w, processes, func(pid int, v procfs.VMA) {
		bytes := v.Pages() * v.PageSize
		all += bytes
		if v.Explicit() {
			explicit += bytes
			example = fmt.Sprintf("%s in /proc/%d/numa_maps", v.Policy, pid)
		}
	})
	rd.problem(err)
	share, ok := unit.RatioOf(float64(explicit), float64(all)).Get()
	if !ok || share < policyShare {
		return ""
	}
	return fmt.Sprintf("%s of its sampled pages have a policy of their own (%s)", share, example)
}
