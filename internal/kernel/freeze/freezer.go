// SPDX-License-Identifier: Apache-2.0

package freeze

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/unix"
)

// The files that freeze.
const (
	FileV2 = "cgroup.freeze" // since 5.2
	FileV1 = "freezer.state" // since 2.6.28
)

// Freezer is the freezer of one cgroup, with its files open: it works even when no file
// can be opened any more. Only Set is safe for concurrent use.
type Freezer struct {
	ID, File string // in the journal's names
	v2       bool
	pids     func() ([]int, error)
	control  *os.File
	own      *os.File    // what was requested for this cgroup itself: control, or v1's self_freezing
	state    []unix.Kept // v2: cgroup.freeze, cgroup.events; v1: freezer.state, self_freezing, parent_freezing
	buf      unix.Buffer
}

// Find opens the freezer of a workload, a cgroup named by its path below the
// hierarchy that has cpuset.
//
//  1. If that is v2, it is the cgroup's own.
//  2. Otherwise it is that of the cgroup with the same path in the v1 freezer, or in v2.
//     It counts only if the processes there and below are exactly the workload's.
func Find(live unix.Live, l cgroup.Layout, id string) (*Freezer, error) {
	if !live.Valid() {
		return nil, fmt.Errorf("freeze %s: only the running kernel can be acted upon (%w)", id, unix.ErrNotSupported)
	}
	if _, err := unix.Inode(l.Path(l.Cpuset, id, "")); err != nil {
		return nil, unix.Explain("freeze", id, "", err)
	}
	var errs []error
	for _, h := range hierarchies(l) {
		err := same(l, h, id)
		if err == nil {
			var f *Freezer
			if f, err = Open(live, l, id, fileOf(h)); err == nil {
				return f, nil
			}
		}
		errs = append(errs, err)
	}
	if errs == nil {
		errs = append(errs, fmt.Errorf("freeze %s: no hierarchy with a freezer is mounted (%w): mount cgroup v2, or v1 with -o freezer", id, unix.ErrNotSupported))
	}
	return nil, errors.Join(errs...)
}

// hierarchies are those that may have the workload's freezer, the likely one first.
func hierarchies(l cgroup.Layout) []cgroup.Hier {
	all := []cgroup.Hier{l.Freezer, l.Unified}
	if l.Cpuset.V2 { // (1)
		all = []cgroup.Hier{l.Cpuset}
	}
	return slices.DeleteFunc(all, func(h cgroup.Hier) bool { return !h.Present() })
}

func fileOf(h cgroup.Hier) string {
	if h.V2 {
		return FileV2
	}
	return FileV1
}

// same is (2). A process that is forked between the two readings is in one only; after
// another reading it is in both.
func same(l cgroup.Layout, h cgroup.Hier, id string) error {
	if h == l.Cpuset {
		return nil
	}
	if _, err := unix.Inode(l.Path(h, id, "")); err != nil {
		return fmt.Errorf("freeze %s: the freezer in %s has no cgroup of that path: its processes are elsewhere there (%w)", id, h.Mount, unix.ErrNotSupported)
	}
	var ours, theirs []int
	var buf unix.Buffer
	for range 3 {
		var err1, err2 error
		ours, err1 = l.PIDs(ours[:0], id, &buf)
		theirs, err2 = l.PIDsIn(h, theirs[:0], id, &buf)
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		slices.Sort(ours)
		slices.Sort(theirs)
		if slices.Equal(ours, theirs) {
			return nil
		}
	}
	return fmt.Errorf("freeze %s: the freezer in %s has other processes there, %d of them, than the %d of the workload (%w)", id, h.Mount, len(theirs), len(ours), unix.ErrNotSupported)
}

// Open opens the freezer of a cgroup by its name in the journal, whatever processes it
// has.
func Open(live unix.Live, l cgroup.Layout, id, file string) (*Freezer, error) {
	h, names := l.Unified, []string{FileV2, "cgroup.events"}
	if file == FileV1 {
		h, names = l.Freezer, []string{FileV1, "freezer.self_freezing", "freezer.parent_freezing"}
	}
	if !live.Valid() || !h.Present() {
		return nil, fmt.Errorf("open %s: no such freezer is mounted (%w)", path.Join(id, file), unix.ErrNotSupported)
	}
	f := &Freezer{ID: id, File: file, v2: h.V2}
	f.pids = func() ([]int, error) { var buf unix.Buffer; return l.PIDsIn(h, nil, id, &buf) }
	for _, name := range names {
		f.state = append(f.state, unix.Kept{Path: l.Path(h, id, name)})
	}
	// Not os.OpenFile, which may make it a file that Go polls: a child shares that mode.
	fd, err := sys.Open(l.Path(h, id, file), sys.O_RDWR|sys.O_CLOEXEC, 0)
	if err == nil {
		f.control = os.NewFile(uintptr(fd), path.Join(id, file))
		f.openOwn(l.Path(h, id, names[1]))
		if _, err = f.State(); err != nil {
			f.Close()
		}
	}
	if err != nil {
		return nil, openError(l.Path(h, id, ""), id, file, err)
	}
	return f, nil
}

// openOwn: kernels before 3.8 have no self_freezing.
func (f *Freezer) openOwn(selfFreezing string) {
	f.own = f.control
	if f.v2 {
		return
	}
	if fd, err := sys.Open(selfFreezing, sys.O_RDONLY|sys.O_CLOEXEC, 0); err == nil {
		f.own = os.NewFile(uintptr(fd), selfFreezing)
	}
}

// openError distinguishes a cgroup that is gone from a kernel that lacks the file.
func openError(dir, id, file string, err error) error {
	if unix.Classify(err) != unix.ErrGone {
		return unix.Explain("open", path.Join(id, file), "write access to cgroup files (root, or a delegated subtree)", err)
	}
	if _, gone := unix.Inode(dir); gone != nil {
		return unix.Explain("open", path.Join(id, file), "", err)
	}
	return fmt.Errorf("freeze %s: it has no %s: it is the root, or the kernel is older than 5.2 (%w)", id, file, unix.ErrNotSupported)
}

// Inside reports whether a process is in the cgroup, or below.
func (f *Freezer) Inside(pid int) (bool, error) {
	pids, err := f.pids()
	return slices.Contains(pids, pid), err
}

// Close closes the files.
func (f *Freezer) Close() error {
	for i := range f.state {
		f.state[i].Close()
	}
	if f.own != f.control {
		f.own.Close()
	}
	return f.control.Close()
}
