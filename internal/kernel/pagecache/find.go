// SPDX-License-Identifier: Apache-2.0

package pagecache

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
	"homenode/internal/migration"
)

// ID is a file's file system and its number there.
type ID struct {
	Dev, Ino uint64
	// IPC is the IPC namespace of a System V segment; 0 for files. Segments are numbered
	// by their ids, from 0 in each namespace, and share a file system with memfd and
	// shared anonymous memory.
	IPC uint64
}

// IDOf is the ID of the file of a mapping.
func IDOf(root unix.Root, pid int, a procfs.Area) ID {
	id := ID{Dev: a.Dev, Ino: a.Inode}
	if a.SysV() {
		id.IPC = ipcOf(root, pid)
	}
	return id
}

// ipcOf is a process's IPC namespace; 1 when it is not shown.
func ipcOf(root unix.Root, pid int) uint64 {
	ns, err := unix.Inode(root.Path(fmt.Sprintf("/proc/%d/ns/ipc", pid)))
	if err != nil {
		return 1
	}
	return ns
}

// File is a file whose pages processes may have in memory.
type File struct {
	ID
	Name     string         // as maps shows it, or the link of a descriptor; may end in " (deleted)"
	Size     int64          // when it was found; 0 of a block device
	Kind     migration.Kind // File (of a disk, or a block device), Shmem or Hugetlb
	PageSize uint64
	Holders  []int // processes of the request that map it or have it open, ascending
	Mapped   bool  // one of them maps it
	// Outside says that other processes map it or have it open too; only with
	// Config.Outside.
	Outside bool
	// Aliases are what maps shows in place of ID: overlayfs and btrfs have two IDs, and a
	// block device has as many as it has names.
	Aliases []ID

	block  bool
	served bool
	blocks int64 // of 512 bytes
	ways   []way
}

// IDs are ID and the Aliases.
func (f File) IDs() []ID { return append([]ID{f.ID}, f.Aliases...) }

// way is one way to open a file.
type way struct {
	path string // a link of proc to it
	root string // else: path is below it
}

// maxWays is the number kept for each file: its holders may end.
const maxWays = 4

// Config says what to look for.
type Config struct {
	Outside bool // also find other processes with the files: reads maps and descriptors of every process
	// Stop is called before each process; an error ends the search. nil: it runs to the
	// end.
	Stop func() error
}

// Find finds the files that processes map or have open, each once, in the order in which
// they are found. A process that ended has none, and neither has a kernel thread. What
// cannot be read is a problem, one sentence each.
func Find(root unix.Root, pids []int, cfg Config) (files []File, problems []string, err error) {
	f := newFinder(root)
	if cfg.Stop != nil {
		f.stop = cfg.Stop
	}
	for _, pid := range pids {
		if err := f.stop(); err != nil {
			return nil, nil, fmt.Errorf("find files of processes: %w", err)
		}
		if err := f.process(pid); err != nil {
			f.note("files of processes", err)
		}
	}
	if cfg.Outside {
		if err := f.outside(pids); err != nil {
			return nil, nil, err
		}
	}
	for _, file := range f.files {
		slices.Sort(file.Holders)
		file.Holders = slices.Compact(file.Holders)
		files = append(files, *file)
	}
	return files, f.notes.All(), nil
}

type finder struct {
	root  unix.Root
	buf   unix.Buffer
	spare *unix.Buffer // for what may hang; nil: none is free
	stop  func() error
	fs    filesystems
	files []*File
	by    map[ID]*File // Aliases too; nil: known to be of no interest
	disks map[uint64]*File
	notes unix.Notes
}

func newFinder(root unix.Root) *finder {
	return &finder{root: root, stop: func() error { return nil }, fs: newFilesystems(root),
		by: map[ID]*File{}, disks: map[uint64]*File{}}
}

func (f *finder) proc(pid int, file string) string {
	return f.root.Path(fmt.Sprintf("/proc/%d/%s", pid, file))
}

// process finds what one process maps and has open.
func (f *finder) process(pid int) error {
	f.fs.learn(&f.buf, pid)
	areas, err := procfs.ReadAreas(&f.buf, f.proc(pid, "maps"), procfs.MapsBudget())
	if err != nil {
		return ended(unix.Explain("read", f.proc(pid, "maps"), "CAP_SYS_PTRACE", err))
	}
	for _, a := range areas {
		if a.HasFile() {
			f.mapping(pid, a)
		}
	}
	return f.descriptors(pid)
}

// ended drops the error of a process that is gone.
func ended(err error) error {
	if unix.Classify(err) == unix.ErrGone {
		return nil
	}
	return err
}

// mapping finds the file of one mapping.
func (f *finder) mapping(pid int, a procfs.Area) {
	id := IDOf(f.root, pid, a)
	way := way{path: f.proc(pid, fmt.Sprintf("map_files/%x-%x", a.Start, a.End))}
	file, known := f.by[id]
	if known {
		if file != nil {
			file.holder(pid, way)
			file.Mapped = true
		}
		return
	}
	found, way, err := f.identify(pid, a, way)
	if err != nil {
		if ended(err) != nil {
			f.note("files that are mapped", err)
		}
		return
	}
	if file = f.file(found, id.IPC, a.Path); file != nil {
		file.holder(pid, way)
		file.Mapped = true
		if id != file.ID && !slices.Contains(file.Aliases, id) {
			file.Aliases = append(file.Aliases, id)
		}
	}
	f.by[id] = file
}

