// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/pagecache"
	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
	"homenode/internal/migration"
	"homenode/internal/set"
	"homenode/internal/unit"
)

const censusHolds = "HOMENODE_TEST_CENSUS"

// The test's binary is also the process that is counted. Its environment says what to
// map. It reports the addresses, and waits for its end.
func init() {
	what := os.Getenv(censusHolds)
	if what == "" {
		return
	}
	for word := range strings.FieldsSeq(what) {
		if err := censusHold(word); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
	}
	io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// censusHold maps "anon:BYTES", "thp:BYTES", "fork:BYTES", "sparse:BYTES", "pool:BYTES",
// or part of the file inherited as descriptor 3: "shared:BYTES", "private:BYTES". With
// "churn:BYTES" it also maps and unmaps beside that all the time.
func censusHold(word string) error {
	how, text, _ := strings.Cut(word, ":")
	var size int
	if _, err := fmt.Sscan(text, &size); err != nil {
		return err
	}
	fd, flags, length := -1, sys.MAP_PRIVATE|sys.MAP_ANON|sys.MAP_NORESERVE, size
	switch how {
	case "thp":
		length += hugeChunk
	case "pool":
		flags |= sys.MAP_HUGETLB
	case "shared":
		fd, flags = 3, sys.MAP_SHARED
	case "private":
		fd, flags = 3, sys.MAP_PRIVATE
	}
	mem, err := sys.Mmap(fd, 0, length, sys.PROT_READ|sys.PROT_WRITE, flags)
	if err != nil {
		return err
	}
	advice := sys.MADV_NOHUGEPAGE
	if how == "thp" {
		mem, advice = mem[hugeChunk-int(at(mem)%hugeChunk):][:size], sys.MADV_HUGEPAGE
	}
	if how == "churn" { // the mapping beside it has no advice either, so the two merge
		advice = sys.MADV_NORMAL
	}
	if err := sys.Madvise(mem, advice); err != nil && fd < 0 && how != "pool" {
		return err
	}
	switch how {
	case "sparse":
		mem[0], mem[size/2], mem[size-1] = 1, 1, 1
	case "shared":
		readPages(mem)
	case "private": // reads the first half, writes the rest
		readPages(mem[:size/2])
		writePages(mem[size/2:])
	default:
		writePages(mem)
	}
	if how == "churn" {
		defer churn(mem)
	}
	child := uintptr(0)
	if how == "fork" {
		if child, err = forked(); err != nil {
			return err
		}
	}
	fmt.Println(at(mem), child)
	return nil
}

// forked is a process that has all memory of this one, and waits.
func forked() (uintptr, error) {
	pid, _, errno := sys.RawSyscall6(sys.SYS_CLONE, uintptr(sys.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	if pid == 0 {
		sys.RawSyscall(sys.SYS_PRCTL, sys.PR_SET_PDEATHSIG, uintptr(sys.SIGKILL), 0)
		for {
			sys.RawSyscall6(sys.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
		}
	}
	return pid, nil
}

func at(mem []byte) uint64 { return uint64(uintptr(unsafe.Pointer(&mem[0]))) }

func writePages(mem []byte) {
	for i := 0; i < len(mem); i += 4096 {
		mem[i] = 1
	}
}

var readSum byte

func readPages(mem []byte) {
	for i := 0; i < len(mem); i += 4096 {
		readSum += mem[i]
	}
}

// held is a process that was started to be counted.
type held struct {
	pid, child int
	addrs      []uint64
}

func holds(t testing.TB, file *os.File, words ...string) held {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "GODEBUG=asyncpreemptoff=1", censusHolds+"="+strings.Join(words, " "))
	if file != nil {
		cmd.ExtraFiles = []*os.File{file}
	}
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); cmd.Process.Kill(); cmd.Wait() })
	h := held{pid: cmd.Process.Pid}
	for r := bufio.NewReader(out); len(h.addrs) < len(words); {
		line, err := r.ReadString('\n')
		var addr uint64
		if _, err2 := fmt.Sscan(line, &addr, &h.child); err != nil || err2 != nil {
			t.Fatalf("%v: %q, %v, %v", words, line, err, err2)
		}
		h.addrs = append(h.addrs, addr)
	}
	return h
}

