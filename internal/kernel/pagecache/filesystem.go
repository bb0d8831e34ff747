// SPDX-License-Identifier: Apache-2.0

package pagecache

import (
	"errors"
	"fmt"
	"strings"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
	"homenode/internal/migration"
)

// nature is what a file system's files are for us.
type nature struct {
	kind migration.Kind // "": they have no page cache, or it cannot move, or they act when opened
	// served: a process answers for it. Opening its files may wait for one that is
	// frozen, or that waits for us.
	served bool
}

// natures of file systems by the name that mountinfo has. Those not listed keep
// their files on some disk. rootfs, what an initramfs runs from, is a tmpfs.
var natures = map[string]nature{
	"tmpfs": {kind: migration.Shmem}, "rootfs": {kind: migration.Shmem}, "devtmpfs": {kind: migration.Shmem}, "hugetlbfs": {kind: migration.Hugetlb},
	"fuse": {kind: migration.File, served: true}, "fuseblk": {kind: migration.File, served: true},

	"proc": {}, "sysfs": {}, "cgroup": {}, "cgroup2": {}, "cpuset": {}, "debugfs": {}, "tracefs": {}, "securityfs": {}, "selinuxfs": {}, "smackfs": {},
	"configfs": {}, "fusectl": {}, "pstore": {}, "efivarfs": {}, "bpf": {}, "mqueue": {}, "binfmt_misc": {}, "resctrl": {}, "nsfs": {}, "pidfs": {},
	"rpc_pipefs": {}, "nfsd": {}, "secretmem": {}, "guest_memfd": {}, "dmabuf": {}, "anon_inodefs": {}, "pipefs": {}, "sockfs": {}, "devpts": {},
}

// magics are the same by what statfs(2) says, from include/uapi/linux/magic.h: for
// file systems that are mounted nowhere (memfd, System V), or not any more.
var magics = map[int64]string{
	sys.TMPFS_MAGIC: "tmpfs", sys.HUGETLBFS_MAGIC: "hugetlbfs", sys.FUSE_SUPER_MAGIC: "fuse", sys.PROC_SUPER_MAGIC: "proc", sys.SYSFS_MAGIC: "sysfs",
	sys.CGROUP_SUPER_MAGIC: "cgroup", sys.CGROUP2_SUPER_MAGIC: "cgroup2", sys.DEBUGFS_MAGIC: "debugfs", sys.TRACEFS_MAGIC: "tracefs",
	sys.SECURITYFS_MAGIC: "securityfs", sys.SELINUX_MAGIC: "selinuxfs", sys.SMACK_MAGIC: "smackfs", sys.PSTOREFS_MAGIC: "pstore",
	sys.EFIVARFS_MAGIC: "efivarfs", sys.BPF_FS_MAGIC: "bpf", sys.BINFMTFS_MAGIC: "binfmt_misc", sys.RDTGROUP_SUPER_MAGIC: "resctrl",
	sys.NSFS_MAGIC: "nsfs", sys.SECRETMEM_MAGIC: "secretmem", sys.DMA_BUF_MAGIC: "dmabuf", sys.ANON_INODE_FS_MAGIC: "anon_inodefs",
	sys.PIPEFS_MAGIC: "pipefs", sys.SOCKFS_MAGIC: "sockfs", sys.DEVPTS_SUPER_MAGIC: "devpts", sys.PID_FS_MAGIC: "pidfs",
	0x474d454d: "guest_memfd", 0x19800202: "mqueue", 0x62656570: "configfs", 0x65735543: "fusectl",
}

// natureOf takes a subtype ("fuse.sshfs") for its type.
func natureOf(name string) nature {
	name, _, _ = strings.Cut(name, ".")
	if n, known := natures[name]; known {
		return n
	}
	return nature{kind: migration.File}
}

// filesystems remembers the natures of file systems by device.
type filesystems struct {
	root unix.Root
	by   map[uint64]nature
	seen map[uint64]bool // mount namespaces
}

// learn reads the mounts of a process, once for all that share them.
func (f *filesystems) learn(buf *unix.Buffer, pid int) {
	ns, err := unix.Inode(f.root.Path(fmt.Sprintf("/proc/%d/ns/mnt", pid)))
	if err != nil { // it is not told: each process for itself
		ns = 1<<63 | uint64(pid)
	}
	if f.seen[ns] {
		return
	}
	f.seen[ns] = true
	data, err := buf.ReadFile(f.root.Path(fmt.Sprintf("/proc/%d/mountinfo", pid)))
	if err != nil {
		return
	}
	mounts, err := procfs.ParseMountinfo(data)
	if err != nil {
		return
	}
	for _, m := range mounts {
		f.by[m.Dev] = natureOf(m.Type)
	}
}

// of is the nature of the file system that a file is on. statfs would ask the
// server of a FUSE: it is the second choice.
func (f *filesystems) of(dev uint64, path string) (nature, error) {
	if n, known := f.by[dev]; known {
		return n, nil
	}
	var st sys.Statfs_t
	for {
		err := sys.Statfs(path, &st)
		if err == nil {
			break
		}
		if !errors.Is(err, sys.EINTR) {
			return nature{}, err
		}
	}
	n := nature{kind: migration.File}
	if name, known := magics[int64(st.Type)]; known {
		n = natureOf(name)
	}
	f.by[dev] = n
	return n, nil
}
