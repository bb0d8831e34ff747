// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/unix"
	"homenode/internal/set"
	"homenode/internal/unit"
)

func shmFile(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "homenode-test-")
	if err != nil {
		t.Skipf("no /dev/shm to write to: %v", err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "a")
}

func TestLiveSegmentFile(t *testing.T) {
	needNode0(t)
	name := shmFile(t)
	q := SegmentRequest{Segment: Segment{File: name, Create: 1000 * unit.KiB}, Policy: Bind, Nodes: set.FromNodes(0)}
	res, err := PlaceSegment(unix.NewLive(), q)
	if err != nil || !res.Created || res.Bytes != 1000*unit.KiB || res.Present.Or(9) != 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	if _, err = PlaceSegment(unix.NewLive(), q); err != nil {
		t.Errorf("again, the same size: %v", err)
	}
	q.Create, q.Touch, q.Strict, q.Move = 0, true, true, true
	if res, err = PlaceSegment(unix.NewLive(), q); err != nil || res.Present.Or(0) != 1000*unit.KiB || len(res.Elsewhere) != 0 {
		t.Errorf("%+v, %v", res, err)
	}
	q.Offset, q.Length, q.Touch = 8*unit.KiB, 16*unit.KiB, false
	if res, err = PlaceSegment(unix.NewLive(), q); err != nil || res.Bytes != 16*unit.KiB || res.Present.Or(0) != 16*unit.KiB {
		t.Errorf("a part: %+v, %v", res, err)
	}
	// Strict refuses pages that are not where they should be, and sets nothing.
	m, err := openSegment(q.Segment)
	if err != nil {
		t.Fatal(err)
	}
	defer m.unmap()
	q.Nodes, q.Move = set.FromNodes(7), false
	if err := place(unix.NewLive(), q, m, m.all, &res); !errors.Is(err, ErrElsewhere) || !strings.Contains(err.Error(), "250 on node 0 of 250: nothing was set: --move moves them") {
		t.Error(err)
	}
	// A file that is truncated while it is touched is an error, not a crash.
	if err := os.Truncate(name, 4096); err != nil {
		t.Fatal(err)
	}
	if err := touch(m.all, every(m.all, m.page)); err == nil || !strings.Contains(err.Error(), "offset 4 KiB") {
		t.Error(err)
	}
}

func TestLiveSegmentSysV(t *testing.T) {
	needNode0(t)
	const key = 0x686f6d65
	q := SegmentRequest{Segment: Segment{Key: unit.Some(key), Create: 100 * unit.KiB}, Policy: Interleave, Nodes: set.FromNodes(0), Touch: true, Strict: true}
	res, err := PlaceSegment(unix.NewLive(), q)
	if errors.Is(err, sys.ENOSYS) {
		t.Skipf("no System V shared memory: %v", err)
	}
	if err != nil || !res.Created || !strings.Contains(res.Name, "(key 0x686f6d65)") {
		t.Fatalf("%+v, %v", res, err)
	}
	id := res.ID.Or(-1)
	t.Cleanup(func() { _, _ = sys.SysvShmCtl(id, sys.IPC_RMID, nil) })
	if _, err := PlaceSegment(unix.NewLive(), q); err == nil || !strings.Contains(err.Error(), "it exists already, with ID") {
		t.Error(err)
	}
	q.Segment = Segment{ID: unit.Some(id)}
	if res, err = PlaceSegment(unix.NewLive(), q); err != nil || res.Present.Or(0) != 100*unit.KiB || res.Created {
		t.Errorf("%+v, %v", res, err)
	}
	if _, err := sys.SysvShmCtl(id, sys.IPC_RMID, nil); err != nil {
		t.Fatal(err)
	}
	if _, err = PlaceSegment(unix.NewLive(), q); err == nil || !strings.Contains(err.Error(), "'ipcs -m' lists them") {
		t.Error(err)
	}
	q.Segment = Segment{Key: unit.Some(key)}
	if _, err = PlaceSegment(unix.NewLive(), q); err == nil || !strings.Contains(err.Error(), "--create SIZE makes it") {
		t.Error(err)
	}
}

