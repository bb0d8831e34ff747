// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"

	"homenode/internal/kernel/resctrl"
	"homenode/internal/unit"
)

// trafficCollector reads memory traffic and cache from resctrl, for the whole window at
// once: there are fewer groups than workloads.
type trafficCollector struct {
	base
	monitor  *resctrl.Monitor // nil: why says why
	why      string
	always   error // a problem of every window
	topology int   // Topology.Reads of the monitor
}

// newTrafficCollector checks whether resctrl is mounted. If the machine has it and it
// is not mounted, that is reported once; a machine without it is no problem.
func newTrafficCollector(h *host, cfg resctrl.Config) *trafficCollector {
	c := &trafficCollector{topology: h.topology.Reads}
	if cfg.Off {
		c.why = "resctrl is switched off"
		return c
	}
	monitor, err := resctrl.Open(h.root, cfg, h.topology.Machine)
	if c.monitor = monitor; monitor == nil {
		c.why = err.Error()
	}
	switch {
	case errors.Is(err, resctrl.ErrNoResctrl):
	case errors.Is(err, resctrl.ErrNotMounted) && !cfg.Live.Valid(): // one look, or few: each says it
		c.always = err
	default:
		h.problem(err)
	}
	return c
}

func (c *trafficCollector) finish(rd *round) error {
	if c.monitor == nil {
		for i := range rd.window.Workloads {
			w := &rd.window.Workloads[i]
			w.Traffic = unit.UnknownValue[unit.Bytes](c.why)
			w.LocalTraffic, w.LLC = w.Traffic, w.Traffic
		}
		return c.always
	}
	if c.topology != rd.topology.Reads {
		c.topology = rd.topology.Reads
		c.monitor.SetMachine(rd.topology.Machine)
	}
	return c.monitor.Round(&rd.window, rd.now(), func(dst []int, id string) ([]int, error) {
		return rd.layout.TIDs(dst, id, &rd.buf)
	})
}

// close removes the groups that were made. The next start removes what could not be
// removed.
func (c *trafficCollector) close() {
	if c.monitor != nil {
		_ = c.monitor.Close()
	}
}
