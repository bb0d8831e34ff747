// SPDX-License-Identifier: Apache-2.0

package pagecache

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/unix"
	"homenode/internal/migration"
)

// Open opens a file for going through its cached pages. It refuses, with the reason, what
// cannot be gone through:
//
//  1. Files that a process serves (FUSE), or may serve: it may be frozen, or wait for us.
//  2. Pools of huge pages that do not have all of their pages. Nothing shows which ones
//     are missing (mincore only knows those that are mapped here), and a touch would take
//     one more from the pool. Those that processes map are found with the processes.
//  3. Files whose pages the kernel does not show us.
func Open(f File) (*View, error) {
	object := "pages of " + strconv.Quote(f.Name)
	if f.served { // 1
		return nil, fmt.Errorf("look for %s: its file system is a process's (FUSE), or may be one, and would have to be waited for (%w)", object, unix.ErrNotSupported)
	}
	file, st, err := f.open()
	if err != nil {
		return nil, unix.Explain("open", strconv.Quote(f.Name), "CAP_CHECKPOINT_RESTORE and CAP_DAC_READ_SEARCH", err)
	}
	v := newView(file, f)
	if f.Kind == migration.Hugetlb {
		if st.Blocks*512 < st.Size { // 2
			file.Close()
			return nil, fmt.Errorf("look for %s: %d of its %d bytes exist, and which ones is unknown (%w)", object, st.Blocks*512, st.Size, unix.ErrNotSupported)
		}
		return v, nil
	}
	if err := v.mayLook(st); err != nil { // 3
		file.Close()
		return nil, unix.Explain("look for", object, "to own the file, to be allowed to write it, or CAP_FOWNER", err)
	}
	return v, nil
}

// open tries the ways to a file until one leads to it.
func (f File) open() (*os.File, sys.Stat_t, error) {
	err := error(sys.ENOENT)
	for _, w := range f.ways {
		file, st, err2 := w.open(f)
		if err2 == nil {
			return file, st, nil
		}
		if unix.Classify(err) == unix.ErrGone {
			err = err2 // the later error says more
		}
	}
	return nil, sys.Stat_t{}, err
}

// open checks the type before it opens: a process may be another by now. Opening never
// waits (O_NONBLOCK: for a lease, or for a disk to be inserted), and leaves the access
// time as it is where that is allowed.
func (w way) open(f File) (*os.File, sys.Stat_t, error) {
	var st sys.Stat_t
	if w.root != "" {
		file, st, err := unix.OpenInside(w.root, w.path)
		if err != nil {
			return nil, st, err
		}
		if !f.is(st) {
			file.Close()
			return nil, st, sys.ENOENT
		}
		quiet(int(file.Fd()))
		return file, st, nil
	}
	found, err := openRetry(w.path, sys.O_PATH|sys.O_CLOEXEC)
	if err != nil {
		return nil, st, err
	}
	defer sys.Close(found)
	if err := sys.Fstat(found, &st); err != nil {
		return nil, st, err
	}
	if !f.is(st) {
		return nil, st, sys.ENOENT
	}
	fd, err := openRetry(fmt.Sprintf("/proc/self/fd/%d", found), sys.O_RDONLY|sys.O_CLOEXEC|sys.O_NONBLOCK)
	if err != nil {
		return nil, st, err
	}
	quiet(fd)
	return os.NewFile(uintptr(fd), f.Name), st, nil
}

// quiet lets mmap leave the access time as it is, if we own the file or have CAP_FOWNER.
// Opening does not change it.
func quiet(fd int) {
	if flags, err := sys.FcntlInt(uintptr(fd), sys.F_GETFL, 0); err == nil {
		_, _ = sys.FcntlInt(uintptr(fd), sys.F_SETFL, flags|sys.O_NOATIME)
	}
}

// is reports that this is the file that was found.
func (f File) is(st sys.Stat_t) bool {
	mode := uint32(sys.S_IFREG)
	if f.block {
		mode = sys.S_IFBLK
	}
	id := ID{st.Dev, st.Ino, f.IPC}
	if st.Mode&sys.S_IFMT != mode {
		return false
	}
	for _, alias := range f.Aliases {
		if id == alias {
			return true
		}
	}
	return id == f.ID
}

func openRetry(path string, flags int) (int, error) {
	for {
		fd, err := sys.Open(path, flags, 0)
		if !errors.Is(err, sys.EINTR) {
			return fd, err
		}
	}
}

// mayLook reports whether mincore tells the truth. To processes without the permission it
// reports that everything is cached (can_do_mincore in mm/mincore.c), and we would read
// the whole file from its disk. cachestat refuses them (since 6.14).
func (v *View) mayLook(st sys.Stat_t) error {
	_, err := v.cached(0, 1)
	switch {
	case errors.Is(err, sys.EPERM):
		return err
	case err != nil:
		v.stat = false // before 6.5; a filter; a file system without
	}
	if int(st.Uid) == os.Geteuid() || effective(sys.CAP_FOWNER) {
		return nil
	}
	err = sys.Faccessat(sys.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", v.f.Fd()), sys.W_OK, sys.AT_EACCESS)
	if err != nil {
		return sys.EPERM
	}
	return nil
}

// effective reports whether we have a capability.
func effective(capability uint) bool {
	header := sys.CapUserHeader{Version: sys.LINUX_CAPABILITY_VERSION_3}
	var data [2]sys.CapUserData
	return sys.Capget(&header, &data[0]) == nil && data[capability/32].Effective>>(capability%32)&1 == 1
}
