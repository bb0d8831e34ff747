// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
	"homenode/internal/machine"
	"homenode/internal/set"
	"homenode/internal/snapshot"
	"homenode/internal/unit"
)

// memory folds numa_maps into bytes by kind and node, while it is read: a process
// may have 50,000 mappings. A page that several processes map is counted in each.
func (s *Snapshotter) memory(p *snapshot.Process) error {
	f := fold{kinds: &s.kinds, index: s.nodeAt, pid: p.PID, keep: s.cfg.Biggest}
	if s.cfg.Mappings {
		f.keep = mostKept
	}
	f.by = newByKind(len(s.reader.topology.Machine.Nodes))
	name := "/proc/" + strconv.Itoa(p.PID) + "/numa_maps"
	path := s.reader.procPath(p.PID, "numa_maps")
	if err := s.buf.Lines(path, name, s.cfg.Maps.Process.begin(s.maps), f.line); err != nil {
		return s.noMemory(p.PID, err)
	}
	if f.lines == 0 {
		return s.noMemory(p.PID, nil)
	}
	p.ByKind, p.Mappings, p.Resident, p.MemoryHow = f.by, f.inOrder(), f.resident, "numa_maps"
	if s.cfg.Mappings {
		s.areas(p)
	}
	return nil
}

// newByKind is a table of zeros, allocated at once.
func newByKind(nodes int) (by snapshot.ByKind) {
	all := make([]unit.Bytes, int(snapshot.NKinds)*nodes)
	for k := range by {
		by[k] = all[k*nodes : (k+1)*nodes : (k+1)*nodes]
	}
	return by
}

func nodePlaces(m machine.Machine) []int {
	at := slices.Repeat([]int{-1}, set.MaxNode+1)
	for i, n := range m.Nodes {
		at[n.ID] = i
	}
	return at
}

// fold adds mappings up.
type fold struct {
	kinds    *kinds
	index    []int
	pid      int
	at       procfs.NumaLine
	lines    int
	resident int // lines with pages
	by       snapshot.ByKind
	keep     int // number of mappings to keep, the biggest
	mappings []snapshot.Mapping
	least    int        // the smallest of mappings once they are full
	floor    unit.Bytes // its size
}

func (f *fold) line(n int, line []byte) error {
	f.lines = n
	if err := f.at.Parse(n, line); err != nil {
		return fmt.Errorf("read /proc/%d/numa_maps: %w", f.pid, err)
	}
	if len(f.at.Nodes) == 0 {
		return nil
	}
	f.resident++
	kind := f.kinds.of(&f.at)
	var sum unit.Bytes
	for _, p := range f.at.Nodes {
		i := f.index[p.Node]
		if i < 0 {
			return fmt.Errorf("read /proc/%d/numa_maps: line %d has pages on node %d, which is not online (%w)", f.pid, n, p.Node, ErrMalformed)
		}
		b := unit.Bytes(p.Pages * f.at.PageSize)
		f.by[kind][i] += b
		sum += b
	}
	f.offer(kind, sum)
	return nil
}

// offer keeps a mapping if it is one of the biggest so far. For most it is one
// comparison.
func (f *fold) offer(kind snapshot.MappingKind, sum unit.Bytes) {
	switch {
	case len(f.mappings) < f.keep:
		f.mappings = append(f.mappings, f.mapping(kind))
	case sum > f.floor && f.keep > 0:
		f.mappings[f.least] = f.mapping(kind)
	default:
		return
	}
	if len(f.mappings) == f.keep {
		f.findLeast()
	}
}

func (f *fold) findLeast() {
	f.floor = math.MaxInt64
	for i, m := range f.mappings {
		if b := m.Bytes(); b < f.floor {
			f.least, f.floor = i, b
		}
	}
}

// inOrder is the mappings by address.
func (f *fold) inOrder() []snapshot.Mapping {
	slices.SortFunc(f.mappings, func(a, b snapshot.Mapping) int { return cmp.Compare(a.Start, b.Start) })
	return f.mappings
}

func (f *fold) mapping(kind snapshot.MappingKind) snapshot.Mapping {
	m := snapshot.Mapping{Start: f.at.Start, Kind: kind, Path: f.at.Path(), Policy: string(f.at.Policy),
		Mappers: int(f.at.MapMax), Dirty: unit.Bytes(f.at.Dirty * f.at.PageSize), ByNode: make([]unit.Bytes, len(f.by[kind]))}
	for _, p := range f.at.Nodes {
		m.ByNode[f.index[p.Node]] += unit.Bytes(p.Pages * f.at.PageSize)
	}
	return m
}

// areas adds what only /proc/PID/maps has. A mapping that came or went between the two
// files keeps no end.
func (s *Snapshotter) areas(p *snapshot.Process) {
	areas, err := procfs.ReadAreas(&s.buf, s.reader.procPath(p.PID, "maps"), s.cfg.Maps.Process.begin(s.maps))
	if unix.Classify(err) == ErrGone || unix.Classify(err) == ErrNotPermitted {
		return
	}
	s.problem(err)
	i := 0
	for n := range p.Mappings {
		m := &p.Mappings[n]
		for i < len(areas) && areas[i].Start < m.Start {
			i++
		}
		if i < len(areas) && areas[i].Start == m.Start {
			m.End, m.Access = areas[i].End, areas[i].Access
		}
	}
}

