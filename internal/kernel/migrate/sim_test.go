// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/kerneltest"
	"homenode/internal/kernel/pagecache"
	"homenode/internal/kernel/unix"
	"homenode/internal/migration"
	"homenode/internal/unit"
)

const base = 0x400000 // 2 MiB aligned

// frame is a page, small or huge, and how it behaves.
type frame struct {
	pfn    uint64
	node   int32
	pages  int   // small ones
	busy   int   // number of refusals
	errno  int32 // refuses always
	gone   bool  // is freed when it is about to be moved
	file   bool
	shared bool
	moves  int
}

// sim is a kernel with processes. It treats them as do_pages_move does.
type sim struct {
	mu     sync.Mutex
	spaces map[int]map[uint64]*frame // by process and small page
	areas  map[int][]simArea
	full   map[int]int // small pages that still fit on a node; absent: all
	abort  int         // pages of a call after which it gives up; 0: never
	whole  map[int]error
	calls  int
	most   int // pages of a call
	passed int
	now    time.Duration
	took   func(pages int) time.Duration
	naps   time.Duration
	frames uint64
	onCall func()
}

type simArea struct {
	start, end uint64
	path       string
	ino        uint64
	private    bool
	huge       bool // hugetlb of 2 MiB
}

func newSim() *sim {
	return &sim{spaces: map[int]map[uint64]*frame{}, areas: map[int][]simArea{}, full: map[int]int{}, whole: map[int]error{}, took: func(int) time.Duration { return 0 }}
}

func (s *sim) frame(node int32, pages int) *frame {
	s.frames += 512
	return &frame{pfn: s.frames, node: node, pages: pages}
}

// area adds a mapping of so many bytes at a free address of a process.
func (s *sim) area(pid int, size uint64, a simArea) uint64 {
	a.start = base
	if n := len(s.areas[pid]); n > 0 {
		a.start = s.areas[pid][n-1].end + hugePage
	}
	a.start = (a.start + hugePage - 1) &^ (hugePage - 1)
	a.end = a.start + size
	s.areas[pid] = append(s.areas[pid], a)
	if s.spaces[pid] == nil {
		s.spaces[pid] = map[uint64]*frame{}
	}
	return a.start
}

func (s *sim) put(pid int, addr uint64, f *frame) {
	for i := range f.pages {
		s.spaces[pid][addr+uint64(i)*smallPage] = f
	}
}

// fill gives a process small pages.
func (s *sim) fill(pid int, addr uint64, pages int, node int32) (all []*frame) {
	for i := range pages {
		f := s.frame(node, 1)
		s.put(pid, addr+uint64(i)*smallPage, f)
		all = append(all, f)
	}
	return all
}

func (s *sim) MovePages(pid int, addrs []uintptr, nodes, status []int32, _ int) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.whole[pid]; err != nil {
		return 0, err
	}
	if nodes != nil {
		s.calls++
		s.most = max(s.most, len(addrs))
		s.passed += len(addrs)
		s.now += s.took(len(addrs))
		if s.onCall != nil {
			s.onCall()
		}
	}
	for i, a := range addrs {
		if nodes != nil && s.abort > 0 && i >= s.abort {
			return len(addrs) - i, nil
		}
		to := int32(-1)
		if nodes != nil {
			to = nodes[i]
		}
		status[i] = s.one(pid, uint64(a), to)
	}
	return 0, nil
}

func (s *sim) one(pid int, addr uint64, to int32) int32 {
	f, ok := s.spaces[pid][addr]
	switch {
	case !ok:
		return -int32(sys.ENOENT)
	case to < 0 || f.node == to:
		return f.node
	case f.gone:
		for _, space := range s.spaces {
			for at, other := range space {
				if other == f {
					delete(space, at)
				}
			}
		}
		return -int32(sys.ENOENT)
	case f.errno != 0:
		return f.errno
	case f.busy > 0:
		f.busy--
		return -int32(sys.EBUSY)
	}
	if room, limited := s.full[int(to)]; limited {
		if room < f.pages {
			return -int32(sys.ENOMEM)
		}
		s.full[int(to)] -= f.pages
	}
	f.node = to
	f.moves++
	return to
}

// nodes shows which frame is where.
func (s *sim) nodes() *frameNodes {
	f := &frameNodes{shift: 9}
	for _, space := range s.spaces {
		for _, one := range space {
			f.put(int(one.pfn>>9), int16(one.node))
		}
	}
	return f
}

func (s *sim) on(node int32) (pages int) {
	seen := map[*frame]bool{}
	for _, space := range s.spaces {
		for _, f := range space {
			if !seen[f] && f.node == node {
				seen[f] = true
				pages += f.pages
			}
		}
	}
	return pages
}

// Clock and finder.

func (s *sim) Now() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}
func (*sim) Name() string     { return "simulated clock" }
func (*sim) How() unit.Source { return unit.HowModelled }

func (s *sim) sleep(_ context.Context, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now += d
	s.naps += d
}

// see is how much of it is visible.
type see struct{ pagemap, frames bool }

// mover writes the files that the kernel shows of the processes, and makes a mover for
// them.
func (s *sim) mover(t testing.TB, show see) *Mover {
	t.Helper()
	root := kerneltest.Tree(t, kerneltest.TwoNodes())
	s.write(t, root, show)
	m := newMover(root, Config{Pager: s, Clock: s})
	m.sleep = s.sleep
	return m
}

