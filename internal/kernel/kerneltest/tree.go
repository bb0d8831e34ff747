// SPDX-License-Identifier: Apache-2.0

// Package kerneltest makes fake trees for tests, which prove parsing only, and a resctrl
// file system in memory.
//
// It is NOT for: anything outside tests.
package kerneltest

import (
	"os"
	"path/filepath"
	"testing"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/unix"
)

// Files are a tree: absolute paths and contents. A path that ends in "/" is an
// empty directory.
type Files map[string]string

// Tree writes files into a directory that the test's end removes.
func Tree(t testing.TB, files Files) unix.Root {
	t.Helper()
	root := unix.At(t.TempDir())
	Write(t, root, files)
	return root
}

// Write adds files to a tree, or changes them.
func Write(t testing.TB, root unix.Root, files Files) {
	t.Helper()
	for path, content := range files {
		real := root.Path(path)
		if path[len(path)-1] == '/' {
			check(t, os.MkdirAll(real, 0o755))
			continue
		}
		check(t, os.MkdirAll(filepath.Dir(real), 0o755))
		check(t, os.WriteFile(real, []byte(content), 0o644))
	}
}

// Remove removes a file or a directory.
func Remove(t testing.TB, root unix.Root, path string) {
	t.Helper()
	check(t, os.RemoveAll(root.Path(path)))
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TwoNodes is a machine of 2 nodes × 2 CPUs.
func TwoNodes() Files {
	f := Files{
		"/sys/devices/system/cpu/online":  "0-3\n",
		"/sys/devices/system/node/online": "0-1\n",
		"/proc/stat":                      "cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 0 0 0 0 0 0 0\ncpu1 0 0 0 0 0 0 0\ncpu2 0 0 0 0 0 0 0\ncpu3 0 0 0 0 0 0 0\n",
	}
	for cpu, d := range []string{"0", "1", "2", "3"} {
		f["/sys/devices/system/cpu/cpu"+d+"/topology/core_id"] = d + "\n"
		f["/sys/devices/system/cpu/cpu"+d+"/topology/physical_package_id"] = string(rune('0'+cpu/2)) + "\n"
	}
	for node, cpus := range []string{"0-1", "2-3"} {
		d := string(rune('0' + node))
		dir := "/sys/devices/system/node/node" + d + "/"
		f[dir+"cpulist"] = cpus + "\n"
		f[dir+"distance"] = []string{"10 21\n", "21 10\n"}[node]
		f[dir+"meminfo"] = "Node " + d + " MemTotal:  524288 kB\nNode " + d + " MemFree:  262144 kB\nNode " + d + " FilePages:  1024 kB\nNode " + d + " AnonPages:  2048 kB\n"
	}
	return f
}

// With merges the two trees.
func (f Files) With(more Files) Files {
	for path, content := range more {
		f[path] = content
	}
	return f
}

// InMemory puts the test's folders in memory if there is room for thousands of small
// files (a container has 64 MiB or none): an fsync takes 30 ms on a disk, a second on
// some, and no time there.
func InMemory(t *testing.T) {
	t.Helper()
	const dir, room = "/dev/shm", 256 << 20
	var fs sys.Statfs_t
	if sys.Statfs(dir, &fs) == nil && fs.Bavail*uint64(fs.Bsize) >= room {
		t.Setenv("TMPDIR", dir)
	}
}
