// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"homenode/internal/kernel"
	"homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/unix"
)

// labels are what the managers of cgroups call the workloads. Each is read once: a
// container's files do not change, except by a rename.
type labels struct {
	off    bool // a recording is played: its cgroups are another host's
	root   kernel.Root
	known  map[string]seenLabels
	layout *cgroup.Layout // nil until it was found
	buf    unix.Buffer
}

type seenLabels struct {
	cgroup.Labels
	seq uint64 // the last window with the workload
}

// of is what a workload is called; nothing where that cannot be read.
func (l *labels) of(id string, seq uint64) cgroup.Labels {
	if known, ok := l.known[id]; ok {
		known.seq = seq
		l.known[id] = known
		return known.Labels
	}
	if l.off {
		return cgroup.Labels{}
	}
	if l.layout == nil {
		layout, err := cgroup.Find(l.root)
		if err != nil {
			return cgroup.Labels{}
		}
		l.layout, l.known = &layout, map[string]seenLabels{}
	}
	found := l.layout.LabelsOf(id, &l.buf)
	l.known[id] = seenLabels{found, seq}
	return found
}

// forget drops the workloads that are not in the window.
func (l *labels) forget(seq uint64) {
	for id, known := range l.known {
		if known.seq != seq {
			delete(l.known, id)
		}
	}
}
