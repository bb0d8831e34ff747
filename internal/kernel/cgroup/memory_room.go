// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
)

// MemoryRoom is how much more a memory cgroup allows.
type MemoryRoom struct {
	Cgroup string     `json:"cgroup"` // its path, as /proc/self/cgroup has it
	File   string     `json:"file"`   // with the limit: memory.max, memory.high or memory.limit_in_bytes
	Limit  unit.Bytes `json:"limit_bytes"`
	Used   unit.Bytes `json:"used_bytes"` // by it and those below it
	// Cache is page cache charged to it that reclaim can take at once: clean files.
	Cache unit.Bytes `json:"cache_bytes"`
}

// Left is what may still be charged before a process is killed.
func (r MemoryRoom) Left() unit.Bytes { return max(0, r.Limit-r.Used+min(r.Cache, r.Used)) }

// String is the fact for a sentence: which cgroup limits, and what is left.
func (r MemoryRoom) String() string {
	return fmt.Sprintf("cgroup %s allows %v more (%s %v, %v used, of that %v of page cache that could go)",
		r.Cgroup, r.Left(), r.File, r.Limit, r.Used, r.Cache)
}

// ReadMemoryRoom reads how much more the memory cgroups of this process allow, and
// returns the tightest; none if nothing limits it, or there are no cgroups.
//
//  1. /proc/self/cgroup names the cgroup: the line of v1's memory controller, else
//     that of v2.
//  2. A charge goes to the cgroup and to all its ancestors (page_counter_try_charge in
//     mm/page_counter.c), so each is read, up to where the hierarchy is mounted: on a
//     host that is all of them; in a container it ends at the container's own.
//  3. What is left is the limit minus the use, plus clean page cache: that is dropped
//     before a process is killed. memory.high kills no process, but a process above it
//     is slowed down until it stands still.
func ReadMemoryRoom(root unix.Root) (unit.Opt[MemoryRoom], error) {
	var buf unix.Buffer
	none := unit.None[MemoryRoom]()
	members, err := unix.Parsed(&buf, root.Path("/proc/self/cgroup"), procfs.ParsePIDCgroup)
	if errors.Is(err, unix.ErrGone) {
		return none, nil // a kernel without cgroups
	}
	if err != nil {
		return none, err
	}
	mounts, err := unix.Parsed(&buf, root.Path("/proc/self/mountinfo"), procfs.ParseMountinfo)
	if err != nil {
		return none, err
	}
	var tightest unit.Opt[MemoryRoom]
	for _, c := range memoryChain(members, mounts) {
		r, err := c.room(root, &buf)
		if err != nil {
			return none, err
		}
		here, ok := r.Get()
		if so, known := tightest.Get(); ok && (!known || here.Left() < so.Left()) {
			tightest = r
		}
	}
	return tightest, nil
}

// memoryCgroup is one cgroup of the chain.
type memoryCgroup struct {
	path string // as in /proc/self/cgroup
	dir  string // where it is mounted
	v2   bool
}

// memoryChain is the cgroup of a process and its ancestors, from itself upwards, as far
// as a mount shows them.
func memoryChain(members []procfs.Membership, mounts []procfs.Mount) []memoryCgroup {
	id, v2, found := "", false, false
	for _, m := range members { // 1
		switch {
		case slices.Contains(strings.Split(m.Controllers, ","), "memory"):
			id, v2, found = m.Path, false, true
		case m.Controllers == "" && !found:
			id, v2, found = m.Path, true, true
		}
	}
	if !found {
		return nil
	}
	mount, ok := memoryMount(mounts, id, v2)
	if !ok {
		return nil
	}
	var chain []memoryCgroup
	for below := relative(mount.Root, id); ; below = path.Dir(below) { // 2
		chain = append(chain, memoryCgroup{path: path.Join(mount.Root, below), dir: path.Join(mount.Point, below), v2: v2})
		if below == "/" {
			return chain
		}
	}
}

