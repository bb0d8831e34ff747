// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/pagecache"
	"homenode/internal/kernel/unix"
	"homenode/internal/migration"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// liveRun is a run on this machine that treats every page as elsewhere.
func liveRun(t *testing.T, pid int) *run {
	t.Helper()
	m, err := NewMover(unix.NewLive(), Config{Shared: true})
	if err != nil {
		t.Fatal(err)
	}
	r := newRun(context.Background(), m, Request{PIDs: []int{pid}, To: set.FromNodes(9), Budget: NoBudget, Cache: true})
	t.Cleanup(r.close)
	return r
}

// TestLiveCache finds the cached pages of a file that no process maps, and moves them to
// the node where they are.
func TestLiveCache(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(path, make([]byte, unit.MiB), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := liveRun(t, os.Getpid())
	if err := r.list(); err != nil {
		t.Skipf("no files: %v", err)
	}
	for _, c := range r.j.files {
		if c.Name == path {
			liveFile(t, r, c)
			return
		}
	}
	t.Skipf("%s is not among the %d files: its file system has no page cache", path, len(r.j.files))
}

func liveFile(t *testing.T, r *run, c pagecache.File) {
	v, err := r.m.finder.open(c, 0, nil)
	if err != nil {
		t.Skip(err)
	}
	s := &file{r: r, f: c, v: v}
	defer s.close()
	f, err := s.scan(mostPages)
	if err != nil || bytesOf(f.pages) != unit.MiB || f.pages[0].kind == migration.File {
		t.Fatalf("%d pages, %v", len(f.pages), err)
	}
	r.aimAt(set.NodeSet{}, set.FromNodes(0))
	o := (&worker{r: r}).move(&batch{class: f.pages[0].class(), pages: f.pages})
	if o.err != nil || len(o.tally.moved) != 1 || o.tally.moved[0].bytes != unit.MiB {
		t.Errorf("%+v", o.tally)
	}
	if f, err := s.scan(mostPages); err != nil || f.more {
		t.Errorf("after its end: %+v, %v", f, err)
	}
}

// TestLiveSparse has 1 TiB of addresses with two pages in them.
func TestLiveSparse(t *testing.T) {
	const size = 1 << 40
	mem, err := sys.Mmap(-1, 0, size, sys.PROT_READ|sys.PROT_WRITE, sys.MAP_PRIVATE|sys.MAP_ANON|sys.MAP_NORESERVE)
	if err != nil {
		t.Skipf("map 1 TiB: %v", err)
	}
	defer func() { _ = sys.Munmap(mem) }()
	_ = sys.Madvise(mem, sys.MADV_NOHUGEPAGE)
	mem[1<<30], mem[1<<39] = 1, 1
	r := liveRun(t, os.Getpid())
	s, err := r.newProcess(os.Getpid())
	if err != nil || s.present == nil {
		t.Skipf("no pagemap: %v", err)
	}
	defer s.close()
	var a *area
	for i, one := range s.p.areas {
		if one.end-one.start >= size {
			s.p.areas, s.p.at, a = s.p.areas[:i+1], i, one
		}
	}
	if a == nil {
		t.Fatal("numa_maps has no such mapping")
	}
	began := time.Now()
	pages := 0
	for more := true; more; {
		f, err := s.scan(mostPages)
		if err != nil {
			t.Fatal(err)
		}
		pages, more = pages+len(f.pages), f.more
	}
	if took := time.Since(began); pages < 2 || took > 30*time.Second {
		t.Errorf("%d pages in %v", pages, took)
	} else {
		t.Logf("%d pages in %v", pages, took)
	}
}
