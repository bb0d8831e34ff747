// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"fmt"
	"slices"

	"homenode/internal/kernel"
	"homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/unix"
)

// FreezableFor returns the cgroup that holds exactly these processes: the kernel freezes
// cgroups, not processes.
func FreezableFor(root kernel.Root, pids []int) (string, error) {
	l, err := cgroup.Find(root)
	if err == nil {
		err = l.NeedCpuset()
	}
	if err != nil {
		return "", err
	}
	if len(pids) == 0 {
		return "", fmt.Errorf("find the cgroup of no process (%w)", kernel.ErrMalformed)
	}
	var buf unix.Buffer
	id := ""
	for _, pid := range pids {
		its, err := l.CpusetOf(pid, &buf)
		if err != nil {
			return "", err
		}
		if id != "" && its != id {
			return "", fmt.Errorf("process %d is in cgroup %s, process %d in %s (%w): name one cgroup, or use --mode live", pids[0], id, pid, its, kernel.ErrNotSupported)
		}
		id = its
	}
	if err := alone(l, id, pids, &buf); err != nil {
		return "", err
	}
	return id, nil
}

// alone reports the other processes of a cgroup.
func alone(l cgroup.Layout, id string, pids []int, buf *unix.Buffer) error {
	if id == "/" {
		return fmt.Errorf("process %d is in the root cgroup, which cannot be frozen (%w): use --mode live", pids[0], kernel.ErrNotSupported)
	}
	all, err := l.PIDs(nil, id, buf)
	if err != nil {
		return err
	}
	others := slices.DeleteFunc(all, func(pid int) bool { return slices.Contains(pids, pid) })
	switch len(others) {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("process %d shares its cgroup %s with process %d (%w): name the cgroup, or use --mode live", pids[0], id, others[0], kernel.ErrNotSupported)
	}
	return fmt.Errorf("process %d shares its cgroup %s with %d others (%w): name the cgroup, or use --mode live", pids[0], id, len(others), kernel.ErrNotSupported)
}