// liveCounter is a counter that has found the files of processes. Without the system
// calls that it needs the test is skipped.
func liveCounter(t testing.TB, req CensusRequest) *counter {
	t.Helper()
	c := newCounter(unix.NewLive().Root(), unix.LivePager{})
	if _, err := os.Stat("/proc/self/numa_maps"); err != nil {
		t.Skip(err)
	}
	f, err := openFrames(c.root)
	if err != nil || !c.seesFrames() {
		t.Skipf("frames are hidden: %v", err)
	}
	t.Cleanup(f.close)
	c.frames = f
	if err := c.find(req); err != nil {
		t.Fatal(err)
	}
	return c
}

// countOnly counts the mappings of a process that begin at, or have, one of the
// addresses.
func countOnly(t testing.TB, c *counter, pid int, addrs ...uint64) {
	t.Helper()
	areas, err := c.areas(pid)
	if err != nil {
		t.Fatal(err)
	}
	p, err := openPagemap(c.root, pid)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	huge, err := c.hugeByStart(pid)
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range areas {
		if !slices.ContainsFunc(addrs, func(at uint64) bool { return a.Start <= at && at < a.End }) {
			continue
		}
		if err := c.area(context.Background(), p, pid, &areas[i], huge); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.answer(pid); err != nil {
		t.Fatal(err)
	}
}

// kindSums is the count as text: "anon 32 MiB, thp 2 MiB".
func kindSums(c migration.Census) string {
	var all []string
	for _, r := range c.Rows {
		all = append(all, fmt.Sprintf("%s %v", r.Kind, r.Total()))
	}
	return strings.Join(all, ", ")
}

func wantSums(t *testing.T, c *counter, req CensusRequest, want string) {
	t.Helper()
	if got := kindSums(c.finish(req)); got != want {
		t.Errorf("%s: want %s", got, want)
	}
}

func TestCensusOfPrivateMemory(t *testing.T) {
	h := holds(t, nil, "anon:33554432")
	c := liveCounter(t, CensusRequest{})
	countOnly(t, c, h.pid, h.addrs...)
	wantSums(t, c, CensusRequest{}, "anon 32 MiB")
	c = liveCounter(t, CensusRequest{})
	c.noScan = true
	countOnly(t, c, h.pid, h.addrs...)
	wantSums(t, c, CensusRequest{}, "anon 32 MiB")
}

// Huge pages, as many as the kernel reports: seen by their frames, and estimated without.
func TestCensusOfHugePages(t *testing.T) {
	h := holds(t, nil, "thp:16777216")
	for _, hidden := range []bool{false, true} {
		c := liveCounter(t, CensusRequest{})
		areas, err := procfs.ReadSmaps(&c.buf, fmt.Sprintf("/proc/%d/smaps", h.pid), procfs.MapsBudget())
		if err != nil {
			t.Fatal(err)
		}
		var thp unit.Bytes
		for _, a := range areas {
			if a.Start < h.addrs[0]+16<<20 && a.End > h.addrs[0] {
				thp += a.AnonHuge
			}
		}
		if thp == 0 {
			t.Skip("no huge pages")
		}
		if hidden {
			c.frames = nil
		}
		countOnly(t, c, h.pid, h.addrs...)
		res := c.finish(CensusRequest{})
		row, _ := res.Of(migration.THP)
		if row.Total() != thp || res.Total() != 16*unit.MiB {
			t.Errorf("hidden %v: %s, want %v of huge pages", hidden, kindSums(res), thp)
		}
		if hidden != strings.Contains(strings.Join(res.Problems, "\n"), "estimated") {
			t.Errorf("hidden %v: problems %q", hidden, res.Problems)
		}
	}
}

func TestCensusOfForkedMemory(t *testing.T) {
	h := holds(t, nil, "fork:8388608")
	t.Cleanup(func() { sys.Kill(h.child, sys.SIGKILL) })
	c := liveCounter(t, CensusRequest{})
	countOnly(t, c, h.pid, h.addrs...)
	countOnly(t, c, h.child, h.addrs...)
	wantSums(t, c, CensusRequest{}, "anon 8 MiB")
}

func TestCensusOfSharedMemory(t *testing.T) {
	f := memfd(t, 8<<20)
	a, b := holds(t, f, "shared:8388608"), holds(t, f, "shared:4194304")
	req := CensusRequest{PIDs: []int{a.pid, b.pid}, Outside: true}
	c := liveCounter(t, req)
	countOnly(t, c, b.pid, b.addrs...)
	if file := c.files[idOf(t, f)]; file.bytes != 4*unit.MiB {
		t.Errorf("of one of them: %+v", file.bytes)
	}
	countOnly(t, c, a.pid, a.addrs...)
	wantSums(t, c, req, "shmem 8 MiB")
	if file := c.files[idOf(t, f)]; file.bytes != 8*unit.MiB || file.Outside {
		t.Errorf("%+v", file)
	}
	one := CensusRequest{PIDs: []int{b.pid}, Cache: true, Outside: true}
	c = liveCounter(t, one)
	countOnly(t, c, b.pid, b.addrs...)
	file := c.files[idOf(t, f)]
	if err := c.cachedPages(context.Background(), file); err != nil {
		t.Fatal(err)
	}
	res := c.finish(one)
	if got := kindSums(res); got != "shmem 4 MiB, cache 4 MiB" || res.Foreign.Or(0) != 8*unit.MiB || res.Files != 1 || kindSums(res.Own()) != "" {
		t.Errorf("%s, %+v", got, res)
	}
}

func memfd(t *testing.T, size int) *os.File {
	t.Helper()
	fd, err := sys.MemfdCreate("homenode-census", sys.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "memfd")
	t.Cleanup(func() { f.Close() })
	if _, err := f.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	return f
}

func idOf(t *testing.T, f *os.File) pagecache.ID {
	t.Helper()
	var st sys.Stat_t
	if err := sys.Fstat(int(f.Fd()), &st); err != nil {
		t.Fatal(err)
	}
	return pagecache.ID{Dev: st.Dev, Ino: st.Ino}
}

// Of 16 MiB a quarter is mapped and read, a quarter mapped and written to (which makes it
// private), and the rest only cached.
func TestCensusOfFile(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(make([]byte, 16<<20)); err != nil {
		t.Fatal(err)
	}
	h := holds(t, f, "private:8388608")
	req := CensusRequest{PIDs: []int{h.pid}, Cache: true}
	c := liveCounter(t, req)
	countOnly(t, c, h.pid, h.addrs...)
	file := c.files[idOf(t, f)]
	if err := c.cachedPages(context.Background(), file); err != nil {
		t.Fatal(err)
	}
	// Faults map neighbours that are cached too: up to 64 KiB behind what was read.
	res := c.finish(req)
	mapped, _ := res.Of(migration.File)
	cache, _ := res.Of(migration.Cache)
	anon, _ := res.Of(migration.Anon)
	if over := mapped.Total() - 4*unit.MiB; over < 0 || over > 64*unit.KiB || anon.Total() != 4*unit.MiB || mapped.Total()+cache.Total() != 16*unit.MiB ||
		res.Foreign.Known() || res.Files != 1 {
		t.Errorf("%s, %+v", kindSums(res), res)
	}
}

// Needs a pool of two free huge pages of 2 MiB.
func TestCensusOfPool(t *testing.T) {
	data, _ := os.ReadFile("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages")
	if n := strings.TrimSpace(string(data)); n == "" || n == "0" || n == "1" {
		t.Skipf("%q free huge pages", n)
	}
	h := holds(t, nil, "pool:4194304")
	for _, noScan := range []bool{false, true} {
		c := liveCounter(t, CensusRequest{})
		c.noScan = noScan
		countOnly(t, c, h.pid, h.addrs...)
		wantSums(t, c, CensusRequest{}, "hugetlb 4 MiB")
	}
}

func TestCensusOfSparseMapping(t *testing.T) {
	h := holds(t, nil, "sparse:1099511627776")
	c := liveCounter(t, CensusRequest{})
	before := bytesRead(t)
	countOnly(t, c, h.pid, h.addrs...)
	read := bytesRead(t) - before
	wantSums(t, c, CensusRequest{}, "anon 12 KiB")
	if t.Logf("%v", read); !c.noScan && read > 16*unit.MiB {
		t.Errorf("%v were read of a TiB with three pages: all of its pagemap is 2 GiB", read)
	}
}

// bytesRead is the number of bytes that this process has read so far.
func bytesRead(t *testing.T) (n unit.Bytes) {
	t.Helper()
	data, err := os.ReadFile("/proc/self/io")
	if err == nil {
		_, err = fmt.Sscanf(string(data), "rchar: %d", &n)
	}
	if err != nil {
		t.Skip(err)
	}
	return n
}

// waitAsleep waits until sleep(1) has started: from then on its memory stays the same.
func waitAsleep(t *testing.T, pid int) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if strings.Contains(string(stat), "(sleep) S ") {
			return
		}
		if err != nil || time.Since(began) > 30*time.Second {
			t.Fatalf("no sleep: %s, %v", stat, err)
		}
	}
}

