// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"homenode/internal/kernel"
	"homenode/internal/kernel/launch"
	"homenode/internal/machine"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// NodeHelp is what Nodes takes, for a command's help.
const NodeHelp = "NODES are ids (0,2-3), all (those with memory), !0 (all but), +0-1 (counted among those that this process may\n" +
	"use), or a device whose node is meant: netdev:eth0, pci:0000:3b:00.0, block:nvme0n1, file:/srv/data, ip:192.0.2.1."

// nodeReader has what node specifications other than ids need; tests replace it.
type nodeReader struct {
	machine func() (machine.Machine, error)
	allowed func() (set.NodeSet, error) // empty: no limit
	device  func(kind, name string) (unit.Opt[int], error)
}

func liveNodes() nodeReader {
	root := kernel.At("/")
	return nodeReader{
		machine: func() (machine.Machine, error) { m, _, err := Live(); return m, err },
		allowed: func() (set.NodeSet, error) { l, err := launch.ReadLimits(root); return l.Mems, err },
		device:  func(kind, name string) (unit.Opt[int], error) { return kernel.NodeOfDevice(root, kind, name) },
	}
}

// Nodes reads a flag's nodes in numactl's notation:
//
//	0,2-3          the ids
//	all            every node that has memory
//	!0             every node that has memory but these
//	+0-1           the first and second of those that this process may use
//	netdev:eth0    the node of a device; also pci:, block:, file:, ip:
//
// Plain ids are read without a look at this machine.
func Nodes(flag, text string) (set.NodeSet, error) { return liveNodes().flag(flag, text) }

// NodesOf are Nodes of a machine that was read before.
func NodesOf(m machine.Machine, flag, text string) (set.NodeSet, error) {
	r := liveNodes()
	r.machine = func() (machine.Machine, error) { return m, nil }
	return r.flag(flag, text)
}

func (r nodeReader) flag(flag, text string) (set.NodeSet, error) {
	nodes, err := r.nodes(strings.TrimSpace(text))
	if err != nil {
		return set.NodeSet{}, fmt.Errorf("--%s: %w", flag, err)
	}
	return nodes, nil
}

func (r nodeReader) nodes(text string) (set.NodeSet, error) {
	if kind, name, ok := strings.Cut(text, ":"); ok && slices.Contains(kernel.DeviceKinds, kind) {
		return r.near(kind, name)
	}
	list, but := strings.CutPrefix(text, "!")
	list, relative := strings.CutPrefix(list, "+")
	nodes, err := r.list(list, relative)
	if err != nil || !but {
		return nodes, err
	}
	all, err := r.withMemory()
	if err != nil {
		return set.NodeSet{}, err
	}
	rest := all.Minus(nodes)
	if rest.IsEmpty() {
		return set.NodeSet{}, fmt.Errorf("%q leaves no node: those with memory are %s", text, all)
	}
	return rest, nil
}

func (r nodeReader) list(text string, relative bool) (set.NodeSet, error) {
	if text == "all" && !relative {
		return r.withMemory()
	}
	nodes, err := set.ParseNodes(text)
	switch {
	case err != nil:
		return set.NodeSet{}, fmt.Errorf("%w: want ids like 0,2-3, or all, !0, +0, or a device like netdev:eth0", err)
	case !relative:
		return nodes, nil
	case nodes.IsEmpty():
		return set.NodeSet{}, errors.New(`"+" needs numbers, such as +0: the first node that this process may use`)
	}
	return r.counted(nodes)
}

// counted takes nodes by their place among those that this process may use.
func (r nodeReader) counted(places set.NodeSet) (nodes set.NodeSet, err error) {
	may, err := r.withMemory()
	if err != nil {
		return set.NodeSet{}, err
	}
	limit, err := r.allowed()
	if err != nil {
		return set.NodeSet{}, err
	}
	if !limit.IsEmpty() {
		may = may.Intersect(limit)
	}
	ids := may.IDs()
	for _, i := range places.IDs() {
		if i >= len(ids) {
			return set.NodeSet{}, fmt.Errorf("+%d: this process may use %d nodes (%s): +0 is the first", i, len(ids), may)
		}
		nodes = nodes.With(ids[i])
	}
	return nodes, nil
}

func (r nodeReader) withMemory() (nodes set.NodeSet, err error) {
	m, err := r.machine()
	if err != nil {
		return set.NodeSet{}, err
	}
	return nodesWithMemory(m), nil
}

func nodesWithMemory(m machine.Machine) (nodes set.NodeSet) {
	for _, n := range m.Nodes {
		if n.Memory.Or(1) > 0 {
			nodes = nodes.With(n.ID)
		}
	}
	return nodes
}

// near is the node of a device. On a machine with one node it is that one, whatever the
// kernel says.
func (r nodeReader) near(kind, name string) (set.NodeSet, error) {
	node, err := r.device(kind, name)
	if err != nil {
		return set.NodeSet{}, err
	}
	if id, ok := node.Get(); ok {
		return set.FromNodes(id), nil
	}
	all, err := r.withMemory()
	if err != nil {
		return set.NodeSet{}, err
	}
	if all.Len() == 1 {
		return all, nil
	}
	return set.NodeSet{}, fmt.Errorf("%s:%s: the kernel does not say which node the device is attached to: name one of %s", kind, name, all)
}
