// SPDX-License-Identifier: Apache-2.0

package unix

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	sys "golang.org/x/sys/unix"

	"homenode/internal/set"
)

// Buffer is memory for reading files, over and over. The result of a read is valid until
// the next one.
type Buffer struct{ b []byte }

// Interfere, in tests only, is called before each system call on a kernel file, so that a
// test can remove something between any two of them.
var Interfere func(path string)

func before(path string) {
	if Interfere != nil {
		Interfere(path)
	}
}

// ReadFile reads a whole small file.
func (buf *Buffer) ReadFile(path string) ([]byte, error) {
	k := Kept{Path: path}
	defer k.Close()
	return k.Read(buf)
}

// Parsed reads a whole small file and parses it.
func Parsed[T any](buf *Buffer, path string, parse func([]byte) (T, error)) (v T, err error) {
	data, err := buf.ReadFile(path)
	if err != nil {
		return v, Explain("read", path, "", err)
	}
	return parse(data)
}

// OnlineCPUs is the file of the CPUs that are online.
const OnlineCPUs = "/sys/devices/system/cpu/online"

// CPUs are those in a file of sysfs that lists some.
func (buf *Buffer) CPUs(root Root, file string) (set.CPUSet, error) {
	data, err := buf.ReadFile(root.Path(file))
	if err != nil {
		return set.CPUSet{}, Explain("read", file, "", err)
	}
	cpus, err := set.ParseCPUs(strings.TrimSpace(string(data)))
	if err != nil {
		return set.CPUSet{}, fmt.Errorf("parse %s: %w (%w)", file, err, ErrMalformed)
	}
	return cpus, nil
}

// Text is a small file without the blanks around it; "" when it cannot be read.
func (buf *Buffer) Text(path string) string {
	data, err := buf.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(strings.ToValidUTF8(string(data), "\uFFFD"))
}

