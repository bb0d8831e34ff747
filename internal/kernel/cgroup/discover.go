// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
)

// Cgroup is one workload as found.
type Cgroup struct {
	ID    string // path from the root of the hierarchy that has cpuset
	Owner string // by its path: OwnerOf; Layout.Owner also looks at its processes
}

// Discover lists the workloads, ascending by id.
//
//  1. With roots, globs like "/demo/*": every cgroup that matches and has a
//     process in it or below. With none: every cgroup but the root that has
//     processes of its own.
//  2. A threaded cgroup belongs to its domain above and is no workload.
//
// What vanishes meanwhile is left out.
func (l Layout) Discover(roots []string) ([]Cgroup, error) {
	return l.DiscoverKnowing(roots, nil, func(error) {})
}

// Bounds of a walk. A user to whom a subtree is delegated can make any number of cgroups.
// The walk goes level by level, so that such a user's deep tree is left out before other
// users' services, which are near the top.
const (
	maxChildren = 8 << 10  // of one cgroup
	maxLooked   = 20 << 10 // cgroups, in all
	maxFound    = 2560     // workloads: some 20 kB each with names of 200 bytes, in the reader, a window and its JSON; more take the agent beyond 64 MiB
	// maxPath is PATH_MAX less the longest name of a file.
	maxPath = 4095 - 64
)

// DiscoverKnowing is Discover for a caller that repeats it. A known cgroup without others
// below is believed to have processes: a caller that reads its threads sees if there are
// none. problem is called for cgroups that are left out because they are too many, or
// their paths too long.
func (l Layout) DiscoverKnowing(roots []string, known func(id string) bool, problem func(error)) ([]Cgroup, error) {
	if err := l.NeedCpuset(); err != nil {
		return nil, err
	}
	w := walker{Layout: l, known: known, problem: problem, left: maxLooked}
	var err error
	if len(roots) == 0 {
		w.walk("/")
	} else {
		err = w.globs(roots)
	}
	slices.SortFunc(w.found, func(a, b Cgroup) int { return cmp.Compare(a.ID, b.ID) })
	return slices.Compact(w.found), err
}

type walker struct {
	Layout
	known   func(id string) bool // nil: none
	problem func(error)
	left    int // cgroups that may still be looked at
	buf     unix.Buffer
	found   []Cgroup
}

func (w *walker) globs(roots []string) error {
	top := w.Path(w.Cpuset, "/", "")
	for _, pattern := range roots {
		if !strings.HasPrefix(pattern, "/") || path.Clean(pattern) == "/" {
			return fmt.Errorf("discover workloads: root %q: want a cgroup path like /demo/* (%w)", pattern, unix.ErrMalformed)
		}
		dirs, err := filepath.Glob(filepath.Join(top, pattern))
		if err != nil {
			return fmt.Errorf("discover workloads: root %q: %w (%w)", pattern, err, unix.ErrMalformed)
		}
		for _, dir := range dirs {
			if len(w.found) == maxFound {
				w.problem(fmt.Errorf("look at %s: more than %d workloads: the others are left out (%w)", pattern, maxFound, unix.ErrTooLarge))
				break
			}
			w.offer("/" + strings.TrimPrefix(strings.TrimPrefix(dir, top), "/"))
		}
	}
	return nil
}

func (w *walker) offer(id string) {
	dir := w.Path(w.Cpuset, id, "")
	_, subdirs, ok := unix.Look(dir)
	if !ok || w.threaded(dir) || !(w.believe(id, subdirs) || w.populated(id)) {
		return
	}
	w.found = append(w.found, Cgroup{ID: id, Owner: OwnerOf(id)})
}

// walk takes every cgroup below id that has processes of its own.
func (w *walker) walk(id string) {
	for level := []string{id}; len(level) > 0; {
		var next []string
		for _, at := range level {
			names, err := listSubdirs(w.Path(w.Cpuset, at, ""))
			if errors.Is(err, unix.ErrTooLarge) {
				w.problem(unix.Explain("look below", at, "", err))
			}
			for _, name := range names {
				if w.left--; w.left < 0 || len(w.found) == maxFound {
					w.problem(fmt.Errorf("look below %s: more than %d cgroups, or %d with processes, in all: those farther from the root are left out (%w)", at, maxLooked, maxFound, unix.ErrTooLarge))
					return
				}
				if child := path.Join(at, name); w.take(child) {
					next = append(next, child)
				}
			}
		}
		level = next
	}
}

// take looks at one cgroup, and says whether there are some below it.
func (w *walker) take(id string) (below bool) {
	dir := w.Path(w.Cpuset, id, "")
	if len(dir) > maxPath {
		w.problem(fmt.Errorf("look at %.60s…: its path has %d bytes: it and what is below is left out (%w)", id, len(dir), unix.ErrTooLarge))
		return false
	}
	if w.threaded(dir) {
		return false
	}
	_, subdirs, _ := unix.Look(dir)
	if w.believe(id, subdirs) || w.hasProcs(dir) {
		w.found = append(w.found, Cgroup{ID: id, Owner: OwnerOf(id)})
	}
	return subdirs
}

