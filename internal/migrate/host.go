// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"homenode/internal/kernel"
	"homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/launch"
	"homenode/internal/kernel/migrate"
	"homenode/internal/kernel/unix"
	"homenode/internal/machine"
	"homenode/internal/migration"
	owner "homenode/internal/owner/cgroup"
	"homenode/internal/set"
	"homenode/internal/source"
)

// Mover finds where pages are, and moves them.
type Mover interface {
	Census(ctx context.Context, req migrate.Request) (migration.Census, error)
	// Move goes on until everything is done, the budget is used up or the context ends.
	// A result beside an error is valid.
	Move(ctx context.Context, req migrate.Request) (migration.Result, error)
}

// Stilled is a cgroup whose tasks stand still.
type Stilled interface {
	Thaw() error
	Lost() <-chan struct{} // closed when no other process would thaw it any more
	Already() bool         // another process froze it, and may thaw it or not
}

// Heated finds what was accessed.
type Heated interface {
	migrate.Hot
	Heat() migration.Heat
	Notes() []string
}

// Host is the machine that migrate works on. It reads below a root folder, so that
// tests can use a fake tree; it acts by functions.
type Host struct {
	Root      kernel.Root
	PID       int // ours: must not be frozen or moved
	Clock     func() (clock migrate.Clock, note string, err error)
	Mover     func(clock migrate.Clock, shared bool) (Mover, error)
	Freezable func(root kernel.Root, pids []int) (id string, err error)
	Freeze    func(ctx context.Context, id string, cfg owner.FreezeConfig) (Stilled, error)
	IsFrozen  func(id string) (bool, error)
	Hot       func(ctx context.Context, pids []int, watch time.Duration) (Heated, error)
}

func (h Host) machine() (machine.Machine, error) {
	m, err := kernel.ReadMachine(h.Root)
	m, _, err = source.Usable(m, err, h.Root.String())
	return m, err
}

// allowedCPUs is empty where they cannot be read.
func (h Host) allowedCPUs() set.CPUSet {
	limits, err := launch.ReadLimits(h.Root)
	if err != nil {
		return set.CPUSet{}
	}
	return limits.CPUs
}

// target is the workload whose memory is moved.
type target struct {
	name      string // "cgroup /demo/a", "processes 12, 13"
	id        string // of the cgroup; in freeze mode, that of the processes' cgroup
	pids      []int
	again     func() ([]int, error)
	processes []kernel.Process
}

// find resolves the named target to processes that have memory.
func (h Host) find(j Job) (t target, err error) {
	switch {
	case j.Workload != "":
		t.id, err = kernel.FindWorkload(h.Root, j.Workload)
	case j.Cgroup != "":
		t.id, err = kernel.FindCgroup(h.Root, j.Cgroup)
	default:
		return h.findProcesses(j)
	}
	if err != nil {
		return t, err
	}
	t.name = "cgroup " + t.id
	all, err := h.pidsOf(t.id)
	if err != nil {
		return t, err
	}
	if err := h.notItself(j, t.name, all); err != nil {
		return t, err
	}
	t.again = func() ([]int, error) {
		all, err := h.pidsOf(t.id)
		if err != nil {
			return nil, err
		}
		_, pids, err := h.living(all)
		return pids, err
	}
	if t.processes, t.pids, err = h.living(all); err != nil {
		return t, err
	}
	if len(t.pids) == 0 {
		return t, fmt.Errorf("%s: it has no process with memory: its processes have ended (%w)", t.name, kernel.ErrGone)
	}
	return t, nil
}

// living are the processes that have memory, without homenode itself: no ended
// processes and no kernel threads.
func (h Host) living(all []int) (processes []kernel.Process, pids []int, err error) {
	for _, pid := range h.others(all) {
		p, err := kernel.FindProcess(h.Root, pid)
		if errors.Is(err, kernel.ErrGone) || errors.Is(err, kernel.ErrNotSupported) {
			continue
		} else if err != nil {
			return nil, nil, err
		}
		processes, pids = append(processes, p), append(pids, pid)
	}
	return processes, pids, nil
}

// others are all but this process.
func (h Host) others(pids []int) []int {
	return slices.DeleteFunc(pids, func(pid int) bool { return pid == h.PID })
}

// pidsOf lists the processes of a cgroup and of the cgroups below it.
func (h Host) pidsOf(id string) ([]int, error) {
	layout, err := cgroup.Find(h.Root)
	if err != nil {
		return nil, err
	}
	var buf unix.Buffer
	all, err := layout.PIDs(nil, id, &buf)
	slices.Sort(all)
	return slices.Compact(all), err
}

// notItself refuses to freeze homenode itself: it could never thaw itself.
func (h Host) notItself(j Job, name string, pids []int) error {
	if !slices.Contains(pids, h.PID) {
		return nil
	}
	if j.Mode == migration.Freeze {
		return fmt.Errorf("freeze %s: homenode itself is in it: start it from another cgroup, or use --mode live", name)
	}
	return nil
}

func (h Host) findProcesses(j Job) (t target, err error) {
	t = target{name: processNames(j.PIDs), pids: j.PIDs}
	if err := h.notItself(j, t.name, j.PIDs); err != nil {
		return t, err
	}
	for _, pid := range j.PIDs {
		p, err := kernel.FindProcess(h.Root, pid)
		if err != nil {
			return t, err
		}
		t.processes = append(t.processes, p)
	}
	if j.Mode == migration.Freeze {
		t.id, err = h.Freezable(h.Root, j.PIDs)
	}
	return t, err
}

// mostNamed is the number of processes that are named: a line has room for as many.
const mostNamed = 8

func processNames(pids []int) string {
	if len(pids) == 1 {
		return "process " + strconv.Itoa(pids[0])
	}
	var names []string
	for _, pid := range pids[:min(len(pids), mostNamed)] {
		names = append(names, strconv.Itoa(pid))
	}
	text := "processes " + strings.Join(names, ", ")
	if more := len(pids) - mostNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
