// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"homenode/internal/kernel/unix"
	"homenode/internal/window"
)

// Labeller knows what the managers of cgroups call the workloads. Each is read once: a
// container's files do not change, except by a rename.
type Labeller struct {
	Off    bool // a recording is played: its cgroups are another host's
	Root   unix.Root
	known  map[string]seenLabels
	layout *Layout // nil until it was found
	buf    unix.Buffer
}

type seenLabels struct {
	window.Labels
	seq uint64 // the last window with the workload
}

// Name gives the workloads of a window their labels.
func (l *Labeller) Name(w *window.Window) {
	for i := range w.Workloads {
		w.Workloads[i].Labels = l.Of(w.Workloads[i].ID, w.Seq)
	}
	l.Forget(w.Seq)
}

// Of is what a workload is called; nothing where that cannot be read.
func (l *Labeller) Of(id string, seq uint64) window.Labels {
	if known, ok := l.known[id]; ok {
		known.seq = seq
		l.known[id] = known
		return known.Labels
	}
	if l.Off {
		return window.Labels{}
	}
	if l.layout == nil {
		layout, err := Find(l.Root)
		if err != nil {
			return window.Labels{}
		}
		l.layout, l.known = &layout, map[string]seenLabels{}
	}
	found := l.layout.LabelsOf(id, &l.buf)
	l.known[id] = seenLabels{found, seq}
	return found
}

// Forget drops the workloads that are not in the window.
func (l *Labeller) Forget(seq uint64) {
	for id, known := range l.known {
		if known.seq != seq {
			delete(l.known, id)
		}
	}
}
