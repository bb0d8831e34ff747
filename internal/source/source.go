// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"homenode/internal/exit"
	"homenode/internal/kernel"
	"homenode/internal/kernel/record"
	"homenode/internal/kernel/unix"
	"homenode/internal/machine"
)

// Machine is where a machine is read from; none of them is this host.
type Machine struct {
	Root, FromHwloc, Shape string
}

// read returns the machine, and a sentence for each part that could not be read
// or believed. The error means that there is none.
func (s Machine) Read(stderr io.Writer) (machine.Machine, []string, error) {
	switch {
	case s.Root != "":
		return ReadRoot(s.Root, stderr)
	case s.FromHwloc != "":
		return readHwloc(s.FromHwloc)
	case s.Shape != "":
		shape, err := Shape("", s.Shape)
		if err != nil {
			return machine.Machine{}, nil, exit.BadInput(err)
		}
		return shape.Machine(), nil, nil
	}
	return Live()
}

// ReadRoot reads a recorded tree, and says on stderr if it is not the folder that was named.
func ReadRoot(path string, stderr io.Writer) (machine.Machine, []string, error) {
	tree, where, err := OpenTree(path, stderr)
	if err != nil {
		return machine.Machine{}, nil, exit.BadInput(err)
	}
	m, err := machine.ParseSysfs(tree, "recorded:"+filepath.Clean(where))
	return Usable(m, err, where)
}

// OpenTree opens a recorded tree, and says where it really is.
func OpenTree(path string, stderr io.Writer) (fs.FS, string, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, "", fmt.Errorf("open tree %s: there is no such folder: give one that holds sys/", path)
	case err != nil:
		return nil, "", fmt.Errorf("open tree: %w", err)
	case !info.IsDir():
		tree, err := openArchive(path)
		return tree, path, err
	}
	dir, err := findTree(path)
	if err != nil {
		return nil, "", err
	}
	if dir != path {
		fmt.Fprintf(stderr, "homenode: %s holds no sys/: reading %s\n", path, dir)
	}
	tree, err := kernel.At(absolute(dir)).FS()
	return tree, dir, err
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// archives are what a tree may be packed in.
var archives = []string{".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz", ".tbz2", ".tar.xz", ".txz", ".tar.zst", ".zip", ".gz", ".bz2", ".xz"}

func openArchive(path string) (fs.FS, error) {
	if record.IsArchive(path) {
		tree, err := record.Load(path)
		if errors.Is(err, record.ErrNotRecord) {
			return nil, fmt.Errorf("open tree %s: %w: unpack it first ('tar xf'), and give the folder", path, record.ErrNotRecord)
		}
		return tree.FS(), err
	}
	for _, end := range archives {
		if strings.HasSuffix(path, end) {
			return nil, fmt.Errorf("open tree %s: it is an archive: unpack it first ('tar xf'), and give the folder", path)
		}
	}
	return nil, Explain(path, fmt.Errorf("open tree %s: it is a file: give a folder that holds sys/", path))
}

// findTree looks for sys/ in a folder, or in the only one of its folders that has
// one: archives are unpacked into a folder of their own, sometimes two.
func findTree(path string) (string, error) {
	dir := path
	for range 3 {
		if isDir(filepath.Join(dir, "sys")) {
			return dir, nil
		}
		if isDir(filepath.Join(dir, "devices/system/cpu")) {
			return "", fmt.Errorf("open tree %s: it is a sys/ itself: give the folder that holds it", path)
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			return "", fmt.Errorf("open tree: %w", err)
		}
		var all, with []string
		for _, e := range entries {
			sub := filepath.Join(dir, e.Name())
			if e.IsDir() {
				all = append(all, sub)
				if isDir(filepath.Join(sub, "sys")) {
					with = append(with, sub)
				}
			}
		}
		switch {
		case len(with) > 1:
			return "", fmt.Errorf("open tree %s: %d of its folders hold a sys/: give one of them, such as %s", path, len(with), with[0])
		case len(with) == 1:
			return with[0], nil
		case len(all) != 1:
			return "", noTree(path)
		}
		dir = all[0]
	}
	return "", noTree(path)
}

func noTree(path string) error {
	return fmt.Errorf("open tree %s: it holds no sys/: give the folder that does", path)
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// maxXML bounds a file of hwloc's: those of the largest machines have some 5 MiB.
const maxXML = 64 << 20

func readHwloc(path string) (machine.Machine, []string, error) {
	data, err := unix.ReadAtMost(path, maxXML)
	if err != nil {
		return machine.Machine{}, nil, exit.BadInput(fmt.Errorf("read hwloc XML: %w", err))
	}
	m, err := machine.ParseHwloc(data, "hwloc:"+filepath.Clean(path))
	return Usable(m, err, path)
}
