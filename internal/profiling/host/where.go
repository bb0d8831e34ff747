// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"

	"homenode/internal/action"
	"homenode/internal/machine"
	"homenode/internal/policy/mao"
	"homenode/internal/render/words"
	"homenode/internal/set"
	"homenode/internal/window"
)

// whereTo asks the agent's policy for the nodes that it would bind a workload to, if it were
// approved, its devices were on the nodes near, and any gain were worth it. why says who chose them.
func whereTo(c mao.Config, m machine.Machine, w window.Window, id string, near set.NodeSet) (nodes set.NodeSet, why string, err error) {
	c.Target, c.MinGain, c.MinLoads, c.MinCPU = 1, 0, 0, 0
	for i := range w.Workloads {
		wl := &w.Workloads[i]
		if wl.Approved = wl.ID == id; wl.Approved {
			wl.Near = near
		}
	}
	_, actions, reasons := mao.Step(m, c, mao.State{}, w)
	for _, a := range actions {
		if a.Kind == action.Bind && a.Workload == id {
			return a.Nodes, "the agent's policy", nil
		}
	}
	for i := range reasons {
		if reasons[i].Workload == id || reasons[i].Workload == "" && w.Workloads[i].ID == id {
			return nodes, "", fmt.Errorf("the agent's policy would not bind %s: %s: name the nodes with --nodes", id, words.Sentence(reasons[i]))
		}
	}
	return nodes, "", fmt.Errorf("the agent's policy says nothing about %s: name the nodes with --nodes", id)
}