// settled is what numa_maps has of a process once that no longer changes.
func settled(t *testing.T, pid int) (sum unit.Bytes) {
	t.Helper()
	for range 50 {
		was := sum
		var buf unix.Buffer
		vmas, err := procfs.ReadNumaMaps(&buf, fmt.Sprintf("/proc/%d/numa_maps", pid), procfs.MapsBudget())
		if errors.Is(err, os.ErrNotExist) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		sum = 0
		for _, v := range vmas {
			sum += unit.Bytes(v.Pages() * v.PageSize)
		}
		if sum == was {
			return sum
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("process %d changes all the time", pid)
	return 0
}

// comesTo checks that a census has what numa_maps has, less the pages that two segments
// of a program share, one at each border: those count once.
func comesTo(got, want unit.Bytes) bool { return got <= want && got >= want-4*4096 }

// The census of a whole process equals what numa_maps has of it.
func TestCensusOfProcess(t *testing.T) {
	sleep := exec.Command("sleep", "600")
	if err := sleep.Start(); err != nil {
		t.Skip(err)
	}
	defer func() { sleep.Process.Kill(); sleep.Wait() }()
	pid := sleep.Process.Pid
	waitAsleep(t, pid)
	want := settled(t, pid)
	for _, noScan := range []bool{false, true} {
		c := newCounter(unix.NewLive().Root(), unix.LivePager{})
		c.noScan = noScan
		res, err := c.census(context.Background(), CensusRequest{PIDs: []int{pid}})
		if err != nil || !comesTo(res.Total(), want) || res.Processes != 1 || len(res.Problems) != 0 || res.Files == 0 {
			t.Errorf("noScan %v: %s, %d bytes, want %d: %+v, %v", noScan, kindSums(res), res.Total(), want, res, err)
		}
	}
	m, err := NewMover(unix.NewLive(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	res, err := m.Census(context.Background(), CensusRequest{PIDs: []int{pid, 2, 1 << 22, pid}})
	if err != nil || !comesTo(res.Total(), want) || res.Processes != 1 || len(res.Problems) != 0 || res.Files == 0 {
		t.Errorf("%s, want %d in all, not %d: %+v, %v", kindSums(res), want, res.Total(), res, err)
	}
	all, err := m.Census(context.Background(), CensusRequest{PIDs: []int{pid}, Cache: true, Outside: true})
	if cache, _ := all.Of(migration.Cache); err != nil || cache.Total() == 0 || all.Total() != res.Total()+cache.Total() || all.Foreign.Or(0) == 0 {
		t.Errorf("with cache: %s: %+v, %v", kindSums(all), all, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := m.Census(ctx, CensusRequest{PIDs: []int{pid}}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// Processes that begin and end while they are counted are no problem, and no error.
func TestCensusOfWhatEnds(t *testing.T) {
	m, err := NewMover(unix.NewLive(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		var pids []int
		var all []*exec.Cmd
		for i := range 4 {
			cmd := exec.Command("sleep", fmt.Sprintf("0.%02d", i))
			if err := cmd.Start(); err != nil {
				t.Skip(err)
			}
			all, pids = append(all, cmd), append(pids, cmd.Process.Pid)
		}
		res, err := m.Census(context.Background(), CensusRequest{PIDs: pids, Cache: true})
		if err != nil && !errors.Is(err, unix.ErrGone) || len(res.Problems) > 0 {
			t.Errorf("%q, %v", res.Problems, err)
		}
		for _, cmd := range all {
			cmd.Wait()
		}
	}
}

// If no process may be read, nothing is known: that is an error, and not an empty census.
func TestCensusOfNobody(t *testing.T) {
	dir := t.TempDir()
	census := func(pids ...int) (migration.Census, error) {
		return newCounter(unix.At(dir), unix.LivePager{}).census(context.Background(), CensusRequest{PIDs: pids, Cache: true})
	}
	if res, err := census(7, 8); !errors.Is(err, unix.ErrGone) || res.Unread != 0 {
		t.Errorf("all have ended: %+v, %v", res, err)
	}
	for _, pid := range []string{"7", "8"} {
		path := filepath.Join(dir, "proc", pid, "numa_maps")
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("garbage\n"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if res, err := census(7, 8, 9); err == nil || errors.Is(err, unix.ErrGone) || !strings.Contains(err.Error(), "numa_maps") || !strings.Contains(err.Error(), "nor those of 1 more") || res.Unread != 2 {
		t.Errorf("unreadable: %+v, %v", res, err)
	}
	res, err := newCounter(unix.NewLive().Root(), unix.LivePager{}).census(context.Background(), CensusRequest{PIDs: []int{os.Getpid(), 2}})
	if err != nil || res.Unread != 0 || res.Processes != 1 {
		t.Errorf("beside a kernel thread: %+v, %v", res, err)
	}
}

// Without pagemap it counts by numa_maps, and the result says so.
func TestCensusByMapping(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"maps": "1000-9000 rw-p 00000000 00:00 0 \n10000-18000 r--p 00000000 fe:00 7   /usr/lib/x\n20000-28000 rw-s 00000000 00:01 8   /memfd:x (deleted)\n" +
			"30000-38000 rw-s 00000000 00:05 9   /dev/gpu\n40000000-40400000 rw-s 00000000 00:0f 10   /huge/x\n",
		"numa_maps": "1000 default anon=4 dirty=4 N0=3 N1=1 kernelpagesize_kB=4\n10000 default file=/usr/lib/x anon=2 mapped=4 N0=2 N1=2 kernelpagesize_kB=4\n" +
			"20000 default file=/memfd:x\\040(deleted) dirty=8 N1=8 kernelpagesize_kB=4\n30000 default file=/dev/gpu mapped=8 N0=8 kernelpagesize_kB=4\n" +
			"40000000 default file=/huge/x huge dirty=2 N1=2 kernelpagesize_kB=2048\n",
		"stat": "7 (x) S 1 7 7 0 -1 0\n",
	} {
		path := filepath.Join(dir, "proc/7", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	res, err := newCounter(unix.At(dir), unix.LivePager{}).census(context.Background(), CensusRequest{PIDs: []int{7}})
	if got := kindSums(res); err != nil || got != "anon 24 KiB, shmem 32 KiB, hugetlb 4 MiB, file 8 KiB" || len(res.Problems) != 1 || !strings.Contains(res.Problems[0], "by mapping") ||
		!slices.EqualFunc(res.Pools, []migration.Pool{{PageSize: 2 * unit.MiB, Nodes: []migration.NodeBytes{{Node: 1, Bytes: 4 * unit.MiB}}}}, func(a, b migration.Pool) bool {
			return a.PageSize == b.PageSize && slices.Equal(a.Nodes, b.Nodes)
		}) {
		t.Errorf("%s, %+v, %v", got, res, err)
	}
	if anon, _ := res.Of(migration.Anon); anon.On(set.FromNodes(1)) != 8*unit.KiB {
		t.Errorf("%+v", anon)
	}
}

func TestPageSet(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	s, twin := newPageSet(), map[uint64]bool{}
	for range 20000 {
		n := r.Uint64N(1<<18) << (r.Uint64N(2) * 20)
		if s.has(n) != twin[n] || s.add(n) == twin[n] {
			t.Fatalf("%d: %v", n, twin[n])
		}
		twin[n] = true
	}
	members := 0
	for _, part := range s.parts {
		for _, word := range part {
			members += bits.OnesCount64(word)
		}
	}
	if members != len(twin) {
		t.Errorf("%d, want %d", members, len(twin))
	}
}

func TestSpread(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 1000 {
		c, s := newCounter(unix.At("/none"), nil), &spread{}
		var all unit.Bytes
		for node := range 3 {
			b := unit.Bytes(r.IntN(2000)) * 4096
			s.addBytes(node, b)
			all += b
		}
		huge := unit.Bytes(r.IntN(4)) * hugeChunk
		s.split(c, huge, 4096)
		res := c.finish(CensusRequest{})
		thp, _ := res.Of(migration.THP)
		if res.Total() != all || thp.Total() > huge || thp.Total() < min(huge, all)-3*4096 {
			t.Fatalf("%v of %v are huge: %s", huge, all, kindSums(res))
		}
	}
}

// 1 GiB of small pages.
func BenchmarkCensus(b *testing.B) {
	h := holds(b, nil, "anon:1073741824")
	for _, noScan := range []bool{false, true} {
		b.Run(fmt.Sprintf("noScan=%v", noScan), func(b *testing.B) {
			cpu := unix.ProcessCPU()
			for range b.N {
				c := newCounter(unix.NewLive().Root(), unix.LivePager{})
				c.noScan = noScan
				res, err := c.census(context.Background(), CensusRequest{PIDs: []int{h.pid}, Cache: true})
				if err != nil || res.Total() < unit.GiB {
					b.Fatalf("%v, %v", res, err)
				}
			}
			b.ReportMetric(float64((unix.ProcessCPU()-cpu).Milliseconds())/float64(b.N), "cpu-ms/op")
		})
	}
}
