// SPDX-License-Identifier: Apache-2.0

package main

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

// pageMover looks where pages are, and moves them.
type pageMover interface {
	Census(ctx context.Context, req migrate.Request) (migration.Census, error)
	// Move goes on until all is done, the budget is used up or the context ends. What
	// it returns beside an error counts.
	Move(ctx context.Context, req migrate.Request) (migration.Result, error)
}

// stilled is a cgroup that stands still.
type stilled interface {
	Thaw() error
	Lost() <-chan struct{} // closed when nothing but us would thaw it any more
	Already() bool         // somebody else froze it, and thaws it or not
}

// heated knows what was accessed.
type heated interface {
	migrate.Hot
	Heat() migration.Heat
	Notes() []string
}

// migrateHost is the machine that migrate works on. Reading is by root, so that a
// fake tree will do in tests; acting is by functions.
type migrateHost struct {
	root      kernel.Root
	pid       int // ours: not to be frozen, nor moved
	clock     func() (clock migrate.Clock, note string, err error)
	mover     func(clock migrate.Clock, shared bool) (pageMover, error)
	freezable func(root kernel.Root, pids []int) (id string, err error)
	freeze    func(ctx context.Context, id string, cfg owner.FreezeConfig) (stilled, error)
	isFrozen  func(id string) (bool, error)
	hot       func(ctx context.Context, pids []int, watch time.Duration) (heated, error)
}

func (h migrateHost) machine() (machine.Machine, error) {
	m, err := kernel.ReadMachine(h.root)
	m, _, err = source.Usable(m, err, h.root.String())
	return m, err
}

// allowedCPUs is empty where they cannot be read.
func (h migrateHost) allowedCPUs() set.CPUSet {
	limits, err := launch.ReadLimits(h.root)
	if err != nil {
		return set.CPUSet{}
	}
	return limits.CPUs
}

// migrateTarget is whose memory is moved.
type migrateTarget struct {
	name      string // "cgroup /demo/a", "processes 12, 13"
	id        string // of the cgroup; of processes in freeze mode, theirs
	pids      []int
	again     func() ([]int, error)
	processes []kernel.Process
}

// find resolves what was named, to processes that have memory.
func (h migrateHost) find(j migrateJob) (t migrateTarget, err error) {
	switch {
	case j.workload != "":
		t.id, err = kernel.FindWorkload(h.root, j.workload)
	case j.cgroup != "":
		t.id, err = kernel.FindCgroup(h.root, j.cgroup)
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
		return t, fmt.Errorf("%s: it has no process with memory: they have ended (%w)", t.name, kernel.ErrGone)
	}
	return t, nil
}

// living are those that have memory, but for us: none that ended just now, and no
// kernel threads.
func (h migrateHost) living(all []int) (processes []kernel.Process, pids []int, err error) {
	for _, pid := range h.others(all) {
		p, err := kernel.FindProcess(h.root, pid)
		if errors.Is(err, kernel.ErrGone) || errors.Is(err, kernel.ErrNotSupported) {
			continue
		} else if err != nil {
			return nil, nil, err
		}
		processes, pids = append(processes, p), append(pids, pid)
	}
	return processes, pids, nil
}

// others are all but us.
func (h migrateHost) others(pids []int) []int {
	return slices.DeleteFunc(pids, func(pid int) bool { return pid == h.pid })
}

// pidsOf lists a cgroup's processes and those below it.
func (h migrateHost) pidsOf(id string) ([]int, error) {
	layout, err := cgroup.Find(h.root)
	if err != nil {
		return nil, err
	}
	var buf unix.Buffer
	all, err := layout.PIDs(nil, id, &buf)
	slices.Sort(all)
	return slices.Compact(all), err
}

// notItself: who freezes itself never thaws.
func (h migrateHost) notItself(j migrateJob, name string, pids []int) error {
	if !slices.Contains(pids, h.pid) {
		return nil
	}
	if j.mode == migration.Freeze {
		return fmt.Errorf("freeze %s: homenode itself is in it: start it from another cgroup, or use --mode live", name)
	}
	return nil
}

func (h migrateHost) findProcesses(j migrateJob) (t migrateTarget, err error) {
	t = migrateTarget{name: processNames(j.pids), pids: j.pids}
	if err := h.notItself(j, t.name, j.pids); err != nil {
		return t, err
	}
	for _, pid := range j.pids {
		p, err := kernel.FindProcess(h.root, pid)
		if err != nil {
			return t, err
		}
		t.processes = append(t.processes, p)
	}
	if j.mode == migration.Freeze {
		t.id, err = h.freezable(h.root, j.pids)
	}
	return t, err
}

// mostNamed is how many processes are named; a line has room for so many.
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
