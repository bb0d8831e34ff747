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

// nearNodes turns the names of devices, PCI addresses and nodes into nodes. What is not
// there, or is attached nowhere that the kernel knows, is a problem in words: devices
// come and go, so it is no error of the configuration.
func nearNodes(m machine.Machine, names []string) (nodes set.NodeSet, problems []string) {
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

// nearNode is one node; why is "" if there is one.
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
		return 0, "the kernel does not say at which node it is"
	}
	if _, ok := m.Node(id); !ok {
		return 0, fmt.Sprintf("it is at node %d, which this machine does not have", id)
	}
	return id, ""
}
