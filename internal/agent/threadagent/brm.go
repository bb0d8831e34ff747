// SPDX-License-Identifier: Apache-2.0

package threadagent

import (
	"homenode/internal/action"
	"homenode/internal/machine"
	"homenode/internal/policy/brm"
	"homenode/internal/window"
)

// BRM is Bias Random Migration for Options.Policy. It keeps the policy's state and what it inferred, also for processes that ended.
type BRM struct {
	cfg      brm.Config
	state    brm.State
	verdicts map[string]brm.Verdict
}

// NewBRM has seen nothing yet.
func NewBRM(cfg brm.Config) *BRM {
	return &BRM{cfg: cfg, verdicts: map[string]brm.Verdict{}}
}

// Step decides by one window.
func (p *BRM) Step(m machine.Machine, w window.Window) (a []action.Action, why []action.Reason) {
	p.state, a, why = brm.Step(m, p.cfg, p.state, w)
	for i := range p.state.Workloads {
		p.verdicts[p.state.Workloads[i].Workload] = p.state.Workloads[i].Verdict
	}
	return a, why
}

// Judge adds the verdicts on processes without a tag.
func (p *BRM) Judge(all []Process) {
	for i := range all {
		if !all[i].Sensitive.Known() {
			all[i].Verdict = string(p.verdicts[all[i].ID])
		}
	}
}