// IDs lists the names in a directory of proc that are numbers, ascending: the processes in
// /proc, the threads in /proc/PID/task.
func IDs(path string) (ids []int, err error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	for _, name := range names {
		if id, err := strconv.Atoi(name); err == nil && id > 0 {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, err
}

// Kept is a file that stays open between rounds. Files of proc, sysfs and
// kernfs give their present content again when read from offset 0.
type Kept struct {
	Path string
	// Loose files are kept open only while few are: see BoundLoose.
	Loose bool
	fd    int // 0 = closed: descriptor 0 is never ours
}

// looseShare is the part of the allowed descriptors that loose files may use. Events take
// three quarters (perf.DefaultBudget), so a fifth leaves the process some for everything
// else. Further files are opened for each reading, which costs two system calls more.
const looseShare = 5

// looseOpen are open now; looseMost may stay open, 0: all.
var looseOpen, looseMost atomic.Int64

// BoundLoose sets how many loose files stay open, by the present limit.
func BoundLoose() {
	var lim sys.Rlimit
	if sys.Getrlimit(sys.RLIMIT_NOFILE, &lim) == nil {
		looseMost.Store(int64(max(1, min(lim.Cur, 1<<30)/looseShare)))
	}
}

// settle closes a loose file that is one too many.
func (k *Kept) settle() {
	if most := looseMost.Load(); k.Loose && most > 0 && looseOpen.Load() > most {
		k.Close()
	}
}

// Read returns the present content. A file whose cgroup was removed, or whose
// controller was switched off and on, is opened again once.
func (k *Kept) Read(buf *Buffer) ([]byte, error) {
	fresh := k.fd == 0
	if err := k.open(); err != nil {
		return nil, err
	}
	before(k.Path)
	data, err := buf.fill(k.fd, maxFile)
	if err == nil {
		k.settle()
		return data, nil
	}
	k.Close()
	if fresh || !errors.Is(err, sys.ENODEV) {
		return nil, &os.PathError{Op: "read", Path: k.Path, Err: err}
	}
	return k.Read(buf)
}

// ReadLine returns the present content of a short file, with one system call. /proc makes
// the whole text again for each call, also for the one that only finds the end. The file
// must be made as one piece (single_open, seq_show), or of short lines such as ids:
// seq_read_iter in fs/seq_file.c stops early only where the next piece does not fit a
// page.
func (k *Kept) ReadLine(buf *Buffer) ([]byte, error) {
	if err := k.open(); err != nil {
		return nil, err
	}
	if len(buf.b) == 0 {
		buf.b = make([]byte, 16<<10)
	}
	before(k.Path)
	n, err := pread(k.fd, buf.b)
	if err == nil && n > 0 && n < shortFile && buf.b[n-1] == '\n' {
		k.settle()
		return buf.b[:n], nil
	}
	if err != nil && !errors.Is(err, sys.ENODEV) { // Read opens it again
		k.Close()
		return nil, &os.PathError{Op: "read", Path: k.Path, Err: err}
	}
	return k.Read(buf)
}

// ReadLine is Kept.ReadLine for a file that does not stay open.
func (buf *Buffer) ReadLine(path string) ([]byte, error) {
	k := Kept{Path: path}
	defer k.Close()
	return k.ReadLine(buf)
}

// shortFile is less than a page, by more than a line.
const shortFile = 3 << 10

// pread has no closure, which would be allocated.
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
	before(k.Path)
	fd, err := ignoringEINTR(func() (int, error) {
		return sys.Open(k.Path, sys.O_RDONLY|sys.O_CLOEXEC|sys.O_NONBLOCK, 0) // a FIFO must not make us wait
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
	if k.Loose {
		looseOpen.Add(1)
	}
	return nil
}

// ofKernel reports that a file is the running kernel's own, so its type needs no check:
// that would be a system call for each of the thousands of files of a snapshot. Below
// /proc/PID/root and the like lies a tree like any other.
func ofKernel(path string) bool {
	if strings.HasPrefix(path, "/sys/") {
		return true
	}
	return strings.HasPrefix(path, "/proc/") &&
		!strings.Contains(path, "/root/") && !strings.Contains(path, "/cwd/") && !strings.Contains(path, "/fd/")
}

var errNotRegular = fmt.Errorf("not a regular file (%w)", ErrMalformed)

// regular refuses devices, FIFOs and directories: in a tree made by a user, a file may be
// a link to /dev/zero.
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

// Close closes the file; a later Read opens it again.
func (k *Kept) Close() {
	if k.fd != 0 {
		sys.Close(k.fd)
		k.fd = 0
		if k.Loose {
			looseOpen.Add(-1)
		}
	}
}

// maxFile bounds a file that is read whole: 1,024 CPUs times 2,000 lines of
// /proc/interrupts, or the ids of a whole pid_max of 4 Mi. A file that a user can make
// larger, such as the maps of a process, is read by line.
const maxFile = 32 << 20

// mostKept is the memory that a buffer keeps for the next file.
const mostKept = 1 << 20

func (buf *Buffer) fill(fd, most int) ([]byte, error) {
	if len(buf.b) == 0 || len(buf.b) > mostKept {
		buf.b = make([]byte, 16<<10)
	}
	for n := 0; ; {
		if n > most {
			return nil, fmt.Errorf("more than %d bytes (%w, %w)", most, ErrMalformed, ErrTooLarge)
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
	before(path)
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
	before(path)
	var st sys.Stat_t
	if err := sys.Stat(path, &st); err != nil {
		return 0, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return st.Ino, nil
}

// Look is Inode and MayHaveSubdirs in one system call; false if it is not a directory.
func Look(path string) (inode uint64, subdirs, ok bool) {
	var st sys.Stat_t
	if sys.Stat(path, &st) != nil || st.Mode&sys.S_IFMT != sys.S_IFDIR {
		return 0, false, false
	}
	return st.Ino, st.Nlink != 2, true
}

// MayHaveSubdirs is false when the link count shows that a directory has none. kernfs and
// most file systems count 2 + subdirectories; others return 1.
func MayHaveSubdirs(path string) bool {
	before(path)
	var st sys.Stat_t
	return sys.Stat(path, &st) == nil && st.Nlink != 2
}
