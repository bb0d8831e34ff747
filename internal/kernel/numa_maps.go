// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
)

// MapsBounds limits the reading of numa_maps: any user can map a file 65,530 times
// under a path of 4 KiB, in each of their processes.
type MapsBounds struct {
	Process, Workload, Round MapsBound
}

// MapsBound limits text and time.
type MapsBound struct {
	Bytes int64
	Time  time.Duration
}

// defaultMaps: a process with 65,530 mappings has 10 MB of text with paths of usual
// length, and the kernel takes some 1.5 ms for 100 MiB of memory. Together they take
// half of a period of 10 s at most.
var defaultMaps = MapsBounds{
	Process:  MapsBound{16 << 20, 2 * time.Second},
	Workload: MapsBound{64 << 20, 4 * time.Second},
	Round:    MapsBound{128 << 20, 5 * time.Second},
}

func (b MapsBound) begin(of *unix.Budget) *unix.Budget { return of.Within(b.Bytes, b.Time) }

// eachVMA visits the mappings of at most this many of a workload's processes, within
// the bounds. An error says that mappings are missing: it is ErrTooLarge if one of them has
// more, unix.ErrNoAnswer if one does not answer, and the others are not read then. Processes that
// have ended are no error.
func (rd *round) eachVMA(w *workload, processes int, visit func(pid int, v procfs.VMA)) error {
	pids, err := rd.layout.PIDs(nil, w.ID, &rd.buf)
	if err != nil {
		return nil
	}
	budget, partly := rd.bounds.Workload.begin(rd.maps), error(nil)
	for _, pid := range pids[:min(processes, len(pids))] {
		err := rd.vmas(pid, budget, visit)
		switch {
		case errors.Is(err, unix.ErrNoAnswer):
			return fmt.Errorf("%s: %w", w.ID, err)
		case errors.Is(err, unix.ErrTooLarge):
			return unix.Explain("read", fmt.Sprintf("/proc/%d/numa_maps of %s", pid, w.ID), "", err)
		case unix.Classify(err) == ErrNotPermitted:
			partly = cmp.Or(partly, unix.Explain("read", "/proc/PID/numa_maps", "CAP_SYS_PTRACE", err))
		case errors.Is(err, ErrMalformed): // a user can make a path that is longer than a line may be
			partly = cmp.Or(partly, err)
		}
	}
	return partly
}

// vmas gives up when the process does not answer: a budget's time is checked between
// two system calls only.
func (rd *round) vmas(pid int, of *unix.Budget, visit func(pid int, v procfs.VMA)) error {
	bound := rd.bounds.Process
	return rd.patient.numaMaps(pid, rd.procPath(pid, "numa_maps"), bound.begin(of), bound.Time, func(v procfs.VMA) { visit(pid, v) })
}