func (s *sim) write(t testing.TB, root unix.Root, show see) {
	t.Helper()
	flags := make([]byte, 8*(s.frames+512))
	for pid, areas := range s.areas {
		dir := fmt.Sprintf("/proc/%d/", pid)
		if pid == 0 {
			continue
		}
		var maps, numa strings.Builder
		pagemap := make([]byte, areas[len(areas)-1].end/smallPage*8)
		for _, a := range areas {
			s.show(pid, a, &maps, &numa, pagemap, flags, show)
		}
		files := kerneltest.Files{
			dir + "stat":      fmt.Sprintf("%d (x) S 1 1 1 0 -1 0 0 0 0 0 1 0 0 0 20 0 1 0 99 1 1 1 1 1 1 1 1 0 0 0 0 0 0 0 17 0 0\n", pid),
			dir + "maps":      maps.String(),
			dir + "numa_maps": numa.String(),
			dir + "mountinfo": "22 1 fe:0 / / rw - ext4 /dev/vda rw\n23 1 0:30 / /tmp rw - tmpfs tmpfs rw\n",
		}
		files[dir+"mountinfo"] = "22 1 254:0 / / rw - ext4 /dev/vda rw\n23 1 0:30 / /tmp rw - tmpfs tmpfs rw\n"
		if show.pagemap {
			files[dir+"pagemap"] = string(pagemap)
		}
		kerneltest.Write(t, root, files)
	}
	if show.frames {
		kerneltest.Write(t, root, kerneltest.Files{"/proc/kpageflags": string(flags)})
	}
}

func (s *sim) show(pid int, a simArea, maps, numa *strings.Builder, pagemap, flags []byte, show see) {
	access, dev := "rw-s", "00:1e"
	if a.private || a.ino == 0 {
		access = "rw-p"
	}
	if !strings.HasPrefix(a.path, "/tmp/") && a.ino != 0 {
		dev = "fe:00"
	}
	if a.ino == 0 {
		dev = "00:00"
	}
	fmt.Fprintf(maps, "%x-%x %s 0 %s %d %s\n", a.start, a.end, access, dev, a.ino, a.path)
	size, byNode, anon := uint64(smallPage), map[int32]int{}, 0
	if a.huge {
		size = hugePage
	}
	for at := a.start; at < a.end; at += smallPage {
		f := s.spaces[pid][at]
		if f == nil {
			continue
		}
		if at%size == 0 {
			byNode[f.node]++
			if !f.file {
				anon++
			}
		}
		binary.NativeEndian.PutUint64(pagemap[at/smallPage*8:], f.entry(show, at/smallPage%uint64(f.pages)))
		if f.pages == 512 {
			binary.NativeEndian.PutUint64(flags[8*f.pfn:], frameHead|frameTHP)
		}
	}
	fmt.Fprintf(numa, "%x default", a.start)
	if a.ino != 0 {
		fmt.Fprintf(numa, " file=%s", a.path)
	}
	if a.huge {
		numa.WriteString(" huge")
	}
	if len(byNode) == 0 { // as show_numa_map in fs/proc/task_mmu.c
		numa.WriteString("\n")
		return
	}
	if anon > 0 {
		fmt.Fprintf(numa, " anon=%d", anon)
	}
	for node, n := range byNode {
		fmt.Fprintf(numa, " N%d=%d", node, n)
	}
	fmt.Fprintf(numa, " kernelpagesize_kB=%d\n", size/1024)
}

func (f *frame) entry(show see, i uint64) uint64 {
	e := uint64(1) << 63
	if show.frames {
		e |= f.pfn + i
	}
	if f.file {
		e |= 1 << 61
	}
	if !f.shared {
		e |= 1 << 56
	}
	return e
}

// simFiles is a finder of files that are mapped at addresses of process 0.
type simFiles struct {
	s      *sim
	files  []pagecache.File
	pages  map[fileID]map[uint64]*frame // by offset
	found  int
	opened int
	shown  int // pages
}

func (f *simFiles) find(context.Context, []int, bool) ([]pagecache.File, []string, error) {
	f.found++
	return f.files, nil, nil
}

func (f *simFiles) open(c pagecache.File, from uint64, skip func(uint64) bool) (view, error) {
	f.opened++
	return &simView{f, f.pages[c.ID], from, skip}, nil
}

// simView shows 100 pages of a file at a time.
type simView struct {
	f     *simFiles
	pages map[uint64]*frame // by offset
	at    uint64
	skip  func(uint64) bool
}

func (v *simView) Position() uint64 { return v.at }

func (v *simView) Next(ctx context.Context) (pagecache.Part, error) {
	s := v.f.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return pagecache.Part{}, ctx.Err()
	}
	var offsets []uint64
	for off := range v.pages {
		if off >= v.at && (v.skip == nil || !v.skip(off)) {
			offsets = append(offsets, off)
		}
	}
	if s.spaces[0] = map[uint64]*frame{}; len(offsets) == 0 {
		return pagecache.Part{}, io.EOF
	}
	slices.Sort(offsets)
	w := pagecache.Part{Offsets: offsets[:min(100, len(offsets))]}
	for _, off := range w.Offsets {
		addr := base + off - w.Offsets[0]
		s.spaces[0][addr] = v.pages[off]
		w.Addrs = append(w.Addrs, uintptr(addr))
	}
	v.f.shown += len(w.Addrs)
	v.at = w.Offsets[len(w.Offsets)-1] + 1
	return w, nil
}

func (v *simView) Close() error {
	v.f.s.mu.Lock()
	defer v.f.s.mu.Unlock()
	v.f.s.spaces[0] = nil
	return nil
}

// counts are those of a result.
type counts struct{ moved, gone, failed unit.Bytes }

func countsOf(r migration.Result) (s counts) {
	s.moved, s.failed = r.Moved(), r.Failed()
	for _, k := range r.Kinds {
		s.gone += k.Gone
	}
	return s
}
