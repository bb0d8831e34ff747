// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"cmp"
	"slices"

	"homenode/internal/unit"
	"homenode/internal/window"
)

// timeline is the frames so far, and which one is shown.
type timeline struct {
	frames []Frame
	now    int // index of the frame shown
	size   int // number of figures in all frames
}

// A live screen drops older frames. 300 windows are ten minutes at 2 s; the
// second bound keeps hosts with many workloads near 100 MB.
const (
	keptFrames  = 300
	keptFigures = 500_000
)

// addFrame appends a frame; with follow it becomes the frame that is shown.
func (t *timeline) addFrame(f Frame, follow bool) {
	t.frames = append(t.frames, f)
	t.size += figures(f)
	if follow {
		t.now = len(t.frames) - 1
	}
	for len(t.frames) > 1 && t.full() {
		t.size -= figures(t.frames[0])
		t.frames[0] = Frame{} // release the frame although the array stays
		t.frames = t.frames[1:]
		t.now = max(0, t.now-1)
	}
}

// full keeps the frame that is shown, but not for ever.
func (t *timeline) full() bool {
	n, size := keptFrames, keptFigures
	if t.now == 0 {
		n, size = 2*n, 2*size
	}
	return len(t.frames) > n || t.size > size
}

func figures(f Frame) int { return (len(f.Window.Workloads) + 1) * (3*len(f.Window.Nodes) + 10) }

func (t *timeline) frame() (Frame, bool) {
	if len(t.frames) == 0 {
		return Frame{}, false
	}
	return t.frames[t.now], true
}

func (t *timeline) seek(to int) { t.now = max(0, min(to, len(t.frames)-1)) }

func (t *timeline) atEnd() bool { return t.now >= len(t.frames)-1 }

// history is one figure of a workload in the last n windows up to the shown one,
// oldest first. It is unknown in windows without the workload.
func (t *timeline) history(id string, n int, of func(window.Workload, window.Window) unit.Opt[float64]) []unit.Opt[float64] {
	all := make([]unit.Opt[float64], n)
	for i := range all {
		at := t.now - (n - 1) + i
		if at < 0 || at >= len(t.frames) {
			continue
		}
		w := t.frames[at].Window
		if wl, ok := find(w, id); ok {
			all[i] = of(wl, w)
		}
	}
	return all
}

// find is Window.Workload, but faster: workloads ascend by ID.
func find(w window.Window, id string) (window.Workload, bool) {
	i, ok := slices.BinarySearchFunc(w.Workloads, id, func(wl window.Workload, id string) int { return cmp.Compare(wl.ID, id) })
	if !ok {
		return window.Workload{}, false
	}
	return w.Workloads[i], true
}

func localRatio(wl window.Workload, w window.Window) unit.Opt[float64] {
	r, ok := window.FeaturesOf(wl, w.Length).LocalAccessRatio.Get()
	return unit.OptOf(float64(r), ok)
}

func cpuUse(wl window.Workload, _ window.Window) unit.Opt[float64] {
	c, ok := wl.CPU.Get()
	return unit.OptOf(c, ok)
}
