// SPDX-License-Identifier: Apache-2.0

package pagecache

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/unix"
	"homenode/internal/migration"
)

const holding = "HOMENODE_TEST_HOLDS"

// TestMain is also the process that holds files: its environment says what to do, one
// word a line.
func TestMain(m *testing.M) {
	what := os.Getenv(holding)
	if what == "" {
		os.Exit(m.Run())
	}
	for word := range strings.Lines(what) {
		if err := hold(strings.TrimSpace(word)); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	fmt.Println("ready")
	io.Copy(io.Discard, os.Stdin)
}

// hold keeps what it opens until it ends.
func hold(word string) error {
	how, path, _ := strings.Cut(word, ":")
	const size = 8 * 4096
	switch how {
	case "open":
		_, err := sys.Open(path, sys.O_RDWR|sys.O_NONBLOCK, 0)
		return err
	case "gone": // opened, and deleted
		_, err := sys.Open(path, sys.O_RDONLY, 0)
		return errors.Join(err, os.Remove(path))
	case "map":
		fd, err := sys.Open(path, sys.O_RDONLY, 0)
		if err != nil {
			return err
		}
		_, err = sys.Mmap(fd, 0, 4096, sys.PROT_READ, sys.MAP_PRIVATE)
		return errors.Join(err, sys.Close(fd))
	case "memfd", "huge":
		flags := 0
		if how == "huge" {
			flags = sys.MFD_HUGETLB | sys.MFD_HUGE_2MB
		}
		fd, err := sys.MemfdCreate(how+"-of-test", flags)
		if err != nil {
			return err
		}
		if how == "huge" {
			return sys.Fallocate(fd, 0, 0, 4<<20)
		}
		_, err = sys.Pwrite(fd, make([]byte, size), 0)
		return err
	case "sysv":
		id, err := sys.SysvShmGet(sys.IPC_PRIVATE, size, sys.IPC_CREAT|0o600)
		if err != nil {
			return err
		}
		mem, err := sys.SysvShmAttach(id, 0, 0)
		_, err2 := sys.SysvShmCtl(id, sys.IPC_RMID, nil)
		if err == nil {
			mem[0], mem[3*4096] = 1, 1
		}
		return errors.Join(err, err2)
	case "own-ipc":
		return nil
	case "socket":
		_, err := net.Listen("tcp", "127.0.0.1:0")
		return err
	}
	return fmt.Errorf("hold %q: what is that?", word)
}

// holder starts a process that holds files.
func holder(t *testing.T, words ...string) int {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), holding+"="+strings.Join(words, "\n"))
	if words[0] == "own-ipc" {
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: sys.CLONE_NEWIPC}
	}
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); cmd.Process.Kill(); cmd.Wait() })
	line, _ := bufio.NewReader(out).ReadString('\n')
	if line != "ready\n" {
		t.Fatalf("process that holds %v: %q", words, line)
	}
	return cmd.Process.Pid
}

