// SPDX-License-Identifier: Apache-2.0

package pagecache

import (
	"fmt"
	"math/bits"
	"os"
	"strconv"
	"strings"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
	"homenode/internal/migration"
)

// nature is how homenode treats a file system's files.
type nature struct {
	kind migration.Kind // "": they have no page cache, or it cannot move, or they act when opened
	// served: a process serves the file system. Opening its files may wait for a process
	// that is frozen, or that waits for us.
	served bool
}

// natures of file systems by their name in mountinfo. Those not listed keep their files
// on some disk. rootfs, which an initramfs runs from, is a tmpfs.
func natures() map[string]nature {
	return map[string]nature{
		"tmpfs": {kind: migration.Shmem}, "rootfs": {kind: migration.Shmem}, "devtmpfs": {kind: migration.Shmem}, "hugetlbfs": {kind: migration.Hugetlb},
		"fuse": {kind: migration.File, served: true}, "fuseblk": {kind: migration.File, served: true},

		"proc": {}, "sysfs": {}, "cgroup": {}, "cgroup2": {}, "cpuset": {}, "debugfs": {}, "tracefs": {}, "securityfs": {}, "selinuxfs": {}, "smackfs": {},
		"configfs": {}, "fusectl": {}, "pstore": {}, "efivarfs": {}, "bpf": {}, "mqueue": {}, "binfmt_misc": {}, "resctrl": {}, "nsfs": {}, "pidfs": {},
		"rpc_pipefs": {}, "nfsd": {}, "secretmem": {}, "guest_memfd": {}, "dmabuf": {}, "anon_inodefs": {}, "pipefs": {}, "sockfs": {}, "devpts": {},
	}
}

// natureOf takes a subtype ("fuse.sshfs") for its type.
func natureOf(name string) nature {
	name, _, _ = strings.Cut(name, ".")
	if n, known := natures()[name]; known {
		return n
	}
	return nature{kind: migration.File}
}

// filesystems remembers the natures of file systems, by their devices and mounts.
type filesystems struct {
	root   unix.Root
	by     map[uint64]nature // device
	mounts map[uint64]nature // number of a mount
	seen   map[uint64]bool   // mount namespaces
	own    bool              // by has the kernel's own
}

func newFilesystems(root unix.Root) filesystems {
	return filesystems{root: root, by: map[uint64]nature{}, mounts: map[uint64]nature{}, seen: map[uint64]bool{}}
}

// learn reads the mounts of a process, once for all that share them.
func (f *filesystems) learn(buf *unix.Buffer, pid int) {
	ns, err := unix.Inode(f.root.Path(fmt.Sprintf("/proc/%d/ns/mnt", pid)))
	if err != nil { // the namespace is not shown: read for each process
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
		f.mounts[m.ID] = natureOf(m.Type)
	}
}

// of is the nature of the file system that a file is on. It asks no server that may not
// answer: statfs(2) would wait for the server of a FUSE.
//
//  1. A file system that is mounted where one of the processes sees it.
//  2. The same by the mount: files of btrfs and overlayfs have devices that mountinfo
//     does not have.
//  3. What the kernel makes has no path, or a name that only the kernel gives.
//  4. The kernel's own file systems for shared memory, which are mounted nowhere.
//  5. File systems that no process sees (unmounted while in use, another namespace's): a
//     real device is a disk; without one, any process may be the server.
func (f *filesystems) of(st sys.Statx_t, name string) nature {
	dev := sys.Mkdev(st.Dev_major, st.Dev_minor)
	if n, known := f.by[dev]; known { // 1
		return n
	}
	if n, known := f.mounts[st.Mnt_id]; known && st.Mask&sys.STATX_MNT_ID != 0 { // 2
		return n
	}
	if name == "/secretmem (deleted)" || strings.HasPrefix(name, "/dmabuf:") || !strings.HasPrefix(name, "/") { // 3
		return nature{}
	}
	if !f.own { // 4
		f.own = true
		f.learnOwn()
		if n, known := f.by[dev]; known {
			return n
		}
	}
	return nature{kind: migration.File, served: st.Dev_major == 0} // 5
}

// learnOwn finds the devices of memfd, System V and shared anonymous memory, which are on
// one file system, and those of their huge pages, one for each size.
func (f *filesystems) learnOwn() {
	f.learnMemfd(0, nature{kind: migration.Shmem})
	sizes, _ := os.ReadDir(f.root.Path("/sys/kernel/mm/hugepages"))
	for _, s := range sizes {
		text, _ := strings.CutPrefix(strings.TrimSuffix(s.Name(), "kB"), "hugepages-")
		if kib, err := strconv.ParseUint(text, 10, 32); err == nil && kib > 0 && kib&(kib-1) == 0 {
			const shift = 26 // MFD_HUGE_SHIFT
			f.learnMemfd(sys.MFD_HUGETLB|bits.TrailingZeros64(kib<<10)<<shift, nature{kind: migration.Hugetlb})
		}
	}
}

// learnMemfd makes an empty file, which takes no page, also none of a pool.
func (f *filesystems) learnMemfd(flags int, n nature) {
	fd, err := sys.MemfdCreate("homenode", sys.MFD_CLOEXEC|flags)
	if err != nil {
		return
	}
	defer sys.Close(fd)
	var st sys.Stat_t
	if sys.Fstat(fd, &st) == nil {
		f.by[st.Dev] = n
	}
}
