// SPDX-License-Identifier: Apache-2.0

package unix

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	sys "golang.org/x/sys/unix"
)

// OpenInside opens a regular file of another process's tree for reading: root is
// /proc/PID/root, path is the path shown in /proc/PID/maps.
//
//  1. No link is followed: maps has resolved them, and an absolute one would be resolved
//     in our root, not in that of the process. Where the kernel has no openat2 (before
//     5.6) nothing is opened.
//  2. The type is checked on what was found, not on its path, and before it is opened:
//     opening a FIFO waits, opening a device does something.
func OpenInside(root, path string) (*os.File, sys.Stat_t, error) {
	fail := func(err error) (*os.File, sys.Stat_t, error) {
		return nil, sys.Stat_t{}, &os.PathError{Op: "open", Path: root + path, Err: err}
	}
	dir, err := sys.Open(root, sys.O_PATH|sys.O_DIRECTORY|sys.O_CLOEXEC, 0)
	if err != nil {
		return fail(err)
	}
	defer sys.Close(dir)
	found, err := ignoringEINTR(func() (int, error) { // 1
		return sys.Openat2(dir, strings.TrimLeft(path, "/"), &sys.OpenHow{Flags: sys.O_PATH | sys.O_CLOEXEC,
			Resolve: sys.RESOLVE_IN_ROOT | sys.RESOLVE_NO_SYMLINKS | sys.RESOLVE_NO_MAGICLINKS})
	})
	if err != nil {
		return fail(err)
	}
	defer sys.Close(found)
	f, st, err := openFound(found, root+path)
	if err != nil {
		return fail(err)
	}
	return f, st, nil
}

// openFound opens a regular file that was found with O_PATH. It is 2 of OpenInside.
func openFound(found int, name string) (*os.File, sys.Stat_t, error) {
	var st sys.Stat_t
	if err := sys.Fstat(found, &st); err != nil {
		return nil, st, err
	}
	if st.Mode&sys.S_IFMT != sys.S_IFREG {
		return nil, st, errNotRegular
	}
	fd, err := ignoringEINTR(func() (int, error) {
		return sys.Open(fmt.Sprintf("/proc/self/fd/%d", found), sys.O_RDONLY|sys.O_CLOEXEC|sys.O_NONBLOCK, 0)
	})
	if err != nil {
		return nil, st, err
	}
	return os.NewFile(uintptr(fd), name), st, nil
}

// OpenBeneath opens a regular file for reading that a service keeps in a folder. The
// administrator sets folder; any user may write path, below it.
//
//  1. No link is followed, in either of them. A link to trace_pipe would be read for ever,
//     one to a file that only root may read would be shown to all.
//  2. Below the folder a mount is entered only if enter accepts its id: a FUSE server need
//     not answer. It is asked before anything is asked of the file system itself.
//  3. The type is checked before the file is opened, as in OpenInside.
//  4. allowed accepts the file's owner, given the folder's owner, and the file has only
//     one name: where fs.protected_hardlinks is off, any user can give any file a second
//     one.
func OpenBeneath(folder, path string, allowed func(owner, folderOwner uint32) bool, enter func(mount uint64) bool) (*os.File, error) {
	fail := func(err error) (*os.File, error) {
		if err == sys.ELOOP || err == sys.ENOTDIR {
			err = fmt.Errorf("%w: a link is not followed: name the folder itself (%w)", err, ErrNotPermitted)
		} else if err == sys.EXDEV {
			err = fmt.Errorf("%w: it is on a file system of another process's, of the network or of the kernel's own, or out of its folder (%w)", err, ErrNotPermitted)
		}
		return nil, &os.PathError{Op: "open", Path: filepath.Join(folder, path), Err: err}
	}
	root, err := sys.Open("/", sys.O_PATH|sys.O_DIRECTORY|sys.O_CLOEXEC, 0)
	if err != nil {
		return fail(err)
	}
	defer sys.Close(root)
	dir, err := find(root, folder, sys.O_DIRECTORY, 0) // 1
	if err != nil {
		return fail(err)
	}
	defer sys.Close(dir)
	found, err := find(dir, path, 0, sys.RESOLVE_NO_XDEV)
	if err == sys.EXDEV { // 2
		found, err = walk(dir, namesOf(path), oPath, enter)
	}
	if err != nil {
		return fail(err)
	}
	defer sys.Close(found)
	var of sys.Stat_t
	if err := sys.Fstat(dir, &of); err != nil {
		return fail(err)
	}
	f, st, err := openFound(found, filepath.Join(folder, path)) // 3
	if err == nil && st.Nlink != 1 {
		err = fmt.Errorf("it has %d names (%w)", st.Nlink, ErrNotPermitted)
	}
	if err == nil && !allowed(st.Uid, of.Uid) { // 4
		err = fmt.Errorf("it belongs to user %d: want root, the folder's owner, or a user of the workload's (%w)", st.Uid, ErrNotPermitted)
	}
	if err != nil {
		if f != nil {
			f.Close()
		}
		return fail(err)
	}
	return f, nil
}