// identify finds the file of a mapping, without opening it: through map_files, which also
// has files without a name, or by its path.
func (f *finder) identify(pid int, a procfs.Area, link way) (sys.Statx_t, way, error) {
	st, err := statx(sys.AT_FDCWD, link.path)
	if unix.Classify(err) != unix.ErrNotPermitted {
		return st, link, err
	}
	if n, known := f.fs.by[a.Dev]; n.served || !known && sys.Major(a.Dev) == 0 { // opening it may wait for its server
		return st, way{}, unix.Explain("look at", strconv.Quote(a.Path), "CAP_CHECKPOINT_RESTORE", err)
	}
	byPath := way{path: strings.ReplaceAll(a.Path, `\012`, "\n"), root: f.proc(pid, "root")}
	file, _, err2 := unix.OpenInside(byPath.root, byPath.path)
	if err2 != nil {
		return st, way{}, unix.Explain("look at", strconv.Quote(a.Path), "CAP_CHECKPOINT_RESTORE", err)
	}
	defer file.Close()
	st, err2 = statx(sys.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", file.Fd()))
	if err2 != nil || idOf(st) != IDOf(f.root, pid, a) {
		return st, way{}, unix.Explain("look at", strconv.Quote(a.Path), "CAP_CHECKPOINT_RESTORE", err)
	}
	return st, byPath, nil
}

// statx describes the target of a link of proc, or without a path dir itself. It asks no
// server of a file system.
func statx(dir int, path string) (st sys.Statx_t, err error) {
	for {
		err = sys.Statx(dir, path, sys.AT_STATX_DONT_SYNC|sys.AT_NO_AUTOMOUNT|sys.AT_EMPTY_PATH, sys.STATX_BASIC_STATS|sys.STATX_MNT_ID, &st)
		if !errors.Is(err, sys.EINTR) {
			return st, err
		}
	}
}

func idOf(st sys.Statx_t) ID { return ID{Dev: sys.Mkdev(st.Dev_major, st.Dev_minor), Ino: st.Ino} }

// descriptors finds what a process has open.
func (f *finder) descriptors(pid int) error {
	return f.eachDescriptor(pid, func(name string, st sys.Statx_t) { f.descriptor(pid, name, st) })
}

// eachDescriptor describes what a process has open.
func (f *finder) eachDescriptor(pid int, each func(name string, st sys.Statx_t)) error {
	dir, err := os.Open(f.proc(pid, "fd"))
	if err != nil {
		return ended(unix.Explain("open", f.proc(pid, "fd"), "CAP_SYS_PTRACE", err))
	}
	defer dir.Close()
	for {
		names, err := dir.Readdirnames(1024)
		for _, name := range names {
			if st, err := statx(int(dir.Fd()), name); err == nil { // otherwise it was closed meanwhile
				each(name, st)
			}
		}
		if err != nil || len(names) == 0 { // io.EOF; or it ended
			return nil
		}
	}
}

func (f *finder) descriptor(pid int, name string, st sys.Statx_t) {
	id := idOf(st)
	way := way{path: f.proc(pid, "fd/"+name)}
	file, known := f.by[id]
	if !known {
		target := func() string { t, _ := os.Readlink(way.path); return t }
		if mode := st.Mode & sys.S_IFMT; mode == sys.S_IFREG || mode == sys.S_IFBLK {
			file = f.file(st, 0, target())
		}
		f.by[id] = file
	}
	if file != nil {
		file.holder(pid, way)
	}
}

// file finds or makes the File of what was found; nil when it is of no interest.
func (f *finder) file(st sys.Statx_t, ipc uint64, name string) *File {
	id := idOf(st)
	id.IPC = ipc
	if file, known := f.by[id]; known {
		return file
	}
	var file *File
	switch st.Mode & sys.S_IFMT {
	case sys.S_IFREG:
		file = f.regular(st, id, name)
	case sys.S_IFBLK:
		file = f.disk(st, name)
	}
	f.by[id] = file
	return file
}

func (f *finder) regular(st sys.Statx_t, id ID, name string) *File {
	n := f.fs.of(st, name)
	if n.kind == "" {
		return nil
	}
	file := &File{ID: id, Name: name, Size: int64(st.Size), Kind: n.kind, PageSize: uint64(unix.PageSize()), served: n.served, blocks: int64(st.Blocks)}
	if n.kind == migration.Hugetlb {
		file.PageSize = uint64(st.Blksize) // hugetlbfs: the size of its pages
	}
	f.files = append(f.files, file)
	return file
}

// disk is a block device: the pages are the device's, whatever name it has.
func (f *finder) disk(st sys.Statx_t, name string) *File {
	number := sys.Mkdev(st.Rdev_major, st.Rdev_minor)
	if file := f.disks[number]; file != nil {
		file.Aliases = append(file.Aliases, idOf(st))
		return file
	}
	file := &File{ID: idOf(st), Name: name, Kind: migration.File, PageSize: uint64(unix.PageSize()), block: true}
	f.disks[number] = file
	f.files = append(f.files, file)
	return file
}

func (f *File) holder(pid int, w way) {
	if n := len(f.Holders); n > 0 && f.Holders[n-1] == pid {
		return
	}
	f.Holders = append(f.Holders, pid)
	if len(f.ways) < maxWays {
		f.ways = append(f.ways, w)
	}
}

// note keeps the first of many similar reasons why something was left out.
func (f *finder) note(what string, err error) {
	if err != nil {
		f.notes.Add(unix.SortOf(what, err), fmt.Sprintf("%s were left out: %v", what, err))
	}
}
