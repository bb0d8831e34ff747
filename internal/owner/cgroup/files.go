// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	sys "golang.org/x/sys/unix"

	"homenode/internal/action"
	"homenode/internal/journal"
	"homenode/internal/kernel"
	"homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/unix"
	"homenode/internal/set"
)

func (a *Applier) path(s journal.Setting) string {
	return a.layout.Path(a.layout.Cpuset, s.Cgroup, s.File)
}

// Read reads a setting. Of cgroup.subtree_control only our controller counts:
// "+cpuset" or "-cpuset".
func (a *Applier) Read(s journal.Setting) (journal.Current, error) {
	if !strings.HasPrefix(s.Cgroup, "/") { // reporting it as gone would end its record
		return journal.Current{}, fmt.Errorf("read %s: it is no cgroup's: another owner puts it back", s)
	}
	if err := a.lane.pending(s); err != nil {
		return journal.Current{}, err
	}
	inode, err := unix.Inode(a.layout.Path(a.layout.Cpuset, s.Cgroup, ""))
	if err != nil {
		return journal.Current{}, unix.Explain("read", s.String(), "", err)
	}
	var buf unix.Buffer
	data, err := buf.ReadFile(a.path(s))
	if err != nil {
		return journal.Current{}, a.explain("read", s, err)
	}
	value := strings.TrimSpace(string(data))
	if s.File == subtreeFile {
		value = controllerOff
		if slices.Contains(strings.Fields(string(data)), "cpuset") {
			value = controllerOn
		}
	}
	return journal.Current{Value: value, ID: inode}, nil
}

// explain distinguishes a cgroup that is gone from one that lacks the file because the
// controller is off.
func (a *Applier) explain(verb string, s journal.Setting, err error) error {
	if unix.Classify(err) != kernel.ErrGone {
		return unix.Explain(verb, s.String(), "write access to cgroup files (root, or a delegated subtree)", err)
	}
	if _, gone := unix.Inode(a.layout.Path(a.layout.Cpuset, s.Cgroup, "")); gone != nil {
		return unix.Explain(verb, s.String(), "", err)
	}
	return fmt.Errorf("%s %s: the cpuset controller is off there (%w)", verb, s, kernel.ErrNotSupported)
}

// Same compares sets by their members.
//
// A v1 cpuset loses CPUs and nodes that go offline for good
// (cpuset_hotplug_update_tasks in kernel/cgroup/cpuset.c): what is left of a
// recorded value then is still that value.
func (a *Applier) Same(s journal.Setting, current, recorded string) bool {
	switch s.File {
	case cpusFile:
		return set.SameCPUs(current, recorded) || isLeft(set.ParseCPUs, current, recorded, func() set.CPUSet { return a.parent(s).CPUs })
	case memsFile:
		return set.SameNodes(current, recorded) || isLeft(set.ParseNodes, current, recorded, func() set.NodeSet { return a.parent(s).Mems })
	}
	return current == recorded
}

// isLeft reports whether current is what the parent has left of recorded.
func isLeft[K set.Kind](parse func(string) (set.Set[K], error), current, recorded string, parent func() set.Set[K]) bool {
	c, err1 := parse(current)
	r, err2 := parse(recorded)
	if err1 != nil || err2 != nil || c.IsEmpty() {
		return false
	}
	p := parent()
	return !p.IsEmpty() && c == r.Intersect(p)
}

// parent is the value of a v1 cgroup's parent. It is empty on v2, where the configured
// value outlives hotplug.
func (a *Applier) parent(s journal.Setting) cgroup.Effective {
	if a.layout.Cpuset.V2 {
		return cgroup.Effective{}
	}
	var buf unix.Buffer
	e, err := a.layout.ReadEffective(path.Dir(s.Cgroup), &buf)
	if err != nil {
		return cgroup.Effective{}
	}
	return e
}

// Write writes a setting. The permit proves that it is on record.
func (a *Applier) Write(p journal.Permit, s journal.Setting, value string) error {
	if !p.Valid() {
		return fmt.Errorf("set %s: %w: the journal gave no permit", s, journal.ErrRefused)
	}
	if s.File == subtreeFile && value == controllerOff {
		if child, used := a.inUse(s.Cgroup); used {
			return fmt.Errorf("switch the cpuset controller off below %s: %w: %s has a cpuset of its own", s.Cgroup, journal.ErrInUse, child)
		}
	}
	if s.File == memsFile {
		if err := a.maps.Answer(context.Background(), s.Cgroup); err != nil {
			return err
		}
	}
	err := a.lane.write(s, func() error { return a.write(a.path(s), value) })
	if err == nil || errors.Is(err, unix.ErrNoAnswer) {
		return err
	}
	return a.refusal(s, value, err)
}

