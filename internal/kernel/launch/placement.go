// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
	"homenode/internal/machine"
	"homenode/internal/set"
)

// Placement is the settings of a program.
type Placement struct {
	CPUs   set.CPUSet  `json:"cpus"`   // empty: unchanged
	Policy Policy      `json:"policy"` // "": unchanged
	Nodes  set.NodeSet `json:"nodes"`  // of the policy
}

// Numactl is the equivalent command line of numactl(8).
func (p Placement) Numactl(argv []string) []string {
	line := []string{"numactl"}
	switch {
	case p.Policy == Local:
		line = append(line, p.Policy.Numactl())
	case p.Policy != "":
		line = append(line, p.Policy.Numactl()+"="+p.Nodes.String())
	}
	if !p.CPUs.IsEmpty() {
		line = append(line, "--physcpubind="+p.CPUs.String())
	}
	return slices.Concat(line, []string{"--"}, argv)
}

// Request is a person's request.
type Request struct {
	Policy Policy // "" with Nodes: Bind
	Nodes  set.NodeSet
	CPUs   set.CPUSet
	// AllCPUs keeps all CPUs where otherwise those of the nodes would be taken.
	AllCPUs bool
}

// Limits are what this process may use: its cpuset, and its CPUs.
type Limits struct {
	CPUs set.CPUSet
	Mems set.NodeSet
}

// ReadLimits reads them from /proc/self/status.
func ReadLimits(root unix.Root) (Limits, error) {
	var buf unix.Buffer
	s, err := unix.Parsed(&buf, root.Path("/proc/self/status"), procfs.ParseTaskStatus)
	return Limits{CPUs: s.CPUs, Mems: s.Mems}, err
}

// Resolve checks a request against the machine and this process's limits, and fills in
// what follows.
//
//  1. Nodes alone mean bind.
//  2. bind, preferred and preferred-many keep the program on the CPUs of their nodes as
//     well, unless CPUs are given or the nodes have none. interleave and
//     weighted-interleave spread memory, and do not change the CPUs.
//  3. local has no nodes of its own: memory is on the node that the program runs on.
func Resolve(q Request, m machine.Machine, l Limits) (Placement, error) {
	p := Placement{Policy: q.Policy, Nodes: q.Nodes, CPUs: q.CPUs}
	if p.Policy == "" && !q.Nodes.IsEmpty() {
		p.Policy = Bind // 1
	}
	if err := q.check(p.Policy); err != nil {
		return Placement{}, err
	}
	if err := checkNodes(p, m, l); err != nil {
		return Placement{}, err
	}
	if p.CPUs.IsEmpty() && !q.AllCPUs && !q.Nodes.IsEmpty() && keepsCPUs(p.Policy) { // 2
		cpus := cpusOf(m, q.Nodes)
		if p.CPUs = cpus.Intersect(l.CPUs); p.CPUs.IsEmpty() && !cpus.IsEmpty() {
			return Placement{}, fmt.Errorf("run on %s: this process may use none of its CPUs (%s), only %s: give --cpus all to place the memory alone",
				nodesText(q.Nodes), cpus, l.CPUs)
		}
	}
	if p.Policy == Local { // 3
		p.Nodes = set.NodeSet{}
	}
	return p, checkCPUs(p.CPUs, m, l)
}

func keepsCPUs(p Policy) bool {
	return p == Bind || p == Preferred || p == PreferredMany || p == Local
}

// check finds contradictions, independent of the machine.
func (q Request) check(p Policy) error {
	switch {
	case p == "" && q.CPUs.IsEmpty():
		return errors.New("nothing to place: give --nodes, --policy or --cpus")
	case p != "" && p != Local && q.Nodes.IsEmpty():
		return fmt.Errorf("policy %s needs --nodes", p)
	case p == Preferred && q.Nodes.Len() > 1:
		return fmt.Errorf("policy preferred takes one node, not %s: preferred-many takes several", q.Nodes)
	}
	return nil
}

// checkNodes requires nodes that exist, that this process may use, and that have
// memory; for local, CPUs.
func checkNodes(p Placement, m machine.Machine, l Limits) error {
	var all set.NodeSet
	for _, n := range m.Nodes {
		all = all.With(n.ID)
		if !p.Nodes.Has(n.ID) {
			continue
		}
		if memory, ok := n.Memory.Get(); p.Policy != Local && ok && memory == 0 {
			return fmt.Errorf("use memory of node %d: it has none", n.ID)
		}
		if p.Policy == Local && n.CPUs.IsEmpty() {
			return fmt.Errorf("run on node %d: it has no CPUs: policy local means the node that a program runs on", n.ID)
		}
	}
	if missing := p.Nodes.Minus(all); !missing.IsEmpty() {
		return fmt.Errorf("use %s: no such node: this machine has %s", nodesText(missing), nodesText(all))
	}
	if shut := p.Nodes.Minus(l.Mems); p.Policy != Local && !shut.IsEmpty() && !l.Mems.IsEmpty() {
		return fmt.Errorf("use memory of %s: the cpuset of this process allows %s only", nodesText(shut), nodesText(l.Mems))
	}
	return nil
}

func checkCPUs(cpus set.CPUSet, m machine.Machine, l Limits) error {
	var online set.CPUSet
	for _, n := range m.Nodes {
		online = online.Union(n.CPUs)
	}
	if missing := cpus.Minus(online); !missing.IsEmpty() {
		return fmt.Errorf("run on CPUs %s: they do not exist or are offline: this machine has %s", missing, online)
	}
	// The kernel would take the rest of them without an error (sched_setaffinity).
	if shut := cpus.Minus(l.CPUs); !shut.IsEmpty() && !l.CPUs.IsEmpty() {
		return fmt.Errorf("run on CPUs %s: this process may use %s only", shut, l.CPUs)
	}
	return nil
}

func cpusOf(m machine.Machine, nodes set.NodeSet) (cpus set.CPUSet) {
	for _, n := range m.Nodes {
		if nodes.Has(n.ID) {
			cpus = cpus.Union(n.CPUs)
		}
	}
	return cpus
}

// nodesText is "node 1", or "nodes 0-1".
func nodesText(nodes set.NodeSet) string {
	if nodes.Len() == 1 {
		return "node " + nodes.String()
	}
	return "nodes " + strings.TrimSpace(nodes.String())
}