// kinds finds the kind of a mapping. The mounts of tmpfs are read once, in our own
// mount namespace: a container's may differ, and then a file in its tmpfs counts as a
// file.
type kinds struct {
	root   Root
	known  bool
	mounts []procfs.Mount
	last   []byte // the path of the last call, as printed: neighbours map the same file
	was    snapshot.MappingKind
}

func (k *kinds) of(l *procfs.NumaLine) snapshot.MappingKind {
	switch {
	case l.Huge:
		return snapshot.Huge
	case l.Heap:
		return snapshot.Heap
	case l.Stack:
		return snapshot.Stack
	case l.File == nil:
		return snapshot.Anon
	}
	if !bytes.Equal(l.File, k.last) {
		k.last = append(k.last[:0], l.File...)
		k.was = k.file(l)
	}
	return k.was
}

// sharedNames are the prefixes of the kernel's names for shared memory: shared
// anonymous memory (shmem_zero_setup in mm/shmem.c), SysV, memfd_create(2).
var sharedNames = [][]byte{[]byte(`/dev/zero\040(deleted)`), []byte("/SYSV"), []byte("/memfd:"), []byte("/dev/shm/")}

// file distinguishes shared memory from files. A private mapping of /dev/zero is
// anonymous memory by an old name.
func (k *kinds) file(l *procfs.NumaLine) snapshot.MappingKind {
	for _, name := range sharedNames {
		if bytes.HasPrefix(l.File, name) {
			return snapshot.Shared
		}
	}
	switch {
	case string(l.File) == "/dev/zero":
		return snapshot.Anon
	case k.onTmpfs(l.Path()):
		return snapshot.Shared
	}
	return snapshot.File
}

// onTmpfs checks the mount that is closest to the file. The root does not count: a
// system in memory keeps its programs there.
func (k *kinds) onTmpfs(path string) bool {
	if !k.known {
		k.known = true
		var buf unix.Buffer
		if data, err := buf.ReadFile(k.root.Path("/proc/self/mountinfo")); err == nil {
			k.mounts, _ = procfs.ParseMountinfo(data)
		}
	}
	best, tmpfs := 1, false
	for _, m := range k.mounts {
		if n := len(m.Point); n >= best && len(path) > n && path[n] == '/' && strings.HasPrefix(path, m.Point) && n > 1 {
			best, tmpfs = n, m.Type == "tmpfs"
		}
	}
	return tmpfs
}

// errNoMemory marks a process that exists and has no memory.
var errNoMemory = errors.New("no memory")

// processError is a sentence about a process, and its kind of error.
type processError struct {
	text string
	kind error
}

func (e processError) Error() string { return e.text }
func (e processError) Unwrap() error { return e.kind }

func refuse(kind error, format string, args ...any) error {
	return processError{fmt.Sprintf(format, args...), kind}
}

// noMemory is a sentence about why a process's memory is unknown: err is the error of
// reading, nil when the file was empty.
func (s *Snapshotter) noMemory(pid int, err error) error {
	if errors.Is(err, ErrMalformed) {
		return err
	}
	data, gone := s.buf.ReadFile(s.reader.procPath(pid, "stat"))
	if gone != nil {
		return refuse(ErrGone, "process %d is gone", pid)
	}
	st, bad := procfs.ParseTaskStat(data)
	who := fmt.Sprintf("process %d (%s)", pid, procfs.TaskName(data))
	switch {
	case bad == nil && st.KernelThread():
		return refuse(errNoMemory, "%s is a kernel thread: it has no memory of its own", who)
	case bad == nil && (st.State == 'Z' || st.State == 'X'):
		return refuse(errNoMemory, "%s has ended and waits for its parent to notice: it has no memory any more", who)
	case errors.Is(err, sys.EACCES) || errors.Is(err, sys.EPERM):
		return s.notPermitted(who, pid)
	case err == nil:
		return refuse(errNoMemory, "%s has no mapping: it is about to end", who)
	case errors.Is(err, sys.ENOENT):
		return refuse(ErrNotSupported, "%s has no numa_maps: the kernel is built without CONFIG_NUMA, or the tree lacks the file", who)
	}
	return unix.Explain("read", fmt.Sprintf("/proc/%d/numa_maps", pid), "", err)
}

// notPermitted distinguishes another user's process from one with more privileges than
// ours (ptrace_may_access in kernel/ptrace.c).
func (s *Snapshotter) notPermitted(who string, pid int) error {
	owner, ours := s.ownerOf(pid)
	if ours {
		return refuse(ErrNotPermitted, "%s has privileges that this user's processes lack: reading its memory map needs CAP_SYS_PTRACE", who)
	}
	return refuse(ErrNotPermitted, "%s belongs to %s: reading its memory map needs CAP_SYS_PTRACE or that user", who, owner)
}

// ownerOf names the user of a process, and whether that is our user. A recorded tree's
// users are not ours, so they stay numbers.
func (s *Snapshotter) ownerOf(pid int) (name string, ours bool) {
	data, err := s.buf.ReadFile(s.reader.procPath(pid, "status"))
	if err != nil {
		return "another user", false
	}
	st, _ := procfs.ParseTaskStatus(data)
	uid, ok := st.UID.Get()
	if !ok {
		return "another user", false
	}
	ours = uid == os.Geteuid()
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil && s.cfg.Reader.Root.Path("/") == "/" {
		return u.Username, ours
	}
	return "user " + strconv.Itoa(uid), ours
}
