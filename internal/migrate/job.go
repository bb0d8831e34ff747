// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"time"

	"homenode/internal/machine"
	"homenode/internal/migration"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// Job is the request, checked as far as that is possible without a machine.
type Job struct {
	Workload, Cgroup            string // one of the three
	PIDs                        []int
	Mode                        migration.Mode
	To, From                    set.NodeSet
	Rate                        unit.Bytes // 0: no limit
	Most                        unit.Bytes // to move; 0: everything
	MaxStall, HotFor            time.Duration
	FreezeLimit                 time.Duration
	Workers                     int        // 0: by fillWorkers
	cpus                        set.CPUSet // of the workers; empty: any
	Cache, LeaveShared, Partial bool
	DryRun                      bool
	Profile, State              string
	DirectOwners                []string
}

const (
	MostWorkers = 256 // more than any node has memory channels for
	// freezeWorkers is the number of a node's CPUs that freeze mode uses: as many copy
	// as fast as a node's memory can be written.
	freezeWorkers = 8
)

// fillWorkers chooses what was not given. A frozen workload needs none of its CPUs, so
// the workers run on CPUs of the nodes that are written and read, as far as this
// process may use them. On either node, one side of a copy is far.
func (j *Job) fillWorkers(m machine.Machine, allowed set.CPUSet) {
	if j.Mode == migration.Freeze {
		for _, n := range m.Nodes {
			if j.To.Has(n.ID) || migration.Elsewhere(n.ID, j.From, j.To) {
				j.cpus = j.cpus.Union(n.CPUs)
			}
		}
		if !allowed.IsEmpty() {
			j.cpus = j.cpus.Intersect(allowed)
		}
	}
	if j.Workers > 0 {
		return
	}
	j.Workers = 1
	if j.Mode == migration.Freeze {
		cpus := j.cpus
		if cpus.IsEmpty() { // nodes without CPUs: any CPU that we may use
			cpus = allowed
		}
		j.Workers = min(freezeWorkers, max(1, cpus.Len()))
	}
}