func TestLiveSegmentRefuses(t *testing.T) {
	needNode0(t)
	name := shmFile(t)
	if err := os.WriteFile(name, make([]byte, 10000), 0o600); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(filepath.Dir(name), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	on := SegmentRequest{Policy: Bind, Nodes: set.FromNodes(0)}
	for _, c := range []struct {
		s    Segment
		want string
	}{
		{Segment{File: "segment.go"}, "keeps no policy, only tmpfs and hugetlbfs do: place the program"},
		{Segment{File: "/proc/self/status"}, ""},
		{Segment{File: name + "none"}, "--create SIZE makes it"},
		{Segment{File: filepath.Dir(name)}, "is a directory"},
		{Segment{File: empty}, "it is empty"},
		{Segment{File: name, Create: unit.MiB}, "it exists already, with 12 KiB"},
		{Segment{File: name, Offset: 1}, "must be multiples of its page size, 4 KiB"},
		{Segment{File: name, Offset: 12 * unit.KiB}, "it has 12 KiB"},
		{Segment{File: name, Length: 16 * unit.KiB}, "it has 12 KiB"},
		{Segment{ID: unit.Some(1 << 30)}, "attach segment 1073741824: there is none"},
	} {
		q := on
		q.Segment = c.s
		if _, err := PlaceSegment(unix.NewLive(), q); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.s, err, c.want)
		}
	}
	q := on
	q.Segment, q.Touch = Segment{File: shmFile(t), Create: 16 * unit.TiB}, true
	if _, err := PlaceSegment(unix.NewLive(), q); err == nil || !strings.Contains(err.Error(), "are missing: node 0 has room for") {
		t.Error(err)
	}
	if _, err := os.Stat(q.File); err == nil {
		t.Error("a file that could not be placed was left")
	}
}

// A refused request leaves nothing behind, wherever it ends.
func TestLiveSegmentRefusedLeavesNothing(t *testing.T) {
	needNode0(t)
	const key = 0x686f6d66
	name := shmFile(t)
	onFile, onKey := Segment{File: name, Create: unit.MiB}, Segment{Key: unit.Some(key), Create: unit.MiB}
	refuse := func(s Segment, want string) {
		t.Helper()
		q := SegmentRequest{Segment: s, Policy: Bind, Nodes: set.FromNodes(0)}
		if _, err := PlaceSegment(unix.NewLive(), q); errors.Is(err, sys.ENOSYS) {
			t.Skipf("no System V shared memory: %v", err)
		} else if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: %v, want %q", s, err, want)
		}
		if _, err := os.Stat(name); err == nil {
			t.Errorf("%s: the file was left", want)
			os.Remove(name)
		}
		if id, err := sys.SysvShmGet(key, 0, 0); err == nil {
			t.Errorf("%s: the segment was left", want)
			_, _ = sys.SysvShmCtl(id, sys.IPC_RMID, nil)
		}
	}
	for _, s := range []Segment{onFile, onKey} {
		s.Offset = 2 * unit.MiB
		refuse(s, "--offset 2 MiB, --length 0 B: it has 1 MiB")
		s.Offset, s.Length = 4*unit.KiB, unit.MiB
		refuse(s, "--offset 4 KiB, --length 1 MiB: it has 1 MiB")
		s.Offset, s.Length = 100, 0
		refuse(s, "must be multiples of its page size")
	}
	refuse(Segment{File: filepath.Join(t.TempDir(), "a"), Create: unit.MiB, Offset: unit.MiB}, "")
	sysvAttach = func(int, uintptr, int) ([]byte, error) { return nil, sys.ENOMEM }
	defer func() { sysvAttach = sys.SysvShmAttach }()
	refuse(onKey, "attach segment")
}

// A bit each, against a list.
func TestDecisionPages(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for n := range 300 {
		p, want := noPages(make([]byte, n*4096+1), 4096), []int(nil)
		for i := range n + 1 {
			if random.IntN(3) == 0 {
				p.addPage(i)
				want = append(want, i*4096)
			}
		}
		if got := slices.Collect(p.offsets()); !slices.Equal(got, want) || p.count() != len(want) || p.bytes() != unit.Bytes(len(want)*4096) {
			t.Fatalf("%d pages: %v, want %v", n+1, got, want)
		}
		if all := every(make([]byte, n*4096+1), 4096); all.count() != n+1 || len(slices.Collect(all.offsets())) != n+1 {
			t.Fatalf("%d pages: every is %d", n+1, all.count())
		}
		for range p.offsets() { // it can be ended early
			break
		}
	}
}

// The memory for a TiB's pages, all of which exist.
func TestPagesAreSmall(t *testing.T) {
	p := pages{size: 4096, of: int(unit.TiB / 4096)}
	p.addPage(p.of - 1)
	if kept := unit.Bytes(8 * len(p.in)); kept > 32*unit.MiB {
		t.Errorf("%v for a TiB", kept)
	}
	if p = every(nil, 4096); p.in != nil {
		t.Error("all pages are listed")
	}
}
