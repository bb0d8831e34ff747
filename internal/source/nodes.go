// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"

	"homenode/internal/machine"
	"homenode/internal/set"
)

// Nodes takes a list, or all: every node that has memory.
func Nodes(text string, m machine.Machine) (nodes set.NodeSet, err error) {
	if text != "all" {
		if nodes, err = set.ParseNodes(text); err != nil {
			return nodes, fmt.Errorf("--nodes: %w", err)
		}
		return nodes, nil
	}
	for _, n := range m.Nodes {
		if n.Memory.Or(1) > 0 {
			nodes = nodes.With(n.ID)
		}
	}
	return nodes, nil
}