// noOpenat2 is for tests of find without it.
var noOpenat2 bool

// find opens what lies below a folder with O_PATH, without following a link. Without
// openat2 (before 5.6, and in containers whose filter does not know it) it goes step by
// step, which is equivalent as long as no name is "..".
func find(dir int, path string, flags, resolve uint64) (int, error) {
	flags |= oPath
	names := namesOf(path)
	if !noOpenat2 {
		how := sys.OpenHow{Flags: flags, Resolve: sys.RESOLVE_BENEATH | sys.RESOLVE_NO_SYMLINKS | sys.RESOLVE_NO_MAGICLINKS | resolve}
		fd, err := ignoringEINTR(func() (int, error) { return sys.Openat2(dir, strings.Join(names, "/"), &how) })
		if err != sys.ENOSYS && err != sys.EPERM {
			return fd, err
		}
	}
	enter := func(uint64) bool { return true }
	if resolve&sys.RESOLVE_NO_XDEV != 0 {
		enter = nil
	}
	return walk(dir, names, flags, enter)
}

const oPath = sys.O_PATH | sys.O_CLOEXEC | sys.O_NOFOLLOW

// namesOf are the steps of a path; no name is "..".
func namesOf(path string) []string {
	path = strings.Trim(filepath.Clean("/"+path), "/")
	if path == "" {
		path = "."
	}
	return strings.Split(path, "/")
}

// walk finds names step by step, and enters another mount only if enter accepts it; nil: none.
func walk(dir int, names []string, flags uint64, enter func(mount uint64) bool) (int, error) {
	of, err := placeOf(dir)
	if err != nil {
		return 0, err
	}
	at, first := dir, true
	for i, name := range names {
		how := flags
		if i < len(names)-1 {
			how |= sys.O_DIRECTORY
		}
		next, err := ignoringEINTR(func() (int, error) { return sys.Openat(at, name, int(how), 0) })
		if !first {
			sys.Close(at)
		}
		if err != nil {
			return 0, err
		}
		at, first = next, false
		here, err := placeOf(at)
		if err == nil && here.link {
			err = sys.ELOOP
		} else if err == nil && !of.mayGo(here, enter) {
			err = sys.EXDEV
		}
		if err != nil {
			sys.Close(at)
			return 0, err
		}
		of = here
	}
	return at, nil
}

// place is where a file is.
type place struct {
	dev   [2]uint32
	mount uint64 // 0: unknown (before 5.8)
	link  bool
}

// placeOf asks the kernel alone: a file system's server is not asked (AT_STATX_DONT_SYNC, in
// FUSE fuse_update_get_attr).
func placeOf(fd int) (place, error) {
	var st sys.Statx_t
	err := sys.Statx(fd, "", sys.AT_EMPTY_PATH|sys.AT_STATX_DONT_SYNC|sys.AT_NO_AUTOMOUNT, sys.STATX_TYPE|sys.STATX_MNT_ID, &st)
	p := place{dev: [2]uint32{st.Dev_major, st.Dev_minor}, link: st.Mode&sys.S_IFMT == sys.S_IFLNK}
	if st.Mask&sys.STATX_MNT_ID != 0 {
		p.mount = st.Mnt_id
	}
	return p, err
}

func (p place) mayGo(to place, enter func(mount uint64) bool) bool {
	if p == to || p.dev == to.dev && p.mount == to.mount {
		return true
	}
	return to.mount != 0 && enter != nil && enter(to.mount)
}
