// SPDX-License-Identifier: Apache-2.0

package unix

import (
	"fmt"
	"os"
	"strings"

	sys "golang.org/x/sys/unix"
)

// OpenInside opens a regular file of somebody else's tree for reading: root is
// /proc/PID/root, path as /proc/PID/maps has it.
//
//  1. No link is followed: maps has resolved them, and an absolute one would be
//     resolved in our root, not in theirs. Where the kernel has no openat2 (before
//     5.6) nothing is opened.
//  2. What it is, is asked of what was found, not of its path, and before it is
//     opened: opening a FIFO waits, opening a device does something.
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
	var st sys.Stat_t
	if err := sys.Fstat(found, &st); err != nil { // 2
		return fail(err)
	}
	if st.Mode&sys.S_IFMT != sys.S_IFREG {
		return fail(errNotRegular)
	}
	fd, err := ignoringEINTR(func() (int, error) {
		return sys.Open(fmt.Sprintf("/proc/self/fd/%d", found), sys.O_RDONLY|sys.O_CLOEXEC|sys.O_NONBLOCK, 0)
	})
	if err != nil {
		return fail(err)
	}
	return os.NewFile(uintptr(fd), root+path), st, nil
}
