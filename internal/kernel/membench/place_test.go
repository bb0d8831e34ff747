// SPDX-License-Identifier: Apache-2.0

package membench

import (
	"errors"
	"strings"
	"testing"
	"time"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/kerneltest"
	"homenode/internal/kernel/unix"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// fakeMachine has two nodes, each with 256 MiB free and 16 MiB below the watermark.
func fakeMachine(t *testing.T, more kerneltest.Files) *Prober {
	t.Helper()
	files := kerneltest.TwoNodes().With(kerneltest.Files{
		"/sys/devices/system/node/has_memory": "0-1\n",
		"/proc/zoneinfo":                      "Node 0, zone Normal\n        low      4096\nNode 1, zone Normal\n        low      4096\n",
	}).With(more)
	return &Prober{root: kerneltest.Tree(t, files), clock: Monotonic()}
}

// The room is what is free above the low watermark, less the spare.
func TestDecisionRoom(t *testing.T) {
	p := fakeMachine(t, nil)
	if free, err := p.Free(1); err != nil || free != 240*unit.MiB {
		t.Errorf("node 1 has %v free, %v", free, err)
	}
	one, both := set.FromNodes(1), set.FromNodes(0, 1)
	for _, c := range []struct {
		b    Buffer
		says string // "" = fits
	}{
		{Buffer{Bytes: 220 * unit.MiB, Nodes: one}, ""},
		{Buffer{Bytes: 256 * unit.MiB, Nodes: one}, "needs 273 MiB on node 1 (256 MiB and 17 MiB to spare), 240 MiB are free: 33 MiB short"},
		{Buffer{Bytes: 256 * unit.MiB, Nodes: both}, ""},
		{Buffer{Bytes: 512 * unit.MiB, Nodes: both}, "on nodes 0-1 together"},
		{Buffer{Bytes: 400 * unit.MiB, Nodes: both, Policy: Interleave}, ""},
		{Buffer{Bytes: 460 * unit.MiB, Nodes: both, Policy: Interleave}, "on node 0 "},
		{Buffer{Bytes: 400 * unit.MiB, Nodes: one, Policy: Preferred}, ""},
		{Buffer{Bytes: 512 * unit.MiB, Policy: Local}, "on nodes 0-1 together"},
	} {
		err := p.room(c.b)
		if (err == nil) != (c.says == "") || err != nil && (!errors.Is(err, ErrNoRoom) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%v by %s on %s: %v, want %q", c.b.Bytes, c.b.policy(), c.b.Nodes, err, c.says)
		}
	}
}

// A cgroup's limit counts too, although the nodes have room.
func TestDecisionRoomOfCgroup(t *testing.T) {
	const top = "/sys/fs/cgroup"
	p := fakeMachine(t, kerneltest.Files{
		"/proc/self/cgroup":    "0::/a/b\n",
		"/proc/self/mountinfo": "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
		top + "/a/memory.max":  "104857600\n", top + "/a/memory.current": "41943040\n", top + "/a/b/memory.max": "max\n",
	})
	if free, err := p.Free(1); err != nil || free != 60*unit.MiB {
		t.Errorf("node 1 has %v free, %v, want what the cgroup allows", free, err)
	}
	if err := p.room(Buffer{Bytes: 40 * unit.MiB, Nodes: set.FromNodes(1)}); err != nil {
		t.Error(err)
	}
	want := "needs 80.2 MiB (64 MiB and 16.2 MiB to spare), cgroup /a allows 60 MiB more (memory.max 100 MiB, 40 MiB used"
	err := p.room(Buffer{Bytes: 64 * unit.MiB, Nodes: set.FromNodes(1)})
	if !errors.Is(err, ErrNoRoom) || !strings.Contains(err.Error(), want) || !strings.HasSuffix(err.Error(), "20.2 MiB short") {
		t.Errorf("%v, want %q", err, want)
	}
}

// Kept buffers make way for a new one, those in use do not.
func TestDecisionKeptMakeWay(t *testing.T) {
	p := fakeMachine(t, nil)
	for _, busy := range []bool{true, false} {
		r, err := mapRegion(Buffer{Bytes: 4096})
		if err != nil {
			t.Fatal(err)
		}
		r.busy = busy
		p.cache.kept = append(p.cache.kept, r)
	}
	if err := p.room(Buffer{Bytes: unit.TiB, Nodes: set.FromNodes(1)}); !errors.Is(err, ErrNoRoom) {
		t.Error(err)
	}
	if len(p.cache.kept) != 1 || !p.cache.kept[0].busy {
		t.Errorf("%d buffers are kept, want the one in use", len(p.cache.kept))
	}
	p.cache.release(p.cache.kept)
	if len(p.cache.kept) != 0 {
		t.Error("a limit of 0 is not enforced")
	}
}

// fakePager says where pages are.
type fakePager struct {
	node func(i int) int32
	err  error
}

func (f fakePager) MovePages(_ int, addrs []uintptr, _, status []int32, _ int) (int, error) {
	for i := range addrs {
		status[i] = f.node(i)
	}
	return 0, f.err
}

func TestVerify(t *testing.T) {
	p := fakeMachine(t, nil)
	r, err := mapRegion(Buffer{Bytes: 40 * 4096})
	if err != nil {
		t.Fatal(err)
	}
	defer r.unmap()
	b := Buffer{Bytes: 40 * 4096, Nodes: set.FromNodes(1)}
	p.pager = fakePager{node: func(int) int32 { return 1 }}
	if err := p.verify(r, b); err != nil {
		t.Error(err)
	}
	p.pager = fakePager{node: func(i int) int32 { return []int32{1, 1, 0, -int32(sys.ENOENT)}[i%4] }}
	want := "of 40 pages looked at 10 are nowhere (ENOENT), 10 are on node 0, 20 are on node 1"
	if err := p.verify(r, b); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
	b.Policy = Preferred
	if err := p.verify(r, b); err != nil {
		t.Errorf("preferred promises nothing: %v", err)
	}
	b.Policy = Interleave
	p.pager = fakePager{node: func(int) int32 { return 1 }, err: sys.EPERM}
	if err := p.verify(r, b); !errors.Is(err, unix.ErrNotPermitted) || !strings.Contains(err.Error(), "CAP_SYS_NICE") {
		t.Error(err)
	}
}

// The results of the pages that were to be moved, batch by batch.
func TestMoveCounts(t *testing.T) {
	p := fakeMachine(t, nil)
	r, err := mapRegion(Buffer{Bytes: 1000 * 4096})
	if err != nil {
		t.Fatal(err)
	}
	defer r.unmap()
	p.pager = fakePager{node: func(i int) int32 { return []int32{1, 1, 1, -int32(sys.EBUSY)}[i%4] }}
	var got Moved
	if err := p.move(t.Context(), Move{From: 0, To: 1}, r.mem, &got); err != nil || got.Pages != 750 || got.Failed != 250 {
		t.Errorf("%+v, %v", got, err)
	}
	for cause, says := range map[error]string{sys.EPERM: "CAP_SYS_NICE", sys.EACCES: "Mems_allowed_list"} {
		p.pager = fakePager{node: func(int) int32 { return 1 }, err: cause}
		if err := p.move(t.Context(), Move{To: 1}, r.mem, &got); !errors.Is(err, cause) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want it to say %s", err, says)
		}
	}
}

