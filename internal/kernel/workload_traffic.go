// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"

	"homenode/internal/kernel/resctrl"
	"homenode/internal/machine"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// traffic is resctrl's monitor, or why there is none.
type traffic struct {
	monitor *resctrl.Monitor
	why     string
}

// openResctrl looks whether resctrl is mounted. That it could be and is not is worth
// saying once; that a machine has none is no problem.
func (r *Reader) openResctrl() {
	if r.cfg.Resctrl.Off {
		r.resctrl.why = "resctrl is switched off"
		return
	}
	monitor, err := resctrl.Open(r.cfg.Root, r.cfg.Resctrl, r.machine)
	if r.resctrl.monitor = monitor; monitor == nil {
		r.resctrl.why = err.Error()
	}
	switch {
	case errors.Is(err, resctrl.ErrNoResctrl):
	case errors.Is(err, resctrl.ErrNotMounted) && !r.cfg.Resctrl.Live.Valid(): // one look, or few: each says it
		r.always = append(r.always, err.Error())
	default:
		r.problem(err)
	}
}

// addTraffic fills in what resctrl tells of each workload.
func (r *Reader) addTraffic(w *window.Window) {
	if r.resctrl.monitor == nil {
		for i := range w.Workloads {
			wl := &w.Workloads[i]
			wl.Traffic, wl.LocalTraffic, wl.LLC = noTraffic(r.resctrl.why), noTraffic(r.resctrl.why), noTraffic(r.resctrl.why)
		}
		return
	}
	r.problem(r.resctrl.monitor.Round(w, r.cfg.Now(), func(dst []int, id string) ([]int, error) {
		return r.layout.TIDs(dst, id, &r.buf)
	}))
}

func noTraffic(why string) unit.Value[unit.Bytes] { return unit.UnknownValue[unit.Bytes](why) }

// close removes the groups that were made. What fails is left to the next start.
func (t *traffic) close() {
	if t.monitor != nil {
		_ = t.monitor.Close()
	}
}

func (t *traffic) machineChanged(m machine.Machine) {
	if t.monitor != nil {
		t.monitor.SetMachine(m)
	}
}