// memoryMount is the mount that shows most of the ancestors. If no mount has the cgroup
// itself, it is any mount: its top is the nearest that can be seen.
func memoryMount(mounts []procfs.Mount, id string, v2 bool) (best procfs.Mount, found bool) {
	has := func(m procfs.Mount) bool { return m.Root == "/" || within(m.Root, id) }
	for _, m := range mounts {
		if v2 && m.Type != "cgroup2" || !v2 && (m.Type != "cgroup" || !slices.Contains(m.Super, "memory")) {
			continue
		}
		if !found || has(m) && (!has(best) || len(m.Root) < len(best.Root)) {
			best, found = m, true
		}
	}
	return best, found
}

func within(top, id string) bool { return id == top || strings.HasPrefix(id, top+"/") }

// relative is a cgroup's path below a mount's top; "/" if it is not below it. "/../x"
// is outside of the cgroup namespace: only the top of it can be seen.
func relative(top, id string) string {
	switch {
	case strings.HasPrefix(id, "/.."):
		return "/"
	case top == "/":
		return path.Clean(id)
	case within(top, id):
		return path.Join("/", strings.TrimPrefix(id, top))
	}
	return "/"
}

// room reads one cgroup; none without a limit.
func (c memoryCgroup) room(root unix.Root, buf *unix.Buffer) (unit.Opt[MemoryRoom], error) {
	none := unit.None[MemoryRoom]()
	limits, used := []string{"memory.limit_in_bytes"}, "memory.usage_in_bytes"
	if c.v2 {
		limits, used = []string{"memory.max", "memory.high"}, "memory.current"
	}
	r := MemoryRoom{Cgroup: c.path}
	for _, file := range limits {
		limit, err := readMemory(root, buf, c.dir+"/"+file, ParseMemoryLimit)
		if err != nil {
			return none, err
		}
		if n, ok := limit.Get(); ok && (r.File == "" || n < r.Limit) {
			r.File, r.Limit = file, n
		}
	}
	if r.File == "" {
		return none, nil
	}
	var err error
	if r.Used, err = readMemory(root, buf, c.dir+"/"+used, ParseMemoryUsage); err != nil {
		return none, err
	}
	r.Cache, err = readMemory(root, buf, c.dir+"/memory.stat", ParseCleanCache) // 3
	return unit.OptOf(r, err == nil), err
}

// readMemory gives the zero value for a missing file: v2's root has none of them, and
// neither has a cgroup whose parent does not enable the controller.
func readMemory[T any](root unix.Root, buf *unix.Buffer, file string, parse func([]byte) (T, error)) (v T, err error) {
	data, err := buf.ReadFile(root.Path(file))
	if errors.Is(unix.Classify(err), unix.ErrGone) {
		return v, nil
	}
	if err != nil {
		return v, unix.Explain("read", file, "", err)
	}
	if v, err = parse(data); err != nil {
		return v, fmt.Errorf("read %s: %w", file, err)
	}
	return v, nil
}

// ParseCleanCache reads from memory.stat the page cache that reclaim can take without
// writing: files on the lists of reclaim, minus what is dirty or being written. v1 has
// the same lines for a cgroup alone, and as total_… with those below it, since 2.6.25;
// dirty and writeback since 4.2.
//
//	inactive_file 1048576
//	total_inactive_file 1048576
func ParseCleanCache(data []byte) (unit.Bytes, error) {
	of := map[string]int64{}
	for k, v := range keyed(data) {
		switch strings.TrimPrefix(k, "total_") {
		case "inactive_file", "active_file", "file_dirty", "file_writeback", "dirty", "writeback":
			n, err := number(v)
			if err != nil || n > 1<<60 {
				return 0, malformed("memory.stat", v, errNumber)
			}
			of[k] = n
		}
	}
	prefix := ""
	if _, v1 := of["total_inactive_file"]; v1 {
		prefix = "total_"
	}
	clean := of[prefix+"inactive_file"] + of[prefix+"active_file"]
	for _, busy := range []string{"file_dirty", "file_writeback", "dirty", "writeback"} {
		clean -= of[prefix+busy]
	}
	return unit.Bytes(max(0, clean)), nil
}
