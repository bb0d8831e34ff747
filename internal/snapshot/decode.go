// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"errors"
	"fmt"

	"homenode/internal/schema"
	"homenode/internal/unit"
)

// Decode reads one snapshot in its wire form (JSON). It is strict: it refuses a newer
// schema, an unknown field, trailing text, and impossible values (Validate). On error
// the snapshot is the zero Snapshot.
func Decode(data []byte) (Snapshot, error) { return schema.Decode[Snapshot](data, "snapshot", Schema) }

// Encode writes the wire form, one line without a newline. It refuses what Decode would
// refuse.
func Encode(s Snapshot) ([]byte, error) { return schema.Encode(s, "snapshot") }

// Validate refuses what is impossible in a snapshot: the invariants that its readers
// rely on.
//
//  1. the schema is known, the length is not negative, the window is valid,
//  2. the nodes of machine, window and snapshot are the same, ascending,
//  3. CPUs ascend, distances are a square of known or unknown bytes,
//  4. groups are parallel to the window's workloads, processes ascend,
//  5. slices by node are empty (unknown) or parallel to the nodes,
//  6. no amount is negative.
func (s Snapshot) Validate() error {
	if s.Schema < 1 || s.Schema > Schema { // 1
		return fmt.Errorf("schema %d: want 1 to %d", s.Schema, Schema)
	}
	if s.Length < 0 {
		return fmt.Errorf("length %v is negative", s.Length)
	}
	if err := s.Window.Validate(); err != nil {
		return fmt.Errorf("window: %w", err)
	}
	return errors.Join(s.validateNodes(), s.validateMachine(), s.validateGroups(), s.validateProcesses(), s.validateSamples())
}

func (s Snapshot) validateNodes() error {
	n := len(s.Nodes)
	if len(s.Machine.Nodes) != n || len(s.Window.Nodes) != n { // 2
		return fmt.Errorf("%d nodes of the machine, %d of the window, %d of the snapshot: want as many", len(s.Machine.Nodes), len(s.Window.Nodes), n)
	}
	for i, node := range s.Nodes {
		if s.Machine.Nodes[i].ID != node.ID || s.Window.Nodes[i].ID != node.ID {
			return fmt.Errorf("node at position %d: %d in the machine, %d in the window, %d in the snapshot", i, s.Machine.Nodes[i].ID, s.Window.Nodes[i].ID, node.ID)
		}
		k := node.Memory
		if anyNegative(k.Total, k.Free, k.Anon, k.File, k.Shmem, k.Slab, k.Kernel, k.Huge, k.HugeFree, k.Dirty, node.LowFree) { // 6
			return fmt.Errorf("node %d: an amount of memory is negative", node.ID)
		}
		if busy, ok := node.Traffic.Busy.Get(); ok && !busy.Valid() {
			return fmt.Errorf("node %d: busy %v is not a share", node.ID, float64(busy))
		}
	}
	return nil
}

func (s Snapshot) validateMachine() error {
	for i, c := range s.Machine.CPUs { // 3
		if c.ID < 0 || i > 0 && c.ID <= s.Machine.CPUs[i-1].ID {
			return fmt.Errorf("cpu %d at position %d: ids must ascend from 0", c.ID, i)
		}
	}
	for i, row := range s.Machine.Distances {
		if len(row) != len(s.Nodes) || len(s.Machine.Distances) != len(s.Nodes) {
			return fmt.Errorf("distances of %d nodes, row %d has %d: want %d of each", len(s.Machine.Distances), i, len(row), len(s.Nodes))
		}
		for _, d := range row {
			if v, ok := d.Get(); ok && (v < 0 || v > 255) {
				return fmt.Errorf("distance %d in row %d: want 0 to 255", v, i)
			}
		}
	}
	return nil
}

func (s Snapshot) validateGroups() error {
	if len(s.Groups) != len(s.Window.Workloads) { // 4
		return fmt.Errorf("%d groups for %d workloads", len(s.Groups), len(s.Window.Workloads))
	}
	for i, g := range s.Groups {
		if g.ID != s.Window.Workloads[i].ID {
			return fmt.Errorf("group %q at position %d: the workload there is %q", g.ID, i, s.Window.Workloads[i].ID)
		}
		if anyNegative(g.MemoryLimit, g.MemoryUsed) { // 6
			return fmt.Errorf("group %q: an amount of memory is negative", g.ID)
		}
		if g.Limited != nil && anyNegative(g.Limited.Used, g.Limited.File) {
			return fmt.Errorf("group %q: an amount of memory of %q is negative", g.ID, g.Limited.ID)
		}
	}
	return nil
}

func (s Snapshot) validateProcesses() error {
	for i, p := range s.Processes {
		if p.PID < 1 || i > 0 && p.PID <= s.Processes[i-1].PID { // 4
			return fmt.Errorf("process %d at position %d: PIDs must ascend from 1", p.PID, i)
		}
		lengths := []int{len(p.CPUByNode)}
		for _, by := range p.ByKind {
			lengths = append(lengths, len(by))
		}
		for _, m := range p.Mappings {
			lengths = append(lengths, len(m.ByNode))
		}
		if err := s.parallel(lengths...); err != nil { // 5
			return fmt.Errorf("process %d: %w", p.PID, err)
		}
	}
	for _, q := range s.IRQs {
		if err := s.parallel(len(q.Counts)); err != nil {
			return fmt.Errorf("irq %q: %w", q.Number, err)
		}
	}
	return nil
}

func (s Snapshot) validateSamples() error {
	for _, p := range s.Samples.Places {
		if err := s.parallel(len(p.Loads), len(p.Remote), len(p.Stores)); err != nil {
			return fmt.Errorf("samples of process %d: %w", p.PID, err)
		}
	}
	for _, l := range s.Samples.Lines {
		if err := s.parallel(len(l.Loads), len(l.Stores)); err != nil {
			return fmt.Errorf("line %#x of process %d: %w", l.Addr, l.PID, err)
		}
	}
	return nil
}

func (s Snapshot) parallel(lengths ...int) error {
	for _, n := range lengths {
		if n != 0 && n != len(s.Nodes) {
			return fmt.Errorf("%d figures by node for %d nodes", n, len(s.Nodes))
		}
	}
	return nil
}

func anyNegative(values ...unit.Value[unit.Bytes]) bool {
	for _, v := range values {
		if v.Or(0) < 0 {
			return true
		}
	}
	return false
}
