// SPDX-License-Identifier: Apache-2.0

package pagecache

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/kerneltest"
	"homenode/internal/kernel/unix"
	"homenode/internal/migration"
)

// hugeMemfd is as long as a file can be: any user can make one with two calls.
func hugeMemfd(t *testing.T) *os.File {
	t.Helper()
	fd, err := sys.MemfdCreate("longest", sys.MFD_CLOEXEC)
	if err != nil {
		t.Skip(err)
	}
	f := os.NewFile(uintptr(fd), "longest")
	t.Cleanup(func() { f.Close() })
	for _, at := range []int64{0, 1 << 62} {
		if _, err := f.WriteAt([]byte{1}, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Truncate(math.MaxInt64); err != nil {
		t.Fatal(err)
	}
	return f
}

// The longest possible file is gone through once, and not for ever.
func TestLongestFile(t *testing.T) {
	f := hugeMemfd(t)
	for _, old := range []bool{false, true} {
		v, err := Open(here(t, f))
		if err != nil {
			t.Fatal(err)
		}
		v.stat = v.stat && !old
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		for range 10 {
			v.part, err = v.Next(ctx)
			if err != nil {
				break
			}
			if !slices.Equal(v.part.Offsets, []uint64{0}) && !slices.Equal(v.part.Offsets, []uint64{1 << 62}) {
				t.Errorf("pages at %v", v.part.Offsets)
			}
		}
		if err != io.EOF {
			t.Errorf("old kernel %v: %v", old, err)
		}
		cancel()
		v.Close()
	}
}

// Without cachestat, a file that is all hole is left, with a sentence.
func TestHoleOfOldKernels(t *testing.T) {
	f := filled(t, t.TempDir(), 4096)
	if err := f.Truncate(1 << 40); err != nil {
		t.Skip(err)
	}
	file := here(t, f)
	if file.Kind != migration.File {
		t.Skipf("%s is %s", f.Name(), file.Kind)
	}
	v, err := Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	v.stat = false
	if _, err := rest(v); !errors.Is(err, unix.ErrNotSupported) || !strings.Contains(err.Error(), "it is 1 TiB long, of which 4 KiB are on its disk") {
		t.Error(err)
	}
}

// A file system that no process has mounted gets no request: its server may never answer.
func TestUnseenFilesystems(t *testing.T) {
	fs := newFilesystems(unix.NewLive().Root())
	var buf unix.Buffer
	fs.learn(&buf, os.Getpid())
	for id := range fs.mounts {
		fs.mounts[id] = nature{kind: migration.File} // as of btrfs
		break
	}
	var mount uint64
	for id, n := range fs.mounts {
		if n == (nature{kind: migration.File}) {
			mount = id
		}
	}
	const nobodys = 1 << 19
	for _, c := range []struct {
		name         string
		major, minor uint32
		mount        uint64
		want         nature
	}{
		{"/lib/x", 0, nobodys, 1 << 40, nature{migration.File, true}},
		{"/memfd:x", 0, nobodys, 1 << 40, nature{migration.File, true}}, // a name that a FUSE can have, too
		{"/lib/x", 0, nobodys, mount, nature{kind: migration.File}},
		{"/lib/x", 4000, 1, 1 << 40, nature{kind: migration.File}},
		{"net:[4026531840]", 0, nobodys, 1 << 40, nature{}},
		{"/dmabuf:x", 0, nobodys, 1 << 40, nature{}},
	} {
		st := sys.Statx_t{Mask: sys.STATX_MNT_ID, Dev_major: c.major, Dev_minor: c.minor, Mnt_id: c.mount}
		if got := fs.of(st, c.name); got != c.want {
			t.Errorf("%s on %d:%d: %+v, want %+v", c.name, c.major, c.minor, got, c.want)
		}
	}
	memfd := called(t, find(t, Config{}, holder(t, "memfd")), "memfd-of-test")
	if memfd.served || memfd.Kind != migration.Shmem {
		t.Errorf("%+v", memfd)
	}
}

// The search leaves no trace, whichever way leads to the file.
func TestNoAtime(t *testing.T) {
	f := filled(t, t.TempDir(), 4096)
	file := here(t, f)
	for _, ways := range [][]way{file.ways, {{root: "/", path: f.Name()}}} {
		file.ways = ways
		v, err := Open(file)
		if err != nil {
			t.Fatal(err)
		}
		if flags, err := sys.FcntlInt(v.f.Fd(), sys.F_GETFL, 0); err != nil || flags&sys.O_NOATIME == 0 {
			t.Errorf("%+v: flags %o, %v", ways, flags, err)
		}
		v.Close()
	}
}

// Other processes whose maps do not answer cost a search their limit, once, and it says so.
func TestMapsOfOthersHang(t *testing.T) {
	kerneltest.InMemory(t)
	root := kerneltest.Tree(t, kerneltest.Files{
		"/proc/10/maps": "", "/proc/11/maps": "1000-2000 r--s 00000000 00:05 77 /x\n", "/proc/12/maps": "1000-2000 r--s 00000000 00:05 78 /y\n",
	})
	all := stuck
	stuck = &unix.Patience{} // its channels are the bubble's
	defer func() { unix.Interfere, stuck = nil, all }()
	synctest.Test(t, func(t *testing.T) {
		let := make(chan bool)
		unix.Interfere = func(path string) {
			if strings.HasSuffix(path, "/11/maps") {
				<-let
			}
		}
		for search := range 3 {
			f := newFinder(root)
			known := &File{ID: ID{Dev: 5, Ino: 78}}
			f.files, f.by = []*File{known}, map[ID]*File{known.ID: known}
			began := time.Now()
			err := f.outside([]int{10})
			if took := time.Since(began); err != nil || took != mapsLimit*time.Duration(1-min(search, 1)) {
				t.Errorf("search %d: %v after %v", search, err, took)
			}
			if notes := f.notes.All(); len(notes) != 1 || !strings.Contains(notes[0], "no answer") {
				t.Errorf("search %d: %q", search, notes)
			}
			if !known.Outside {
				t.Errorf("search %d: process 12 was not searched", search)
			}
		}
		close(let)
		synctest.Wait()
	})
}