func find(t *testing.T, cfg Config, pids ...int) []File {
	t.Helper()
	files, problems, err := Find(unix.NewLive().Root(), pids, cfg)
	for _, p := range problems {
		if !strings.HasPrefix(p, "other processes") { // this host may hide some
			t.Error(p)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// called is the file with this in its name.
func called(t *testing.T, files []File, name string) File {
	t.Helper()
	at := slices.IndexFunc(files, func(f File) bool { return strings.Contains(f.Name, name) })
	if at < 0 {
		t.Fatalf("%s was not found", name)
	}
	for _, f := range files[at+1:] {
		if f.ID == files[at].ID {
			t.Fatalf("%s was found twice", name)
		}
	}
	return files[at]
}

// offsets goes through a file.
func offsets(t *testing.T, f File) []uint64 {
	t.Helper()
	v, err := Open(f)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	all, err := rest(v)
	if err != io.EOF {
		t.Fatal(err)
	}
	return all
}

// rest has a deadline: no test walks the holes of a large file page by page.
func rest(v *View) (all []uint64, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for {
		p, err := v.Next(ctx)
		if err != nil {
			return all, err
		}
		where := make([]int32, len(p.Addrs))
		if _, err := (unix.LivePager{}).MovePages(0, p.Addrs, nil, where, 0); err != nil {
			return nil, err
		}
		for i, node := range where {
			if node < 0 {
				return nil, fmt.Errorf("page at %d has no place: %v", p.Offsets[i], sys.Errno(-node))
			}
		}
		all = append(all, p.Offsets...)
	}
}

// asMincoreHasIt is a second, independent look at the same.
func asMincoreHasIt(t *testing.T, f *os.File) (all []uint64) {
	t.Helper()
	st, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	mem, err := sys.Mmap(int(f.Fd()), 0, int(st.Size()), sys.PROT_READ, sys.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer sys.Munmap(mem)
	in := make([]byte, (len(mem)+4095)/4096)
	if err := unix.Mincore(mem, in); err != nil {
		t.Fatal(err)
	}
	for i, b := range in {
		if b&1 == 1 {
			all = append(all, uint64(i)*4096)
		}
	}
	return all
}

// filled is a file with something on each page.
func filled(t *testing.T, dir string, size int) *os.File {
	t.Helper()
	f, err := os.CreateTemp(dir, "homenode-pagecache-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close(); os.Remove(f.Name()) })
	if _, err := f.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	return f
}

// shm is a folder in memory.
func shm(t *testing.T) string {
	t.Helper()
	const dir = "/dev/shm"
	var fs sys.Statfs_t
	if err := sys.Statfs(dir, &fs); err != nil || fs.Type != sys.TMPFS_MAGIC {
		t.Skipf("no tmpfs is mounted at %s: %v", dir, err)
	}
	return dir
}

// memfd is a file in memory: however small a container's /dev/shm is.
func memfd(t *testing.T, size int) *os.File {
	t.Helper()
	fd, err := sys.MemfdCreate("homenode-pagecache", sys.MFD_CLOEXEC)
	if err != nil {
		t.Skip(err)
	}
	f := os.NewFile(uintptr(fd), "homenode-pagecache")
	t.Cleanup(func() { f.Close() })
	if _, err := f.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	return f
}

func here(t *testing.T, f *os.File) File {
	t.Helper()
	return called(t, find(t, Config{}, os.Getpid()), filepath.Base(f.Name()))
}

// Of a partly cached file exactly the cached pages are found, and no more are cached
// afterwards.
func TestViewHasWhatIsCached(t *testing.T) {
	f := filled(t, t.TempDir(), 80<<20+100)
	const from, size = 20 << 20, 45 << 20 // over the end of the first window
	if err := sys.Fadvise(int(f.Fd()), from, size, sys.FADV_DONTNEED); err != nil {
		t.Fatal(err)
	}
	for try := 1; ; try++ {
		want := asMincoreHasIt(t, f)
		if n := (80<<20)/4096 + 1; len(want) == 0 || len(want) == n {
			t.Skipf("%d of %d pages are cached: this file system does not drop pages", len(want), n)
		}
		got := offsets(t, here(t, f))
		after := asMincoreHasIt(t, f)
		if len(after) < len(want) && try < 10 {
			continue // a busy machine dropped some meanwhile: nothing can be said
		}
		if !slices.Equal(got, want) || !slices.Equal(after, want) {
			t.Errorf("%d pages, want %d; %d are cached after it", len(got), len(want), len(after))
		}
		return
	}
}

// The same without cachestat (before 6.5), and without what is not wanted.
func TestViewOfOldKernels(t *testing.T) {
	f := filled(t, t.TempDir(), 1<<20)
	if err := sys.Fadvise(int(f.Fd()), 0, 512<<10, sys.FADV_DONTNEED); err != nil {
		t.Fatal(err)
	}
	want := asMincoreHasIt(t, f)
	v, err := Open(here(t, f))
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	v.stat = false
	v.Skip = func(offset uint64) bool { return offset%8192 == 0 }
	want = slices.DeleteFunc(want, v.Skip)
	if got, err := rest(v); err != io.EOF || !slices.Equal(got, want) {
		t.Errorf("%d pages, want %d, %v", len(got), len(want), err)
	}
}

func TestViewOfTmpfs(t *testing.T) {
	f := filled(t, shm(t), 64*4096)
	if err := sys.Fallocate(int(f.Fd()), sys.FALLOC_FL_PUNCH_HOLE|sys.FALLOC_FL_KEEP_SIZE, 8*4096, 16*4096); err != nil {
		t.Fatal(err)
	}
	file := here(t, f)
	if got := offsets(t, file); len(got) != 48 || got[8] != 24*4096 || file.Kind != migration.Shmem {
		t.Errorf("%v of %v", got, file.Kind)
	}
	var st sys.Stat_t
	if err := sys.Fstat(int(f.Fd()), &st); err != nil || st.Blocks != 48*8 {
		t.Errorf("%d blocks: holes were filled, %v", st.Blocks, err)
	}
}

func TestCutShort(t *testing.T) {
	f := memfd(t, 80<<20) // on a disk, a busy machine drops some of so many again
	v, err := Open(here(t, f))
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if p, err := v.Next(context.Background()); err != nil || len(p.Addrs) != windowSize/4096 {
		t.Fatalf("%d pages, %v", len(p.Addrs), err)
	}
	if err := f.Truncate(1 << 20); err != nil {
		t.Fatal(err)
	}
	if got, err := rest(v); !errors.Is(err, ErrCut) || len(got) != 0 {
		t.Errorf("%d pages, %v", len(got), err)
	}
}

// The file is cut between the look and the touch: that is SIGBUS.
func TestCutShortUnderOurHands(t *testing.T) {
	f := filled(t, t.TempDir(), 1<<20)
	v, err := Open(here(t, f))
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	v.Skip = func(offset uint64) bool {
		if offset == 0 {
			if err := f.Truncate(5 * 4096); err != nil {
				t.Error(err)
			}
		}
		return false
	}
	if got, err := rest(v); !errors.Is(err, ErrCut) || len(got) != 5 {
		t.Errorf("%v, %v", got, err)
	}
}

func TestGrowing(t *testing.T) {
	f := filled(t, t.TempDir(), windowSize+4096)
	v, err := Open(here(t, f))
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if _, err := v.Next(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(make([]byte, 3*4096)); err != nil {
		t.Fatal(err)
	}
	if got, err := rest(v); err != io.EOF || len(got) != 4 {
		t.Errorf("%v, %v", got, err)
	}
	if got := offsets(t, here(t, filled(t, t.TempDir(), 0))); len(got) != 0 {
		t.Errorf("an empty file has %v", got)
	}
}

func TestSparseIsQuick(t *testing.T) {
	f := filled(t, shm(t), 4096) // ext4 ends at 16 TiB, others earlier
	const size = 1 << 60         // to ask for it by the window takes hours
	if _, err := f.WriteAt([]byte{1}, size/2); err != nil {
		t.Skip(err)
	}
	if err := f.Truncate(size); err != nil {
		t.Skip(err)
	}
	for _, old := range []bool{false, true} {
		v, err := Open(here(t, f))
		if err != nil {
			t.Fatal(err)
		}
		v.stat = v.stat && !old
		if got, err := rest(v); err != io.EOF || !slices.Equal(got, []uint64{0, size / 2}) {
			t.Errorf("old kernel %v: %v, %v", old, got, err)
		}
		v.Close()
	}
}

func TestStops(t *testing.T) {
	v, err := Open(here(t, filled(t, t.TempDir(), 4096)))
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := v.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// Files whose name is gone, and files that never had one.
func TestFindWithoutNames(t *testing.T) {
	f := filled(t, t.TempDir(), 5*4096)
	pid := holder(t, "gone:"+f.Name(), "memfd", "sysv")
	files := find(t, Config{}, pid)
	gone, mem, sysv := called(t, files, filepath.Base(f.Name())), called(t, files, "memfd-of-test"), called(t, files, "SYSV")
	if gone.Kind != migration.File || gone.Mapped || mem.Kind != migration.Shmem || sysv.Kind != migration.Shmem || !sysv.Mapped {
		t.Errorf("%+v %+v %+v", gone, mem, sysv)
	}
	if a, b, c := offsets(t, gone), offsets(t, mem), offsets(t, sysv); len(a) != 5 || len(b) != 8 || !slices.Equal(c, []uint64{0, 3 * 4096}) {
		t.Errorf("pages %v, %v, %v", a, b, c)
	}
}

// The first segments of two namespaces have the same number: 0.
func TestSegmentsOfNamespaces(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("cannot make namespaces")
	}
	var segments []File
	for _, f := range find(t, Config{Outside: true}, holder(t, "own-ipc", "sysv"), holder(t, "own-ipc", "sysv")) {
		if strings.HasPrefix(f.Name, "/SYSV") {
			segments = append(segments, f)
		}
	}
	if len(segments) != 2 || segments[0].Ino != 0 || segments[1].Ino != 0 || segments[0].Outside || segments[1].Outside {
		t.Fatalf("%+v", segments)
	}
	if got := offsets(t, segments[1]); !slices.Equal(got, []uint64{0, 3 * 4096}) {
		t.Errorf("%v", got)
	}
}

func TestFoundOnce(t *testing.T) {
	f := filled(t, t.TempDir(), 4096)
	name := filepath.Base(f.Name())
	f.Close() // our own does not count anyway
	a, b := holder(t, "map:"+f.Name(), "open:"+f.Name()), holder(t, "map:"+f.Name())
	both := called(t, find(t, Config{Outside: true}, b, a), name)
	if want := []int{min(a, b), max(a, b)}; !slices.Equal(both.Holders, want) || !both.Mapped || both.Outside {
		t.Errorf("of both: %+v, want %v", both, want)
	}
	one := called(t, find(t, Config{Outside: true}, a), name)
	if !slices.Equal(one.Holders, []int{a}) || !one.Outside {
		t.Errorf("of one: %+v", one)
	}
	if one := called(t, find(t, Config{}, a), name); one.Outside {
		t.Errorf("not asked for: %+v", one)
	}
	opened := holder(t, "open:"+f.Name())
	if f := called(t, find(t, Config{Outside: true}, opened), name); !f.Outside || f.Mapped {
		t.Errorf("open here, mapped there: %+v", f)
	}
}

// A file that waits or acts when it is opened is neither opened nor found.
func TestLeavesAlone(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := sys.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	file := filled(t, t.TempDir(), 4096)
	words := []string{"open:" + fifo, "socket", "open:/dev/tty", "open:/dev/null", "open:/proc/self/oom_score_adj", "open:" + file.Name()}
	if tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0); err == nil {
		tty.Close()
	} else {
		words = slices.Delete(words, 2, 3)
	}
	pid := holder(t, words...)
	watch, err := sys.InotifyInit1(sys.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	defer sys.Close(watch)
	if _, err := sys.InotifyAddWatch(watch, fifo, sys.IN_OPEN); err != nil {
		t.Fatal(err)
	}
	files := find(t, Config{Outside: true}, pid)
	called(t, files, filepath.Base(file.Name()))
	for _, f := range files {
		if !strings.HasPrefix(f.Name, "/") || strings.HasPrefix(f.Name, "/dev/") || strings.HasPrefix(f.Name, "/proc/") || f.Name == fifo {
			t.Errorf("%q was found", f.Name)
		}
		if v, err := Open(f); err == nil {
			v.Close()
		}
	}
	var events [4096]byte
	if n, err := sys.Read(watch, events[:]); err != sys.EAGAIN {
		t.Errorf("%d bytes of events, %v: the FIFO was opened", n, err)
	}
	if fd, err := sys.Open(fifo, sys.O_RDONLY|sys.O_NONBLOCK, 0); err == nil { // the watch sees that
		sys.Close(fd)
	}
	if n, err := sys.Read(watch, events[:]); err != nil || n == 0 {
		t.Errorf("no event of what is opened: %v", err)
	}
}

func TestGoneAndKernel(t *testing.T) {
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Skip(err)
	}
	if files := find(t, Config{}, cmd.Process.Pid, 2); len(files) != 0 {
		t.Errorf("%+v", files)
	}
	f := filled(t, t.TempDir(), 4096)
	file := here(t, f)
	f.Close()
	if _, err := Open(file); unix.Classify(err) != unix.ErrGone {
		t.Errorf("closed meanwhile: %v", err)
	}
}

// A user whom mincore does not trust is refused, and does not read the whole file.
func TestNotPermitted(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("cannot become another user")
	}
	f := filled(t, shm(t), 4096)
	if err := os.Chmod(f.Name(), 0o644); err != nil {
		t.Fatal(err)
	}
	file := here(t, f)
	errs := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with this
		if _, _, errno := sys.RawSyscall(sys.SYS_SETRESUID, 65534, 65534, 65534); errno != 0 {
			errs <- errno
			return
		}
		// The links of our own process may no longer be followed: a file is found by its
		// path.
		file.ways = []way{{root: "/", path: f.Name()}}
		v, err := Open(file)
		if err == nil {
			v.Close()
		}
		errs <- err
	}()
	if err := <-errs; !errors.Is(err, unix.ErrNotPermitted) || !strings.Contains(err.Error(), "CAP_FOWNER") {
		t.Error(err)
	}
}

// Needs a pool of two free huge pages of 2 MiB.
func TestHugetlb(t *testing.T) {
	data, _ := os.ReadFile("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages")
	if n := strings.TrimSpace(string(data)); n == "" || n == "0" || n == "1" {
		t.Skipf("%q free huge pages", n)
	}
	pid := holder(t, "huge")
	file := called(t, find(t, Config{}, pid), "huge-of-test")
	if got := offsets(t, file); !slices.Equal(got, []uint64{0, 2 << 20}) || file.PageSize != 2<<20 || file.Kind != migration.Hugetlb {
		t.Errorf("%v of %+v", got, file)
	}
}

func TestServed(t *testing.T) {
	if _, err := Open(File{Name: "x\x1b", served: true}); !errors.Is(err, unix.ErrNotSupported) || strings.Contains(err.Error(), "\x1b") {
		t.Error(err)
	}
	for name, want := range map[string]nature{"fuse.sshfs": {migration.File, true}, "ext4": {kind: migration.File}, "tmpfs": {kind: migration.Shmem}, "proc": {}, "virtiofs": {kind: migration.File}} {
		if got := natureOf(name); got != want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
