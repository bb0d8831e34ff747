// SPDX-License-Identifier: Apache-2.0

package record

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"homenode/internal/kernel/unix"
)

// ErrExists means that nothing was overwritten.
var ErrExists = errors.New("it exists already")

// IsArchive says whether a path names an archive.
func IsArchive(path string) bool {
	return strings.HasSuffix(path, ".tar.gz") || strings.HasSuffix(path, ".tgz")
}

// Save writes the tree to an archive or a folder, all of it or nothing. Only with force
// does it replace a file, or a folder that is a record.
func (t Tree) Save(out string, force bool) error {
	if _, err := os.Lstat(out); err == nil && !force {
		return fmt.Errorf("save %s: %w", out, ErrExists)
	}
	if IsArchive(out) {
		return t.saveArchive(out)
	}
	return t.saveFolder(out)
}

func (t Tree) saveArchive(out string) error {
	f, err := os.CreateTemp(filepath.Dir(out), ".homenode-record-*")
	if err != nil {
		return fmt.Errorf("save %s: %w", out, err)
	}
	defer os.Remove(f.Name()) // renamed already when all went well
	err = errors.Join(t.Write(f), f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), out)
	}
	if err != nil {
		return fmt.Errorf("save %s: %w", out, err)
	}
	return nil
}

func (t Tree) saveFolder(out string) error {
	out = filepath.Clean(out)
	if info, err := os.Lstat(out); err == nil && !(info.IsDir() && isRecord(out)) {
		return fmt.Errorf("save %s: %w, and is not a folder that 'homenode record' wrote", out, ErrExists)
	}
	temp, err := os.MkdirTemp(filepath.Dir(out), ".homenode-record-*")
	if err != nil {
		return fmt.Errorf("save %s: %w", out, err)
	}
	defer os.RemoveAll(temp)
	fresh := filepath.Join(temp, "new")
	if err = os.Mkdir(fresh, 0o755); err == nil {
		err = t.writeFolder(fresh)
	}
	if err == nil {
		err = replace(out, fresh, filepath.Join(temp, "old"))
	}
	if err != nil {
		return fmt.Errorf("save %s: %w", out, err)
	}
	return nil
}

// replace puts a folder in the place of another, or puts that one back.
func replace(out, fresh, aside string) error {
	if err := os.Rename(out, aside); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	err := os.Rename(fresh, out)
	if err != nil {
		os.Rename(aside, out)
	}
	return err
}

// isRecord recognises a record by its README: another folder must not be removed.
func isRecord(dir string) bool {
	data, err := unix.ReadAtMost(filepath.Join(dir, readmeFile), int64(len(readme)))
	return err == nil && string(data) == readme
}

func (t Tree) writeFolder(dir string) error {
	for _, f := range t.withReadme() {
		path := filepath.Join(dir, filepath.FromSlash(f.Path))
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		switch {
		case err != nil:
		case strings.HasSuffix(f.Path, "/"):
			err = os.MkdirAll(path, 0o755)
		case f.Link != "":
			err = os.Symlink(f.Link, path)
		default:
			err = os.WriteFile(path, f.Data, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Load reads an archive.
func Load(path string) (Tree, error) {
	f, err := unix.OpenNamed(path)
	if err != nil {
		return Tree{}, fmt.Errorf("read archive: %w", err)
	}
	defer f.Close()
	t, err := Read(f)
	if err != nil {
		return Tree{}, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}
