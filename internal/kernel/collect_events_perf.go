// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"

	"homenode/internal/kernel/perf"
)

// perfCounting is the state of counting by perf's groups. If there are too few
// descriptors for all workloads, they take turns.
type perfCounting struct {
	budget perf.Budget
	turns  perf.Turns
	chosen map[string]bool // the workloads whose turn it is
}

// takeTurns decides which workloads have events of their own, and closes the others'.
func (c *eventCollector) takeTurns(rd *round) error {
	all := c.candidates(rd)
	c.chosen = map[string]bool{}
	for _, id := range c.turns.Choose(all, c.budget) {
		c.chosen[id] = true
	}
	waiting := 0
	for _, one := range all {
		if s := c.of[one.ID]; !c.chosen[one.ID] {
			waiting++
			s.closeGroup()
			s.why = notItsTurn
		}
	}
	if waiting == 0 {
		return nil
	}
	return fmt.Errorf("count events: %d of %d workloads wait for their turn: %d descriptors for each, %d in all (raise LimitNOFILE, or count by BPF)",
		waiting, len(all), all[0].Files, c.budget.Files)
}

// candidates are the workloads that can be counted. Those that could not be opened are
// left out for a while.
func (c *eventCollector) candidates(rd *round) []perf.Candidate {
	each := len(rd.topology.Machine.OnlineCPUs().IDs()) * (len(c.meter.Table().Events) + 1)
	all := make([]perf.Candidate, 0, len(rd.workloads))
	for _, w := range rd.workloads {
		s := c.of[w.ID]
		mayOpen := !s.failed || w.seen%rarely == 0
		if !w.perfHier.Present() || s.group == nil && !mayOpen {
			continue
		}
		ours := c.cfg.Watched != nil && c.cfg.Watched(w.ID)
		all = append(all, perf.Candidate{ID: w.ID, Files: each, Ours: ours})
	}
	return all
}

// sampleGroup reads the workload's group, and opens it first when that is due.
func (s *eventSensor) sampleGroup(rd *round) (perf.Sample, string) {
	if s.group == nil && s.c.chosen[s.w.ID] {
		s.openGroup(rd)
	}
	if s.group == nil {
		if !s.w.perfHier.Present() {
			s.why = otherPerfCgroup
		}
		return perf.Sample{}, s.why
	}
	sample, err := s.group.Read(rd.now().Sub(s.c.start), s.clocks)
	if err != nil {
		rd.problem(err)
		s.closeGroup()
		s.why = err.Error()
		return perf.Sample{}, s.why
	}
	s.clocks = sample.ByCPU
	return sample, firstSample
}

func (s *eventSensor) openGroup(rd *round) {
	w := s.w
	group, err := s.c.meter.Open(w.layout.Path(w.perfHier, w.ID, ""), rd.topology.Machine.OnlineCPUs().IDs(), !w.perCPUTime())
	if s.failed = err != nil; err != nil {
		s.why = err.Error()
		rd.problem(err)
		return
	}
	s.group = group
}

func (s *eventSensor) closeGroup() {
	if s.group != nil {
		s.group.Close()
		s.group = nil
	}
}
