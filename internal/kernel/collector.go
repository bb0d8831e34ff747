// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"slices"

	"homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// collector reads one kind of figure in every window. docs/architecture.md ("How a
// window is read") lists the collectors and shows how to add one.
//
//	begin    once a round, before the workloads
//	attach   once for each new workload: the sensor that reads it, or nil
//	forget   once for each workload that has gone
//	finish   once a round, after the workloads
//	close    at the end
//
// An error from begin or finish is a problem of the window. Everything else is still
// read.
type collector interface {
	begin(*round) error
	attach(*workload) sensor
	forget(id string)
	finish(*round) error
	close()
}

// sensor reads one workload for a collector. It keeps its open files, and what it read
// in the round before.
type sensor interface {
	// read sets its figures, each with its source, or unknown with the reason. After an
	// error, unknown is called instead; the other sensors are read in any case.
	read(*round, *window.Workload) error
	// unknown says of all its figures why they are unknown.
	unknown(rd *round, out *window.Workload, why string)
}

// base does nothing. Collectors embed it, and define the methods that they need.
type base struct{}

func (base) begin(*round) error      { return nil }
func (base) attach(*workload) sensor { return nil }
func (base) forget(string)           {}
func (base) finish(*round) error     { return nil }
func (base) close()                  {}

// perWorkload is a collector whose sensors share nothing.
type perWorkload struct {
	base
	sensor func(*workload) sensor
}

func (c perWorkload) attach(w *workload) sensor { return c.sensor(w) }

// registered is a collector under the name that the documentation has for it.
type registered struct {
	name string
	collector
}

// register lists the collectors in the order in which they read. A later one may use
// what an earlier one has put into the window.
func (r *Reader) register(cfg Config) {
	r.collectors = []registered{
		{"nodes", newNodeCollector(&r.host)},
		{"quota", perWorkload{sensor: newQuotaSensor}},
		{"cpu", perWorkload{sensor: newCPUSensor}},
		{"throttled", perWorkload{sensor: newThrottledSensor}}, // needs the quota, and cpu.stat as cpu read it
		{"pressure", perWorkload{sensor: newPressureSensor}},
		{"memory limit", newMemoryLimitCollector()},
		{"events", newEventCollector(&r.host, cfg)},              // needs the CPU time to scale by
		{"hint faults", newHintCollector(&r.host, cfg)},          // where events has not counted accesses
		{"cpu by node", perWorkload{sensor: newCPUByNodeSensor}}, // where events has not counted it
		{"memory", perWorkload{sensor: newMemorySensor}},
		{"memory policy", newPolicyCollector()}, // adds to the binding
		{"traffic", newTrafficCollector(&r.host, cfg.Resctrl)},
	}
}

// round is one reading, and what its collectors share.
type round struct {
	*host
	seq       uint64
	workloads []*workload   // by ascending id
	maps      *unix.Budget  // of numa_maps, for all workloads together
	window    window.Window // what has been read so far
	parents   map[string]cgroup.Effective

	// Of the workload that is being read:
	tids       []int                       // its threads
	throttling unit.Opt[cgroup.Throttling] // from cpu.stat, if the CPU time is in the same file
}

func (r *Reader) beginRound(found []cgroup.Cgroup) *round {
	r.seq++
	rd := &round{host: &r.host, seq: r.seq, maps: r.bounds.Round.begin(nil), parents: map[string]cgroup.Effective{},
		workloads: make([]*workload, 0, len(found)), window: window.Window{Schema: window.Schema, Seq: r.seq}}
	rd.window.Workloads = slices.Grow(rd.window.Workloads, len(found))
	for _, cg := range found {
		rd.workloads = append(rd.workloads, r.workloads[cg.ID])
	}
	for _, c := range r.collectors {
		r.problem(c.begin(rd))
	}
	return rd
}

// addWorkload reads one workload into the window. One that has gone by now is left out.
func (r *Reader) addWorkload(rd *round, w *workload) {
	out, err := r.readWorkload(rd, w)
	switch {
	case errors.Is(err, ErrGone):
		r.forget(w.ID)
	case err != nil:
		r.problem(err)
	default:
		rd.window.Workloads = append(rd.window.Workloads, out)
	}
}

// readWorkload fails where the cpuset or the threads cannot be read: without them it is
// no workload. Any other figure may be unknown.
func (r *Reader) readWorkload(rd *round, w *workload) (window.Workload, error) {
	out := window.Workload{ID: w.ID, Owner: w.Owner}
	var err error
	if out.Binding, err = w.cpuset.binding(rd, w); err != nil {
		return window.Workload{}, err
	}
	if err = w.readTasks(rd, &out); err != nil {
		return window.Workload{}, err
	}
	for _, s := range w.sensors {
		if err := s.read(rd, &out); err != nil {
			s.unknown(rd, &out, err.Error())
		}
	}
	w.seen++
	return out, nil
}
