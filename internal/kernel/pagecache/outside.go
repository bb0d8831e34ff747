// SPDX-License-Identifier: Apache-2.0

package pagecache

import (
	"fmt"
	"os"
	"time"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
)

// outside marks the files that processes other than pids map or have open. Our own
// process is left out: it maps and opens what it was asked to search.
//
//  1. Files are identified by their numbers; those that are marked already are not
//     searched for any more.
//  2. A process without mappings is a kernel thread, or ending: it has no files.
func (f *finder) outside(pids []int) error {
	if len(f.files) == 0 {
		return nil
	}
	inside := map[int]bool{os.Getpid(): true}
	for _, pid := range pids {
		inside[pid] = true
	}
	all, err := unix.IDs(f.root.Path("/proc"))
	if err != nil {
		return unix.Explain("list", f.root.Path("/proc"), "", err)
	}
	hidden, found := 0, f.outsider()
	for _, pid := range all {
		if inside[pid] {
			continue
		}
		if err := f.stop(); err != nil {
			return fmt.Errorf("find other processes with the files: %w", err)
		}
		mappings, ids, err := f.mapped(pid)
		for id := range ids {
			found(id)
		}
		switch kind := unix.Classify(err); {
		case err == nil && mappings == 0: // 2
			continue
		case kind == unix.ErrNotPermitted:
			hidden++
			continue
		case kind == unix.ErrGone:
			continue
		case err != nil:
			f.note("files of other processes", err)
			continue
		}
		_ = f.eachDescriptor(pid, func(_ string, st sys.Statx_t) { found(idOf(st)) }) // its mappings count all the same
	}
	if hidden > 0 {
		f.note("other processes that may share files", fmt.Errorf("read the mappings of %d of %d: %w: it needs CAP_SYS_PTRACE", hidden, len(all), unix.ErrNotPermitted))
	}
	return nil
}

// mapsLimit is how long a process's maps may take; longer holds up the search, shorter
// gives up on a busy host.
const mapsLimit = 2 * time.Second

// stuck are the processes whose maps do not answer. They are the same for every search.
var stuck = &unix.Patience{}

// mapped finds which of the files another process maps. Any user can make it hang.
func (f *finder) mapped(pid int) (mappings int, ids map[ID]bool, err error) {
	if f.spare == nil {
		f.spare = &unix.Buffer{}
	}
	path, buf, found := f.proc(pid, "maps"), f.spare, map[ID]bool{}
	n, err2 := 0, error(nil)
	err = stuck.Try(pid, path, mapsLimit, func() {
		n, err2 = procfs.ReadMapped(buf, path, procfs.MapsBudget(), func(dev, inode uint64, sysV bool) {
			id := ID{Dev: dev, Ino: inode}
			if sysV {
				id.IPC = ipcOf(f.root, pid)
			}
			if f.by[id] != nil {
				found[id] = true
			}
		})
	})
	if err != nil {
		f.spare = nil // it may still be read into
		return 0, nil, err
	}
	return n, found, err2
}

// outsider marks a file by its number (1).
func (f *finder) outsider() func(ID) {
	return func(id ID) {
		if file := f.by[id]; file != nil {
			file.Outside = true
		}
	}
}
