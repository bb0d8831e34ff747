// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"errors"
	"testing"

	"homenode/internal/kernel/kerneltest"
	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
)

const mib = "048576\n" // after "1": one MiB

// memoryTree is a v2 host: a limit above the process's own cgroup.
func memoryTree(more kerneltest.Files) kerneltest.Files {
	const top = "/sys/fs/cgroup"
	return kerneltest.Files{
		"/proc/self/cgroup":                 "0::/a.slice/b/c\n",
		"/proc/self/mountinfo":              mountV2,
		top + "/a.slice/memory.max":         "10485760\n",
		top + "/a.slice/memory.high":        "max\n",
		top + "/a.slice/memory.current":     "6291456\n",
		top + "/a.slice/memory.stat":        "file 9\ninactive_file 1048576\nactive_file 1048576\nfile_dirty 524288\nfile_writeback 524288\n",
		top + "/a.slice/b/memory.max":       "max\n",
		top + "/a.slice/b/memory.current":   "6291456\n",
		top + "/a.slice/b/c/memory.max":     "104857600\n",
		top + "/a.slice/b/c/memory.stat":    "inactive_file 0\n",
		top + "/a.slice/b/c/memory.current": "4194304\n",
	}.With(more)
}

func TestDecodeMemoryRoom(t *testing.T) {
	const top = "/sys/fs/cgroup"
	const mountsV1 = "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n" + "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
	v1 := kerneltest.Files{
		"/proc/self/cgroup":                                "9:name=systemd:/x\n4:memory:/docker/1a/in\n0::/y\n",
		"/proc/self/mountinfo":                             mountsV1,
		top + "/memory/memory.limit_in_bytes":              "9223372036854771712\n",
		top + "/memory/docker/1a/memory.limit_in_bytes":    "10485760\n",
		top + "/memory/docker/1a/memory.usage_in_bytes":    "9437184\n",
		top + "/memory/docker/1a/memory.stat":              "inactive_file 0\ntotal_inactive_file 2097152\ntotal_active_file 0\ntotal_dirty 1048576\n",
		top + "/memory/docker/1a/in/memory.limit_in_bytes": "9223372036854771712\n",
	}
	for name, c := range map[string]struct {
		files kerneltest.Files
		want  MemoryRoom
		left  unit.Bytes // −1: no limit
	}{
		"an ancestor's limit": {memoryTree(nil), MemoryRoom{"/a.slice", "memory.max", 10 * unit.MiB, 6 * unit.MiB, unit.MiB}, 5 * unit.MiB},
		"its own is tighter": {memoryTree(kerneltest.Files{top + "/a.slice/b/c/memory.max": "5242880\n"}),
			MemoryRoom{"/a.slice/b/c", "memory.max", 5 * unit.MiB, 4 * unit.MiB, 0}, unit.MiB},
		"memory.high": {memoryTree(kerneltest.Files{top + "/a.slice/b/memory.high": "7340032\n"}),
			MemoryRoom{"/a.slice/b", "memory.high", 7 * unit.MiB, 6 * unit.MiB, 0}, unit.MiB},
		"used up": {memoryTree(kerneltest.Files{top + "/a.slice/b/memory.high": "1" + mib}),
			MemoryRoom{"/a.slice/b", "memory.high", unit.MiB, 6 * unit.MiB, 0}, 0},
		"none":        {kerneltest.Files{"/proc/self/cgroup": "0::/\n", "/proc/self/mountinfo": mountV2}, MemoryRoom{}, -1},
		"no cgroups":  {kerneltest.Files{"/proc/self/mountinfo": mountV2}, MemoryRoom{}, -1},
		"not mounted": {kerneltest.Files{"/proc/self/cgroup": "0::/a\n", "/proc/self/mountinfo": "1 2 0:3 / / rw - ext4 /dev/vda rw\n"}, MemoryRoom{}, -1},
		"in a container": {kerneltest.Files{"/proc/self/cgroup": "0::/\n", "/proc/self/mountinfo": mountV2,
			top + "/memory.max": "10485760\n", top + "/memory.current": "1" + mib}, MemoryRoom{"/", "memory.max", 10 * unit.MiB, unit.MiB, 0}, 9 * unit.MiB},
		"outside of its namespace": {kerneltest.Files{"/proc/self/cgroup": "0::/../b\n", "/proc/self/mountinfo": mountV2,
			top + "/memory.max": "10485760\n", top + "/memory.current": "1" + mib}, MemoryRoom{"/", "memory.max", 10 * unit.MiB, unit.MiB, 0}, 9 * unit.MiB},
		"v1": {v1, MemoryRoom{"/docker/1a", "memory.limit_in_bytes", 10 * unit.MiB, 9 * unit.MiB, unit.MiB}, 2 * unit.MiB},
		"v1, a part of it mounted": {kerneltest.Files{
			"/proc/self/cgroup":                   "4:cpu,memory:/docker/1a\n",
			"/proc/self/mountinfo":                "35 31 0:32 /docker/1a /sys/fs/cgroup/memory ro - cgroup cgroup rw,cpu,memory\n",
			top + "/memory/memory.limit_in_bytes": "10485760\n",
			top + "/memory/memory.usage_in_bytes": "1" + mib,
		}, MemoryRoom{"/docker/1a", "memory.limit_in_bytes", 10 * unit.MiB, unit.MiB, 0}, 9 * unit.MiB},
	} {
		got, err := ReadMemoryRoom(kerneltest.Tree(t, c.files))
		r, ok := got.Get()
		if err != nil || ok != (c.left >= 0) || r != c.want || ok && r.Left() != c.left {
			t.Errorf("%s: %+v with %v left, %v; want %+v with %v", name, got, r.Left(), err, c.want, c.left)
		}
	}
	bad := memoryTree(kerneltest.Files{top + "/a.slice/b/memory.max": "much\n"})
	if got, err := ReadMemoryRoom(kerneltest.Tree(t, bad)); !errors.Is(err, unix.ErrMalformed) || got.Known() {
		t.Errorf("malformed: %+v, %v", got, err)
	}
}

func TestMemoryRoomSays(t *testing.T) {
	r := MemoryRoom{"/a", "memory.max", 10 * unit.MiB, 6 * unit.MiB, unit.MiB}
	if got, want := r.String(), "cgroup /a allows 5 MiB more (memory.max 10 MiB, 6 MiB used, of that 1 MiB of page cache that could go)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// The limits of this test's process, whatever they are, are read without an error.
func TestMemoryRoomLive(t *testing.T) {
	got, err := ReadMemoryRoom(unix.At("/"))
	if err != nil {
		t.Error(err)
	}
	t.Logf("%+v", got)
}
