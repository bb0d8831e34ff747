// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"

	"homenode/internal/bench"
	"homenode/internal/kernel/launch"
	"homenode/internal/set"
	"homenode/internal/source"
)

// Places are the nodes and CPUs to measure with: those that are named, if the machine
// has them and this process may use them; else all that it may use.
func Places(o *bench.Options, l launch.Limits, nodes, cpus string) (err error) {
	if o.Nodes, err = source.Nodes("nodes", nodes); err != nil {
		return err
	}
	if o.CPUs, err = set.ParseCPUs(cpus); err != nil {
		return fmt.Errorf("--cpus: %w", err)
	}
	m := o.Machine
	if missing := o.Nodes.Minus(m.NodeIDs()); !missing.IsEmpty() {
		return fmt.Errorf("--nodes %s: no node %s: this machine has %s", o.Nodes, missing, m.NodeIDs())
	}
	if missing := o.CPUs.Minus(m.OnlineCPUs()); !missing.IsEmpty() {
		return fmt.Errorf("--cpus %s: CPU %s is not online: %s are", o.CPUs, missing, m.OnlineCPUs())
	}
	if err := within(o, l); err != nil {
		return err
	}
	has := o.CPUs
	if !o.Nodes.IsEmpty() {
		has = has.Intersect(m.CPUsOf(o.Nodes))
	}
	if has.IsEmpty() {
		return fmt.Errorf("--nodes %q, --cpus %q: none of the CPUs that this process may use (%s) is on these nodes: also name a node with such CPUs", nodes, cpus, o.CPUs)
	}
	return nil
}

// within applies the limits. A named CPU or node outside of them is refused: the kernel
// would use another one, or fail.
func within(o *bench.Options, l launch.Limits) error {
	may := o.Machine.OnlineCPUs()
	if !l.CPUs.IsEmpty() {
		may = may.Intersect(l.CPUs)
	}
	if closed := o.CPUs.Minus(may); !closed.IsEmpty() {
		return fmt.Errorf("--cpus %s: this process may not use %s, only %s (Cpus_allowed_list in /proc/self/status)", o.CPUs, closed, may)
	}
	if o.CPUs.IsEmpty() {
		o.CPUs = may
	}
	o.Memory = o.Machine.NodesWithMemory()
	if !l.Mems.IsEmpty() {
		o.Memory = o.Memory.Intersect(l.Mems)
	}
	if closed := o.Nodes.Intersect(o.Machine.NodesWithMemory()).Minus(o.Memory); !closed.IsEmpty() {
		return fmt.Errorf("--nodes %s: this process may not use memory of %s, only of %s (Mems_allowed_list in /proc/self/status)", o.Nodes, closed, o.Memory)
	}
	return nil
}

// Shut names the parts of the machine that this process may not use.
func Shut(o bench.Options, nodes, cpus string) (notes []string) {
	if cpus == "" && !o.CPUs.Equal(o.Machine.OnlineCPUs()) {
		notes = append(notes, fmt.Sprintf("measuring with CPUs %s only: this process may not use the others of %s", o.CPUs, o.Machine.OnlineCPUs()))
	}
	if all := o.Machine.NodesWithMemory(); nodes == "" && !o.Memory.Equal(all) {
		notes = append(notes, fmt.Sprintf("measuring memory of nodes %s only: this process may not use the others of %s", o.Memory, all))
	}
	return notes
}
