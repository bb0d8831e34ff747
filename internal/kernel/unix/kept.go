// SPDX-License-Identifier: Apache-2.0

package unix

import (
	"errors"
	"fmt"
	"os"
	"strings"

	sys "golang.org/x/sys/unix"
)

// Buffer is what files are read into, over and over. What a read returns is
// valid until the next one.
type Buffer struct{ b []byte }

// ReadFile reads a whole small file.
func (buf *Buffer) ReadFile(path string) ([]byte, error) {
	k := Kept{Path: path}
	defer k.Close()
	return k.Read(buf)
}

// Kept is a file that stays open between rounds. Files of proc, sysfs and
// kernfs give their present content again when read from offset 0.
type Kept struct {
	Path string
	fd   int // 0 = closed: descriptor 0 is never ours
}

// Read returns the present content. A file whose cgroup was removed, or whose
// controller was switched off and on, is opened again once.
func (k *Kept) Read(buf *Buffer) ([]byte, error) {
	fresh := k.fd == 0
	if err := k.open(); err != nil {
		return nil, err
	}
	data, err := buf.fill(k.fd, maxFile)
	if err == nil {
		return data, nil
	}
	k.Close()
	if fresh || !errors.Is(err, sys.ENODEV) {
		return nil, &os.PathError{Op: "read", Path: k.Path, Err: err}
	}
	return k.Read(buf)
}

// ReadLine returns the present content of a file of one line that is short, with one
// system call: /proc makes the whole text anew for each.
func (k *Kept) ReadLine(buf *Buffer) ([]byte, error) {
	if err := k.open(); err != nil {
		return nil, err
	}
	if len(buf.b) == 0 {
		buf.b = make([]byte, 16<<10)
	}
	n, err := pread(k.fd, buf.b)
	if err == nil && n > 0 && buf.b[n-1] == '\n' {
		return buf.b[:n], nil
	}
	if err != nil {
		k.Close()
		return nil, &os.PathError{Op: "read", Path: k.Path, Err: err}
	}
	return k.Read(buf)
}

// pread is without a closure, which would be allocated.
func pread(fd int, into []byte) (int, error) {
	for {
		n, err := sys.Pread(fd, into, 0)
		if err != sys.EINTR {
			return n, err
		}
	}
}

func (k *Kept) open() error {
	if k.fd != 0 {
		return nil
	}
	fd, err := ignoringEINTR(func() (int, error) {
		return sys.Open(k.Path, sys.O_RDONLY|sys.O_CLOEXEC|sys.O_NONBLOCK, 0) // a FIFO must not keep us
	})
	if err == nil && !ofKernel(k.Path) {
		err = regular(fd)
	}
	if err != nil {
		if fd > 0 {
			sys.Close(fd)
		}
		return &os.PathError{Op: "open", Path: k.Path, Err: err}
	}
	k.fd = fd
	return nil
}

// ofKernel says that a file is the running kernel's own, and needs no look at what
// it is: that is a system call for each of the thousands of files of a survey.
// Below /proc/PID/root and the like lies a tree like any other.
func ofKernel(path string) bool {
	if strings.HasPrefix(path, "/sys/") {
		return true
	}
	return strings.HasPrefix(path, "/proc/") &&
		!strings.Contains(path, "/root/") && !strings.Contains(path, "/cwd/") && !strings.Contains(path, "/fd/")
}

var errNotRegular = fmt.Errorf("not a regular file (%w)", ErrMalformed)

// regular refuses devices, FIFOs and directories: in a tree that somebody made a
// file may be a link to /dev/zero.
func regular(fd int) error {
	var st sys.Stat_t
	if err := sys.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&sys.S_IFMT != sys.S_IFREG {
		return errNotRegular
	}
	return nil
}

// Close lets go of the file; a later Read opens it again.
func (k *Kept) Close() {
	if k.fd != 0 {
		sys.Close(k.fd)
		k.fd = 0
	}
}

// maxFile bounds a file that is read whole. The longest of the kernel are the maps
// of a process; 100 to 200 bytes a mapping, with a million of them in it.
const maxFile = 256 << 20

func (buf *Buffer) fill(fd, most int) ([]byte, error) {
	if len(buf.b) == 0 {
		buf.b = make([]byte, 16<<10)
	}
	for n := 0; ; {
		if n > most {
			return nil, fmt.Errorf("more than %d bytes (%w)", most, ErrMalformed)
		}
		if n == len(buf.b) {
			buf.b = append(buf.b, make([]byte, n)...)
		}
		m, err := ignoringEINTR(func() (int, error) { return sys.Pread(fd, buf.b[n:], int64(n)) })
		if err != nil {
			return nil, err
		}
		if m == 0 {
			return buf.b[:n], nil
		}
		n += m
	}
}

func ignoringEINTR(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if err != sys.EINTR {
			return n, err
		}
	}
}

// WriteFile writes value with one write(2). An empty value is sent as "\n":
// a write of no bytes never reaches the kernel's handler.
func WriteFile(path, value string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value + "\n")
	return errors.Join(err, f.Close())
}

// Inode identifies a directory: kernfs numbers its inodes with the node's id,
// which is not used again soon (idr_alloc_cyclic in fs/kernfs/dir.c).
func Inode(path string) (uint64, error) {
	var st sys.Stat_t
	if err := sys.Stat(path, &st); err != nil {
		return 0, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return st.Ino, nil
}

// MayHaveSubdirs is false when the link count says that a directory has none.
// kernfs and most file systems count 2 + subdirectories; others say 1.
func MayHaveSubdirs(path string) bool {
	var st sys.Stat_t
	return sys.Stat(path, &st) == nil && st.Nlink != 2
}
