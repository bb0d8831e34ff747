// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"path"

	"homenode/internal/kernel"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// meter reads the mix's workloads through the agent's reader, so that every arm
// is measured in the same way.
type meter struct{ reader *kernel.Reader }

// use is a workload's use since the last reading.
type use struct {
	cycles, local, remote unit.Opt[float64]
	cpus                  unit.Opt[float64] // of guest wall time
}

func newMeter() (*meter, error) {
	r, err := kernel.NewReader(kernel.Config{Roots: []string{"/" + mixGroup + "/*"}})
	if err != nil {
		return nil, fmt.Errorf("measure: %w", err)
	}
	return &meter{reader: r}, nil
}

func (m *meter) close() { m.reader.Close() }

// read returns the use of every workload since the last reading, by name.
func (m *meter) read(ctx context.Context) (map[string]use, error) {
	w, err := m.reader.Read(ctx)
	if err != nil {
		return nil, fmt.Errorf("measure: %w", err)
	}
	uses := map[string]use{}
	for _, wl := range w.Workloads {
		uses[path.Base(wl.ID)] = use{
			cycles: float(wl.Cycles), local: float(wl.LocalLoads), remote: float(wl.RemoteLoads),
			cpus: wl.CPU.V,
		}
	}
	return uses, problems(w)
}

// problems fails a measurement with anything that could not be read.
func problems(w window.Window) error {
	if len(w.Problems) > 0 {
		return fmt.Errorf("measure: %s", w.Problems[0])
	}
	return nil
}

func float(v unit.Value[uint64]) unit.Opt[float64] {
	n, ok := v.Get()
	return unit.OptOf(float64(n), ok)
}

// ratio is local / (local + remote) DRAM reads.
func ratio(u use) unit.Opt[float64] {
	local, ok1 := u.local.Get()
	remote, ok2 := u.remote.Get()
	if !ok1 || !ok2 || local+remote == 0 {
		return unit.None[float64]()
	}
	return unit.Some(local / (local + remote))
}

// sensitiveRatio is the local access ratio of all sensitive services together;
// 0 while nothing has been counted.
func sensitiveRatio(m Mix, uses map[string]use) float64 {
	var all use
	var local, remote float64
	for _, w := range m.Workloads {
		if w.Kind == Sensitive {
			local += uses[w.Name].local.Or(0)
			remote += uses[w.Name].remote.Or(0)
		}
	}
	all.local, all.remote = unit.Some(local), unit.Some(remote)
	return ratio(all).Or(0)
}