func (w *walker) believe(id string, subdirs bool) bool {
	return !subdirs && w.known != nil && w.known(id)
}

// threaded reads cgroup.type (v2, since 4.14): "domain", "domain threaded" (the
// top of a threaded subtree), "threaded", "domain invalid".
func (w *walker) threaded(dir string) bool {
	if !w.Cpuset.V2 {
		return false
	}
	data, err := w.buf.ReadFile(dir + "/cgroup.type")
	kind := string(bytes.TrimSpace(data))
	return err == nil && (kind == "threaded" || kind == "domain invalid")
}

func (w *walker) hasProcs(dir string) bool {
	data, err := w.buf.ReadLine(dir + "/cgroup.procs")
	return err == nil && len(bytes.TrimSpace(data)) > 0
}

// populated asks cgroup.events on v2, and looks for processes on v1.
func (w *walker) populated(id string) bool {
	dir := w.Path(w.Cpuset, id, "")
	if w.Cpuset.V2 {
		if data, err := w.buf.ReadLine(dir + "/cgroup.events"); err == nil {
			if yes, err := ParsePopulated(data); err == nil {
				return yes
			}
		}
	}
	if w.hasProcs(dir) {
		return true
	}
	return slices.ContainsFunc(subdirs(dir), func(name string) bool { return w.populated(path.Join(id, name)) })
}

// subdirs lists the cgroups right below a directory; none where it cannot be listed.
func subdirs(dir string) []string {
	names, _ := listSubdirs(dir)
	return names
}

// listSubdirs gives what it has with ErrTooLarge, too.
func listSubdirs(dir string) (names []string, err error) {
	if !unix.MayHaveSubdirs(dir) {
		return nil, nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	for {
		entries, err := d.ReadDir(1024)
		for _, e := range entries {
			if e.IsDir() {
				names = append(names, e.Name())
			}
		}
		switch slices.Sort(names); {
		case len(names) > maxChildren:
			return names[:maxChildren], fmt.Errorf("it has more than %d cgroups: the others are left out (%w)", maxChildren, unix.ErrTooLarge)
		case errors.Is(err, io.EOF):
			return names, nil
		case err != nil:
			return nil, err
		}
	}
}

// Children lists the ids of the cgroups right below one.
func (l Layout) Children(h Hier, id string) []string {
	names := subdirs(l.Path(h, id, ""))
	for i, name := range names {
		names[i] = path.Join(id, name)
	}
	return names
}

// PIDs appends the processes of a cgroup and of those below it.
func (l Layout) PIDs(dst []int, id string, buf *unix.Buffer) ([]int, error) {
	left := maxLooked
	return l.ids(dst, id, "cgroup.procs", buf, &left)
}

// PIDsIn is PIDs of the cgroup with that path in another hierarchy.
func (l Layout) PIDsIn(h Hier, dst []int, id string, buf *unix.Buffer) ([]int, error) {
	l.Cpuset = h
	return l.PIDs(dst, id, buf)
}

// ThreadsFile has the threads of a cgroup, without those below it.
func (l Layout) ThreadsFile() string {
	if l.Cpuset.V2 {
		return "cgroup.threads"
	}
	return "tasks"
}

// TIDs appends the threads of a cgroup and of those below it.
func (l Layout) TIDs(dst []int, id string, buf *unix.Buffer) ([]int, error) {
	left := maxLooked
	return l.ids(dst, id, l.ThreadsFile(), buf, &left)
}

// ids reads a file of ids in a cgroup and below. A threaded cgroup refuses
// cgroup.procs with EOPNOTSUPP: its processes are listed by its domain.
// left counts down the cgroups that are still looked at.
func (l Layout) ids(dst []int, id, file string, buf *unix.Buffer, left *int) ([]int, error) {
	if *left--; *left < 0 || len(id) > maxPath {
		return dst, fmt.Errorf("read %.60s and below: more than %d cgroups, or paths of more than %d bytes (%w)", id, maxLooked, maxPath, unix.ErrTooLarge)
	}
	data, err := buf.ReadLine(l.Path(l.Cpuset, id, file))
	switch {
	case err == nil:
		if dst, err = procfs.AppendPIDs(dst, data); err != nil {
			return dst, err
		}
	case !errors.Is(unix.Classify(err), unix.ErrNotSupported):
		return dst, unix.Explain("read", path.Join(id, file), "", err)
	}
	names, err := listSubdirs(l.Path(l.Cpuset, id, ""))
	if err != nil && !errors.Is(unix.Classify(err), unix.ErrGone) { // else a part would be reported as all
		return dst, unix.Explain("list", id, "", err)
	}
	for _, name := range names {
		if dst, err = l.ids(dst, path.Join(id, name), file, buf, left); err != nil && !errors.Is(err, unix.ErrGone) {
			return dst, err
		}
	}
	return dst, nil
}
