// SPDX-License-Identifier: Apache-2.0

package unix

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	sys "golang.org/x/sys/unix"
)

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

func trees(t testing.TB, dir string) map[string]fs.FS {
	t.Helper()
	tree, err := At(dir).FS()
	if err != nil {
		t.Fatal(err)
	}
	old, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { old.Close() })
	return map[string]fs.FS{"openat2": tree, "os.Root": rootFS{old.FS(), old}}
}

// Both ways of reading a tree give the same result, and neither leaves it.
func TestTreeFS(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "tree")
	write(t, filepath.Join(top, "secret"), "outside")
	long := strings.Repeat("x", 4096)
	write(t, filepath.Join(dir, "sys/a/exact"), long)
	write(t, filepath.Join(dir, "sys/a/long"), long+long+"y")
	write(t, filepath.Join(dir, "sys/a/empty"), "")
	for link, to := range map[string]string{
		"sys/near": "a/long", "sys/out": "../../secret", "sys/absolute": "/etc/passwd", "sys/dir": "a", "sys/loop": "loop", "sys/up": "../..",
	} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := sys.Mkfifo(filepath.Join(dir, "sys/fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	for how, tree := range trees(t, dir) {
		for path, want := range map[string]string{"sys/a/exact": long, "sys/near": long + long + "y", "sys/dir/long": long + long + "y", "sys/a/empty": ""} {
			if got, err := fs.ReadFile(tree, path); err != nil || string(got) != want {
				t.Errorf("%s: %s: %d bytes, %v", how, path, len(got), err)
			}
		}
		for _, path := range []string{"sys/out", "sys/absolute", "sys/up/secret", "sys/loop", "sys/a", "../secret", "/etc/passwd", "sys/a/"} {
			if got, err := fs.ReadFile(tree, path); err == nil || len(got) > 0 {
				t.Errorf("%s: %s was read: %q", how, path, got)
			}
		}
		if _, err := fs.ReadFile(tree, "sys/none"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: no file: %v", how, err)
		}
		if to, err := fs.ReadLink(tree, "sys/out"); err != nil || to != "../../secret" {
			t.Errorf("%s: sys/out leads to %q, %v", how, to, err)
		}
		for _, path := range []string{"sys/a/exact", "sys/up/tree/sys/near", "sys/none"} {
			if to, err := fs.ReadLink(tree, path); err == nil {
				t.Errorf("%s: %s leads to %q", how, path, to)
			}
		}
		if info, err := fs.Lstat(tree, "sys/near"); err != nil || info.Mode().Type() != fs.ModeSymlink {
			t.Errorf("%s: sys/near is %v, %v", how, info, err)
		}
		entries, err := fs.ReadDir(tree, "sys")
		if err != nil || len(entries) != 8 || entries[0].Name() != "a" || !entries[0].IsDir() {
			t.Errorf("%s: %v, %v", how, entries, err)
		}
	}
	writer, err := os.OpenFile(filepath.Join(dir, "sys/fifo"), os.O_RDWR, 0) // which is silent
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	for how, tree := range trees(t, dir) {
		if data, err := fs.ReadFile(tree, "sys/fifo"); !errors.Is(err, errNotKernelFile) {
			t.Errorf("%s: a FIFO held %q, %v", how, data, err)
		}
		if f, err := tree.Open("sys/fifo"); !errors.Is(err, errNotKernelFile) {
			t.Errorf("%s: a FIFO was opened: %v, %v", how, f, err)
		}
	}
	tree := trees(t, dir)["openat2"]
	if _, ours := tree.(*treeFS); !ours {
		t.Skip("this kernel has no openat2")
	}
	sub, err := fs.Sub(tree, "sys/a")
	if err == nil {
		err = fstest.TestFS(sub, "exact", "long", "empty")
	}
	if err != nil {
		t.Error(err)
	}
}

func TestTreeFSRefuses(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file"), "x")
	for _, path := range []string{"none", "file"} {
		if _, err := At(filepath.Join(dir, path)).FS(); err == nil {
			t.Errorf("%s was opened as a tree", path)
		}
	}
}

// The case that treeFS is for: 2,000 small files.
func BenchmarkTreeFS(b *testing.B) {
	dir := b.TempDir()
	var names []string
	for i := range 2000 {
		names = append(names, fmt.Sprintf("sys/devices/system/cpu/cpu%d/topology/core_id", i))
		write(b, filepath.Join(dir, names[i]), "0\n")
	}
	for how, tree := range trees(b, dir) {
		b.Run(how, func(b *testing.B) {
			for range b.N {
				for _, name := range names {
					if _, err := fs.ReadFile(tree, name); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

func TestTreeFSIsBounded(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "long"), make([]byte, maxTreeFile+8192), 0o600); err != nil {
		t.Fatal(err)
	}
	tree, err := At(dir).FS()
	if err != nil {
		t.Fatal(err)
	}
	if data, err := fs.ReadFile(tree, "long"); !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "long") {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}
