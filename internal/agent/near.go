// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"homenode/internal/machine"
	"homenode/internal/set"
)

// NearNodes turns the names of devices, PCI addresses and nodes into nodes. A device
// that is missing, or whose node the kernel does not know, is a problem in words. It is
// not an error of the configuration, because devices come and go.
func NearNodes(m machine.Machine, names []string) (nodes set.NodeSet, problems []string) {
	for _, name := range names {
		id, why := nearNode(m, strings.TrimSpace(name))
		if why != "" {
			problems = append(problems, fmt.Sprintf("near %q: %s", name, why))
			continue
		}
		nodes = nodes.With(id)
	}
	return nodes, problems
}

// nearNode returns one node. If there is none, why says so.
func nearNode(m machine.Machine, name string) (id int, why string) {
	if number, ok := strings.CutPrefix(name, "node"); ok {
		id, err := strconv.Atoi(strings.TrimSpace(number))
		if err == nil {
			if _, ok := m.Node(id); !ok {
				return 0, "this machine has no such node"
			}
			return id, ""
		}
	}
	i := slices.IndexFunc(m.Devices, func(d machine.Device) bool { return d.Address == name || slices.Contains(d.Names, name) })
	if i < 0 {
		return 0, "no such PCI device: 'homenode topo' lists them"
	}
	id, ok := m.Devices[i].Node.Get()
	if !ok {
		return 0, "the kernel does not say which node it is attached to"
	}
	if _, ok := m.Node(id); !ok {
		return 0, fmt.Sprintf("it is attached to node %d, which this machine does not have", id)
	}
	return id, ""
}