// refusal explains the kernel's error (validate_change and update_cpumask in
// kernel/cgroup/cpuset.c, cgroup_vet_subtree_control_enable in cgroup.c):
//
//	ENOSPC  the set would be empty and there are processes
//	EINVAL  on v1: it holds CPUs that are offline
//	EACCES  on v1: it is not within its parent's; else: no write access
//	EBUSY   on v1: a child has more; of a controller: processes, or children use it
func (a *Applier) refusal(s journal.Setting, value string, err error) error {
	v1 := !a.layout.Cpuset.V2
	isSet := s.File != subtreeFile
	switch {
	case isSet && errors.Is(err, sys.ENOSPC),
		isSet && v1 && value == "" && errors.Is(err, sys.EINVAL),
		isSet && v1 && a.outside(s, value) && (errors.Is(err, sys.EINVAL) || errors.Is(err, sys.EACCES)):
		return fmt.Errorf("set %s to %q: %w (%w)", s, value, journal.ErrNeedsValue, err)
	case isSet && errors.Is(err, sys.EBUSY):
		return fmt.Errorf("set %s to %q: %w: a cgroup below it has more, or it is exclusive", s, value, journal.ErrRefused)
	case errors.Is(err, sys.EBUSY) && value == controllerOff:
		return fmt.Errorf("switch the cpuset controller off below %s: %w: a cgroup below has it on", s.Cgroup, journal.ErrInUse)
	case errors.Is(err, sys.EBUSY):
		return fmt.Errorf("switch the cpuset controller on below %s: %w: it has processes of its own, and a cgroup with processes may not have controllers for those below", s.Cgroup, journal.ErrRefused)
	}
	return a.explain("set", s, err)
}

// outside reports whether a set is outside what the parent has.
func (a *Applier) outside(s journal.Setting, value string) bool {
	p := a.parent(s)
	if s.File == cpusFile {
		v, err := set.ParseCPUs(value)
		return err == nil && !v.SubsetOf(p.CPUs)
	}
	v, err := set.ParseNodes(value)
	return err == nil && !v.SubsetOf(p.Mems)
}

// inUse finds a child cgroup whose cpuset would be lost with the controller: one with a
// value that restricts, or a partition.
func (a *Applier) inUse(id string) (string, bool) {
	var buf unix.Buffer
	eff, err := a.layout.ReadEffective(id, &buf)
	if err != nil {
		return "", false
	}
	for _, child := range a.layout.Children(a.layout.Cpuset, id) {
		cpus, err1 := a.Read(journal.Setting{Cgroup: child, File: cpusFile})
		mems, err2 := a.Read(journal.Setting{Cgroup: child, File: memsFile})
		if err1 != nil || err2 != nil {
			continue
		}
		part, _ := buf.ReadFile(a.layout.Path(a.layout.Cpuset, child, "cpuset.cpus.partition"))
		mode := strings.TrimSpace(string(part))
		if means(set.ParseCPUs, cpus.Value, eff.CPUs) || means(set.ParseNodes, mems.Value, eff.Mems) || mode != "" && mode != "member" {
			return child, true
		}
	}
	return "", false
}

// means reports whether a value restricts: it is neither empty nor everything there is.
func means[K set.Kind](parse func(string) (set.Set[K], error), value string, all set.Set[K]) bool {
	s, err := parse(value)
	return err != nil || !s.IsEmpty() && s != all
}

// Equivalent is the closest value to an original that the kernel refuses. For an empty
// set it is what the parent has; otherwise it is what the parent still has of the
// original.
func (a *Applier) Equivalent(s journal.Setting, original string) (string, error) {
	var buf unix.Buffer
	parent, err := a.layout.ReadEffective(path.Dir(s.Cgroup), &buf)
	if err != nil {
		return "", err
	}
	if s.File == memsFile {
		return closest(set.ParseNodes, original, parent.Mems)
	}
	return closest(set.ParseCPUs, original, parent.CPUs)
}

func closest[K set.Kind](parse func(string) (set.Set[K], error), original string, parent set.Set[K]) (string, error) {
	o, err := parse(original)
	if err != nil {
		return "", err
	}
	if both := o.Intersect(parent); !both.IsEmpty() {
		return both.String(), nil
	}
	return parent.String(), nil
}

// statusOf is the status of a step that failed with err.
func statusOf(err error) action.Status {
	switch {
	case errors.Is(err, kernel.ErrGone):
		return action.Gone
	case errors.Is(err, journal.ErrRefused), errors.Is(err, kernel.ErrNotPermitted), errors.Is(err, kernel.ErrNotSupported):
		return action.Refused
	}
	return action.Failed
}
