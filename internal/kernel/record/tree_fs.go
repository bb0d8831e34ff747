// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// FS is the tree as a file system. Links can be read and are not followed: a reader of
// machines needs to know where they point to, and nothing of what is there.
func (t Tree) FS() fs.FS {
	m := &memory{entries: map[string]*entry{".": {name: ".", mode: fs.ModeDir | 0o555}}}
	for _, f := range t.Files {
		name, isDir := strings.CutSuffix(f.Path, "/")
		e := &entry{name: path.Base(name), mode: 0o444, data: f.Data, link: f.Link}
		switch {
		case isDir:
			e.mode = fs.ModeDir | 0o555
		case f.Link != "":
			e.mode = fs.ModeSymlink | 0o777
		}
		m.put(name, e)
	}
	for _, e := range m.entries {
		slices.SortFunc(e.kids, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	}
	return m
}

// memory is a file system of entries by path.
type memory struct{ entries map[string]*entry }

// entry is a file, its FileInfo and its DirEntry.
type entry struct {
	name string
	mode fs.FileMode
	data []byte
	link string
	kids []fs.DirEntry
}

func (e *entry) Name() string               { return e.name }
func (e *entry) Size() int64                { return int64(len(e.data)) }
func (e *entry) Mode() fs.FileMode          { return e.mode }
func (e *entry) ModTime() time.Time         { return time.Time{} }
func (e *entry) IsDir() bool                { return e.mode.IsDir() }
func (e *entry) Sys() any                   { return nil }
func (e *entry) Type() fs.FileMode          { return e.mode.Type() }
func (e *entry) Info() (fs.FileInfo, error) { return e, nil }

// put adds an entry and the directories above it; of several with one name the first
// stays.
func (m *memory) put(name string, e *entry) {
	if !fs.ValidPath(name) {
		return
	}
	if old, ok := m.entries[name]; ok {
		if !old.IsDir() || !e.IsDir() {
			return
		}
		e.kids = old.kids
	}
	dir := path.Dir(name)
	if name == "." || m.entries[dir] != nil && !m.entries[dir].IsDir() {
		return
	}
	if m.entries[dir] == nil {
		m.put(dir, &entry{name: path.Base(dir), mode: fs.ModeDir | 0o555})
	}
	if _, ok := m.entries[name]; !ok && m.entries[dir] != nil {
		m.entries[name] = e
		m.entries[dir].kids = append(m.entries[dir].kids, e)
	}
}

func (m *memory) find(op, name string) (*entry, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	e, ok := m.entries[name]
	if !ok {
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	}
	return e, nil
}

func (m *memory) Open(name string) (fs.File, error) {
	e, err := m.find("open", name)
	if err == nil && e.link != "" {
		err = &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist} // the link leads to a file that was not saved
	}
	if err != nil {
		return nil, err
	}
	return &opened{entry: e, Reader: bytes.NewReader(e.data), left: e.kids}, nil
}

func (m *memory) ReadLink(name string) (string, error) {
	e, err := m.find("readlink", name)
	if err == nil && e.link == "" {
		err = &fs.PathError{Op: "readlink", Path: name, Err: fs.ErrInvalid}
	}
	if err != nil {
		return "", err
	}
	return e.link, nil
}

func (m *memory) Lstat(name string) (fs.FileInfo, error) {
	e, err := m.find("lstat", name)
	if err != nil {
		return nil, err
	}
	return e, nil
}

// opened is an open file or directory.
type opened struct {
	entry *entry
	*bytes.Reader
	left []fs.DirEntry
}

func (o *opened) Stat() (fs.FileInfo, error) { return o.entry, nil }
func (o *opened) Close() error               { return nil }

func (o *opened) Read(b []byte) (int, error) {
	if o.entry.IsDir() {
		return 0, &fs.PathError{Op: "read", Path: o.entry.name, Err: fs.ErrInvalid}
	}
	return o.Reader.Read(b)
}

func (o *opened) ReadDir(n int) ([]fs.DirEntry, error) {
	if !o.entry.IsDir() {
		return nil, &fs.PathError{Op: "readdir", Path: o.entry.name, Err: fs.ErrInvalid}
	}
	if n <= 0 {
		n = len(o.left)
	} else if len(o.left) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(o.left))
	some := slices.Clone(o.left[:n])
	o.left = o.left[n:]
	return some, nil
}
