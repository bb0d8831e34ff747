// SPDX-License-Identifier: Apache-2.0

package unix

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	sys "golang.org/x/sys/unix"
)

// maxTreeFile bounds one file of a recorded tree. The largest kernel file that homenode
// reads, zoneinfo of a large machine, is well below 1 MiB.
const maxTreeFile = 16 << 20

var errTooLarge = fmt.Errorf("larger than any file of the kernel's (%w)", ErrTooLarge)

// treeFS is a recorded tree, read with openat2(2): links cannot lead out of it,
// and a file costs three system calls. os.Root, which does the same by opening
// every directory on the way, takes 200 ms for 256 CPUs; this takes 25 (BenchmarkTreeFS).
type treeFS struct {
	dir  string
	root *os.File
	fd   int // root's, which is open as long as the tree is used
}

// newTreeFS falls back on os.Root where there is no openat2 (before Linux 5.6,
// and in containers whose filter does not know it).
func newTreeFS(dir string) (fs.FS, error) {
	root, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	t := &treeFS{dir, root, int(root.Fd())}
	if fd, err := t.open("."); err == nil {
		sys.Close(fd)
		return t, nil
	}
	root.Close()
	old, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return rootFS{old.FS(), old}, nil
}

// rootFS is os.Root's tree, of which only files and directories are opened: opening a FIFO
// waits for a writer.
type rootFS struct {
	fs.FS
	root *os.Root
}

// Open opens a file or a directory.
func (r rootFS) Open(name string) (fs.File, error) {
	if err := r.check(name); err != nil {
		return nil, err
	}
	return r.FS.Open(name)
}

// ReadFile reads a whole file.
func (r rootFS) ReadFile(name string) ([]byte, error) {
	if err := r.check(name); err != nil {
		return nil, err
	}
	return fs.ReadFile(r.FS, name)
}

// ReadLink returns where a link points to.
func (r rootFS) ReadLink(name string) (string, error) { return fs.ReadLink(r.FS, name) }

// Lstat describes a file, or the link itself.
func (r rootFS) Lstat(name string) (fs.FileInfo, error) { return fs.Lstat(r.FS, name) }

func (r rootFS) check(name string) error {
	if !fs.ValidPath(name) {
		return pathError("open", name, fs.ErrInvalid)
	}
	info, err := r.root.Stat(name)
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		err = pathError("open", name, errNotKernelFile)
	}
	return err
}

var errNotKernelFile = errors.New("it is a FIFO, a socket or a device: a recorded tree has only files, folders and links")

// open opens a file or a directory and refuses all else. It does not wait: a FIFO in a
// tree must not stop the reader, neither here nor in the first read.
func (t *treeFS) open(name string) (int, error) {
	fd, err := t.openAs(name, sys.O_RDONLY|sys.O_NONBLOCK|sys.O_NOCTTY)
	if err != nil {
		return 0, err
	}
	var st sys.Stat_t
	if err = sys.Fstat(fd, &st); err == nil && st.Mode&sys.S_IFMT != sys.S_IFREG && st.Mode&sys.S_IFMT != sys.S_IFDIR {
		err = errNotKernelFile
	}
	if err != nil {
		sys.Close(fd)
		return 0, err
	}
	return fd, nil
}

func (t *treeFS) openAs(name string, flags uint64) (int, error) {
	how := sys.OpenHow{Flags: flags | sys.O_CLOEXEC, Resolve: sys.RESOLVE_BENEATH | sys.RESOLVE_NO_MAGICLINKS}
	return ignoringEINTR(func() (int, error) { return sys.Openat2(t.fd, name, &how) })
}

// pathError returns errors in the form of fs.
func pathError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, sys.EXDEV) {
		err = errors.New("a link leads out of the tree")
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// Open opens a file or a directory.
func (t *treeFS) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, pathError("open", name, fs.ErrInvalid)
	}
	fd, err := t.open(name)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	return os.NewFile(uintptr(fd), filepath.Join(t.dir, name)), nil
}

// ReadFile reads a whole file.
func (t *treeFS) ReadFile(name string) ([]byte, error) {
	if !fs.ValidPath(name) {
		return nil, pathError("read", name, fs.ErrInvalid)
	}
	fd, err := t.open(name)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	defer sys.Close(fd)
	data, err := readAll(fd)
	return data, pathError("read", name, err)
}

// readAll takes a short read for the end: these are plain files, not seq_files.
func readAll(fd int) ([]byte, error) {
	var small [4096]byte
	n, err := ignoringEINTR(func() (int, error) { return sys.Read(fd, small[:]) })
	if err != nil {
		return nil, err
	}
	data := append([]byte(nil), small[:n]...)
	for n == len(small) && err == nil {
		if len(data) > maxTreeFile {
			return nil, errTooLarge
		}
		n, err = ignoringEINTR(func() (int, error) { return sys.Read(fd, small[:]) })
		data = append(data, small[:max(n, 0)]...)
	}
	return data, err
}

// ReadDir lists a directory.
func (t *treeFS) ReadDir(name string) ([]fs.DirEntry, error) {
	f, err := t.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	d, ok := f.(fs.ReadDirFile)
	if !ok {
		return nil, pathError("readdir", name, fs.ErrInvalid)
	}
	entries, err := d.ReadDir(-1)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, pathError("readdir", name, err)
}

// openLink opens a name without following it if it is a link.
func (t *treeFS) openLink(op, name string) (int, error) {
	if !fs.ValidPath(name) {
		return 0, pathError(op, name, fs.ErrInvalid)
	}
	fd, err := t.openAs(name, sys.O_PATH|sys.O_NOFOLLOW)
	return fd, pathError(op, name, err)
}

// ReadLink returns where a link points to.
func (t *treeFS) ReadLink(name string) (string, error) {
	fd, err := t.openLink("readlink", name)
	if err != nil {
		return "", err
	}
	defer sys.Close(fd)
	var target [sys.PathMax]byte
	n, err := sys.Readlinkat(fd, "", target[:])
	if err != nil {
		if err == sys.ENOENT { // for an empty path and for no link
			err = sys.EINVAL
		}
		return "", pathError("readlink", name, err)
	}
	return string(target[:n]), nil
}

// Lstat describes a file, or the link itself.
func (t *treeFS) Lstat(name string) (fs.FileInfo, error) {
	fd, err := t.openLink("lstat", name)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), filepath.Join(t.dir, name))
	defer f.Close()
	return f.Stat()
}
