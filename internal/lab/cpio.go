// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
)

// guestFile is a file of the second initramfs archive: the files of this boot.
type guestFile struct {
	name string // absolute in the guest
	mode uint32
	data []byte
}

// writeCPIO writes files as a "newc" archive, which the kernel unpacks
// (Documentation/driver-api/early-userspace/buffer-format.rst). It adds the
// directories of their paths.
func writeCPIO(w io.Writer, files []guestFile) error {
	c := cpioWriter{w: w}
	var made []string
	for _, f := range files {
		for _, dir := range parents(f.name) {
			if !slices.Contains(made, dir) {
				made = append(made, dir)
				c.entry(dir, 0o040755, nil)
			}
		}
		c.entry(f.name, 0o100000|f.mode, f.data)
	}
	c.entry("/TRAILER!!!", 0, nil)
	return c.err
}

type cpioWriter struct {
	w     io.Writer
	inode int
	err   error
}

func (c *cpioWriter) entry(name string, mode uint32, data []byte) {
	if c.err != nil {
		return
	}
	name = name[1:] + "\x00"
	c.inode++
	head := fmt.Sprintf("070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%s",
		c.inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name), 0, name)
	for _, part := range [][]byte{[]byte(head), pad(len(head)), data, pad(len(data))} {
		if _, c.err = c.w.Write(part); c.err != nil {
			return
		}
	}
}

func pad(n int) []byte { return make([]byte, (4-n%4)%4) }

func parents(name string) []string {
	var dirs []string
	for dir := path.Dir(name); dir != "/"; dir = path.Dir(dir) {
		dirs = append([]string{dir}, dirs...)
	}
	return dirs
}

// programs are the homenode programs in the guest: both programs of a folder, by default
// this program's own.
func programs(dir string) (files []guestFile, err error) {
	if dir == "" {
		exe, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("find homenode's own folder: %w", err)
		}
		dir = filepath.Dir(exe)
	}
	for _, name := range []string{"homenode", "homenode-lab"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, fmt.Errorf("read guest program: %w: 'make build' makes homenode and homenode-lab in one folder", err)
		}
		files = append(files, guestFile{name: "/bin/" + name, mode: 0o755, data: data})
	}
	return files, nil
}