// The kernel reports what was requested.
func TestHugePages(t *testing.T) {
	p := prober(t)
	m := Move{Bytes: 4 * unit.MiB, Huge: true}
	for _, huge := range []bool{true, false} {
		r, err := p.region(t.Context(), Buffer{Bytes: m.Bytes, Nodes: node0, Huge: huge}, key{huge: huge})
		if err != nil && huge {
			t.Skipf("no huge pages here: %v", err)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := p.huge(r, m); (err == nil) != huge {
			if huge && errors.Is(err, ErrNoRoom) {
				t.Skipf("no huge pages are free here: %v", err)
			}
			t.Errorf("asked for: %v; %v", huge, err)
		}
	}
}

func TestDecodeConditions(t *testing.T) {
	const cpu = "/sys/devices/system/cpu/"
	p := fakeMachine(t, kerneltest.Files{
		"/proc/cpuinfo": "processor\t: 0\nmodel name\t: Xeon\nflags\t\t: fpu hypervisor\n",
		"/proc/stat":    "cpu 100 0 0 5 5 0 0 23\n", "/proc/sys/kernel/numa_balancing": "1\n",
		"/sys/class/dmi/id/sys_vendor": "QEMU\n", "/sys/class/dmi/id/product_name": "Standard PC\n",
		"/sys/kernel/mm/transparent_hugepage/enabled":     "always madvise [never]\n",
		cpu + "cpu0/cpufreq/scaling_governor":             "powersave\n",
		cpu + "cpu0/thermal_throttle/core_throttle_count": "2\n", cpu + "cpu1/thermal_throttle/package_throttle_count": "3\n",
	})
	want := Conditions{CPUModel: "Xeon", Hypervisor: "QEMU Standard PC", Busy: unit.Some(1230 * time.Millisecond), Throttled: unit.Some(uint64(5)),
		Governor: "powersave", Balancing: unit.Some(true), HugeAllowed: unit.Some(false)}
	if got, err := p.Conditions(); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	bare := &Prober{root: unix.At(t.TempDir())}
	if got, err := bare.Conditions(); err != nil || got != (Conditions{}) {
		t.Errorf("nothing to read: %+v, %v", got, err)
	}
	kerneltest.Write(t, p.root, kerneltest.Files{"/proc/stat": "cpu x\n"})
	if got, err := p.Conditions(); !errors.Is(err, unix.ErrMalformed) || got.Busy.Known() {
		t.Errorf("malformed: %+v, %v", got, err)
	}
}
