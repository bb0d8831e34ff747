// SPDX-License-Identifier: Apache-2.0

package resctrl

import (
	"errors"
	"path"
	"slices"

	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
)

// Groups lists the present groups.
type Groups struct {
	Mons     []string // monitoring groups of ours, by name, below the default group
	Controls []string // control groups of ours, by name
	// RMIDs and CLOSIDs that groups other than Mons use, the default one included.
	RMIDs, CLOSIDs int
	// Foreign are the tasks in other processes' groups, with the group.
	Foreign map[int]string
}

// kernelsOwn are directories of the default group that are not groups.
var kernelsOwn = []string{"info", monGroups, "mon_data"}

const monGroups = "mon_groups"

// ReadGroups reads all groups. With an error the tasks of some are unknown.
func ReadGroups(fs FS) (Groups, error) {
	g := Groups{RMIDs: 1, CLOSIDs: 1, Foreign: map[int]string{}}
	names, err := fs.Dirs("")
	if err != nil {
		return g, unix.Explain("list", "resctrl groups", "", err)
	}
	errs := []error{g.readMons(fs, "")}
	for _, name := range names {
		if slices.Contains(kernelsOwn, name) {
			continue
		}
		g.RMIDs, g.CLOSIDs = g.RMIDs+1, g.CLOSIDs+1
		if IsControl(name) {
			g.Controls = append(g.Controls, name)
		} else {
			errs = append(errs, g.addForeign(fs, name))
		}
		errs = append(errs, g.readMons(fs, name))
	}
	return g, errors.Join(errs...)
}

// readMons reads the monitoring groups of a control group, "" for the default one.
func (g *Groups) readMons(fs FS, control string) error {
	dir := path.Join(control, monGroups)
	names, err := fs.Dirs(dir)
	if err != nil {
		if IsGone(err) { // no monitoring here
			return nil
		}
		return unix.Explain("list", "resctrl "+dir, "", err)
	}
	var errs []error
	for _, name := range names {
		if control == "" && IsMon(name) {
			g.Mons = append(g.Mons, name)
			continue
		}
		g.RMIDs++
		errs = append(errs, g.addForeign(fs, path.Join(dir, name)))
	}
	return errors.Join(errs...)
}

func (g *Groups) addForeign(fs FS, dir string) error {
	tids, err := Tasks(fs, dir, nil)
	if IsGone(err) {
		return nil
	}
	for _, tid := range tids {
		g.Foreign[tid] = dir
	}
	return err
}

// Tasks appends the threads of a group. For the default group the file also has those of
// its monitoring groups, and none at all where nothing can be limited (show_rdt_tasks in
// fs/resctrl/rdtgroup.c).
func Tasks(fs FS, dir string, dst []int) ([]int, error) {
	file := path.Join(dir, "tasks")
	data, err := fs.Read(file)
	if err != nil {
		return dst, unix.Explain("read", "resctrl "+file, "", err)
	}
	return procfs.AppendPIDs(dst, data)
}
