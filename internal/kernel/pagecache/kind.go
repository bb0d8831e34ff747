// SPDX-License-Identifier: Apache-2.0

package pagecache

import (
	"strings"

	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
	"homenode/internal/migration"
)

// Kinds returns the kind of a mapping's pages. Mounts are read once for all processes
// that share them.
type Kinds struct {
	fs  filesystems
	buf unix.Buffer
}

// NewKinds knows no mounts yet.
func NewKinds(root unix.Root) *Kinds {
	return &Kinds{fs: newFilesystems(root)}
}

// named are files that the kernel makes for memory without a file system of its own:
// mmap(MAP_SHARED|MAP_ANONYMOUS) (shmem_zero_setup in mm/shmem.c), System V,
// memfd_create(2); the directory of POSIX shared memory; and what is not movable memory.
var named = []struct {
	prefix string
	kind   migration.Kind
}{
	{"/memfd:", migration.Shmem}, {"/SYSV", migration.Shmem}, {"/dev/zero", migration.Shmem}, {"/dev/shm/", migration.Shmem},
	{"/dev/", ""}, {"anon_inode:", ""}, {"socket:", ""}, {"/dmabuf:", ""},
}

// Of is the kind of a mapping, private copies of a file's pages aside; "" if it cannot
// move. Only numa_maps shows huge pages of the pool.
func (k *Kinds) Of(pid int, a procfs.Area) migration.Kind {
	if !a.HasFile() {
		return migration.Anon
	}
	for _, n := range named {
		if strings.HasPrefix(a.Path, n.prefix) {
			return n.kind
		}
	}
	k.fs.learn(&k.buf, pid)
	if n, known := k.fs.by[a.Dev]; known {
		return n.kind
	}
	return migration.File
}
