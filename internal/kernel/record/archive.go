// SPDX-License-Identifier: Apache-2.0

package record

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
)

// Top is the folder in an archive that contains everything.
const Top = "homenode-record"

// ErrNotRecord marks an archive that Write did not write.
var ErrNotRecord = errors.New("not an archive of 'homenode record'")

// Limits of an archive, so that a small one cannot fill the memory: the largest
// machines have some 100,000 files with 50 MiB together.
const (
	maxEntries = 1 << 20
	maxBytes   = 256 << 20
)

// Write writes the tree as a .tar.gz that depends on its files only: it contains no
// time, no user and no host.
func (t Tree) Write(w io.Writer) error {
	zipped := gzip.NewWriter(w)
	archive := tar.NewWriter(zipped)
	for _, f := range t.withReadme() {
		h := &tar.Header{Name: Top + "/" + f.Path, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(f.Data)), Format: tar.FormatPAX}
		switch {
		case strings.HasSuffix(f.Path, "/"):
			h.Typeflag, h.Mode = tar.TypeDir, 0o755
		case f.Link != "":
			h.Typeflag, h.Linkname, h.Mode = tar.TypeSymlink, f.Link, 0o777
		}
		if err := archive.WriteHeader(h); err != nil {
			return fmt.Errorf("write %s: %w", h.Name, err)
		}
		if _, err := archive.Write(f.Data); err != nil {
			return fmt.Errorf("write %s: %w", h.Name, err)
		}
	}
	return errors.Join(archive.Close(), zipped.Close())
}

// readme says in the record itself what it is; it also marks a folder as a record.
const readme = `A machine's topology, saved by 'homenode record'.
It has files of /sys and /proc that describe CPUs, caches, memory, NUMA nodes and
PCI devices, and none with serial numbers, host names, hardware addresses or
command lines. 'homenode topo --root' shows it.
`

const readmeFile = "README"

func (t Tree) withReadme() []File {
	return append([]File{{Path: readmeFile, Data: []byte(readme)}}, t.Files...)
}

// Read reads what Write wrote. On error the tree is empty.
func Read(r io.Reader) (Tree, error) {
	zipped, err := gzip.NewReader(r)
	if err != nil {
		return Tree{}, fmt.Errorf("read archive: %w (%w)", err, ErrNotRecord)
	}
	limited := &io.LimitedReader{R: zipped, N: maxBytes}
	archive := tar.NewReader(limited)
	var t Tree
	for range maxEntries {
		h, err := archive.Next()
		if err == io.EOF && limited.N > 0 {
			return t.whole(limited)
		}
		if err != nil {
			return Tree{}, t.broken(err, limited.N)
		}
		f, err := entryOf(h, archive)
		if err != nil {
			return Tree{}, t.broken(err, limited.N)
		}
		if f.Path != readmeFile && f.Path != "" {
			t.Files = append(t.Files, f)
		}
	}
	return Tree{}, fmt.Errorf("read archive: more than %d files", maxEntries)
}

// whole reads to the end, where the checksum is.
func (t Tree) whole(rest io.Reader) (Tree, error) {
	if _, err := io.Copy(io.Discard, rest); err != nil {
		return Tree{}, fmt.Errorf("read archive: its end: %w", err)
	}
	if len(t.Files) == 0 {
		return Tree{}, fmt.Errorf("read archive: it is empty (%w)", ErrNotRecord)
	}
	return t, nil
}

// broken distinguishes a foreign archive from one that ends too early or never.
func (t Tree) broken(err error, left int64) error {
	switch {
	case left <= 0:
		return fmt.Errorf("read archive: more than %d MiB", maxBytes>>20)
	case len(t.Files) == 0 && !errors.Is(err, ErrNotRecord):
		return fmt.Errorf("read archive: %w (%w)", err, ErrNotRecord)
	case len(t.Files) > 0:
		return fmt.Errorf("read archive, after %s: %w", t.Files[len(t.Files)-1].Path, err)
	}
	return err
}

func entryOf(h *tar.Header, r io.Reader) (File, error) {
	name, ours := strings.CutPrefix(h.Name, Top+"/")
	f := File{Path: name}
	switch clean := strings.TrimSuffix(name, "/"); {
	case !ours || name != "" && !fs.ValidPath(clean):
		return File{}, fmt.Errorf("read archive: it has %.60q (%w)", h.Name, ErrNotRecord)
	case h.Typeflag == tar.TypeDir && (name == "" || clean != name):
		return f, nil
	case h.Typeflag == tar.TypeSymlink:
		f.Link = h.Linkname
		return f, nil
	case h.Typeflag != tar.TypeReg || clean != name || h.Size > maxFile:
		return File{}, fmt.Errorf("read archive: %.60q is not a file that 'homenode record' saves (%w)", h.Name, ErrNotRecord)
	}
	var err error
	f.Data, err = io.ReadAll(r)
	return f, err
}
