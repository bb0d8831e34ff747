// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"fmt"
	"slices"

	"homenode/internal/kernel/unix"
	"homenode/internal/machine"
)

// Topology is a machine that is read again when CPUs go on- or offline.
type Topology struct {
	Machine machine.Machine
	Reads   int // how often Machine was read

	root   Root
	online unix.Kept
	text   string // of online
	nodeAt []int  // by CPU: the place of its node in Machine.Nodes, −1: none
}

// NewTopology is a Topology that has not read yet.
func NewTopology(root Root) Topology {
	return Topology{root: root, online: unix.Kept{Path: root.Path("/sys/devices/system/cpu/online")}}
}

// Read (re)reads the machine. It fails if there is no node; problem is called with
// everything less important that is missing.
func (t *Topology) Read(buf *unix.Buffer, problem func(error)) error {
	// The list of online CPUs comes first: a CPU that comes or goes while the rest is read
	// is seen by the next Changed, and the machine is read again.
	if text, err := t.online.ReadLine(buf); err == nil {
		t.text = string(text)
	}
	m, err := ReadMachine(t.root)
	if len(m.Nodes) == 0 {
		return errors.Join(err, fmt.Errorf("read machine %s: no NUMA node (%w)", t.root, ErrNotSupported))
	}
	problem(err)
	t.Machine, t.nodeAt = m, nil
	t.Reads++
	for _, c := range m.CPUs {
		id, ok := c.Node.Get()
		if !ok {
			continue
		}
		for c.ID >= len(t.nodeAt) {
			t.nodeAt = append(t.nodeAt, -1)
		}
		t.nodeAt[c.ID] = slices.IndexFunc(m.Nodes, func(n machine.Node) bool { return n.ID == id })
	}
	return nil
}

// Changed says that the set of online CPUs is not that of the last Read. If it cannot
// be read, it has not changed.
func (t *Topology) Changed(buf *unix.Buffer) bool {
	text, err := t.online.ReadLine(buf)
	return err == nil && string(text) != t.text
}

// NodeAt is the place of a CPU's node in Machine.Nodes; false if it has none.
func (t *Topology) NodeAt(cpu int) (int, bool) {
	if cpu < 0 || cpu >= len(t.nodeAt) || t.nodeAt[cpu] < 0 {
		return 0, false
	}
	return t.nodeAt[cpu], true
}

// Close closes its file.
func (t *Topology) Close() { t.online.Close() }
