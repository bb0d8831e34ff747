// SPDX-License-Identifier: Apache-2.0

package membench

import (
	"context"
	"errors"
	"math"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"homenode/internal/kernel/unix"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// No test here judges time: only counts and invariants.

func prober(t testing.TB) *Prober {
	t.Helper()
	p, err := New(unix.NewLive(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	nodes, err := p.nodes()
	if err != nil || !nodes.Has(0) {
		t.Skipf("nothing can be bound here: nodes %s, %v", nodes, err)
	}
	return p
}

var node0 = set.FromNodes(0)

func job(w Work, bytes unit.Bytes) Job {
	return Job{
		Buffers: []Buffer{{Bytes: bytes, Nodes: node0}}, Length: 5 * time.Millisecond,
		Threads: []Thread{{CPU: 0, Work: w, Reads: 2, Writes: 1, Count: true}},
	}
}

// cpus are those that this process may use.
func cpus(t testing.TB, p *Prober, n int) []int {
	t.Helper()
	online, err := p.online()
	if err != nil || online.Len() < n {
		t.Skipf("%d CPUs are needed: %s are online, %v", n, online, err)
	}
	return online.IDs()[:n]
}

func TestRunAllWork(t *testing.T) {
	p := prober(t)
	cpu := cpus(t, p, 1)[0]
	for _, w := range []Work{Chase, Read, Write, Copy, Mixed} {
		for _, pause := range []int{0, 100} {
			j := job(w, 64*unit.KiB)
			j.Warm = time.Millisecond
			j.Threads[0].CPU, j.Threads[0].Pause = cpu, pause
			before := debug.SetGCPercent(77)
			res, err := p.Run(t.Context(), j)
			if after := debug.SetGCPercent(before); after != 77 {
				t.Errorf("%s: the collector is left at %d %%", w, after)
			}
			if err != nil || len(res.Threads) != 1 {
				t.Fatalf("%s: %+v, %v", w, res, err)
			}
			r := res.Threads[0]
			size := map[Work]uint64{Copy: 128}[w]
			if r.Ops == 0 || r.Bytes != r.Ops*max(size, 64) || r.Elapsed < j.Length || r.Quiet <= 0 {
				t.Errorf("%s: %+v", w, r)
			}
			if n := len(p.CountProblems()); (n == len(p.table.Events)) == (r.Cycles.Known() || r.Instructions.Known()) {
				t.Errorf("%s: cycles %v with %d problems", w, r.Cycles, n)
			}
		}
	}
}

// A buffer's cycle outlives other work on it, and the buffer is used again.
func TestBuffersAreKept(t *testing.T) {
	p := prober(t)
	cpu := cpus(t, p, 1)[0]
	for _, w := range []Work{Chase, Write, Copy, Mixed, Chase} {
		j := job(w, unit.MiB)
		j.Threads[0].CPU, j.Threads[0].AddEvery = cpu, 3
		if _, err := p.Run(t.Context(), j); err != nil {
			t.Fatal(err)
		}
		if len(p.cache.kept) != 1 {
			t.Fatalf("%d buffers", len(p.cache.kept))
		}
		checkCycle(t, p.cache.kept[0])
	}
	p.cache.limit = 0
	if _, err := p.Run(t.Context(), job(Read, unit.MiB)); err != nil || len(p.cache.kept) != 0 {
		t.Errorf("%d buffers are kept against the limit, %v", len(p.cache.kept), err)
	}
}

// checkCycle walks the cycle: every line once, and back to the start.
func checkCycle(t *testing.T, r *region) {
	t.Helper()
	seen := make([]bool, r.lines)
	p := r.base()
	for range r.lines {
		off := uintptr(p) - uintptr(r.base())
		if off%line != 0 || off/line >= uintptr(r.lines) || seen[off/line] {
			t.Fatalf("offset %d is no line of %d, or was there before", off, r.lines)
		}
		seen[off/line] = true
		p = *(*unsafe.Pointer)(p)
	}
	if p != r.base() {
		t.Fatalf("after all lines the chase is not at its start")
	}
}

func TestCycle(t *testing.T) {
	p := prober(t)
	for _, bytes := range []unit.Bytes{64, 128, 192, 4096, 4160, 100_000, unit.MiB} {
		b := Buffer{Bytes: bytes, Nodes: node0}
		r, err := p.region(t.Context(), b, key{bytes: bytes})
		if err != nil {
			t.Fatal(err)
		}
		if err := buildCycle(r.base(), r.lines, 7, t.Context().Err); err != nil || r.lines != int(bytes/64) {
			t.Fatalf("%d lines, %v", r.lines, err)
		}
		checkCycle(t, r)
		for n := range 70 {
			if got, want := chase(r.base(), n), slowChase(r.base(), n); got != want {
				t.Fatalf("%d steps lead to %p, want %p", n, got, want)
			}
		}
	}
}

func slowChase(p unsafe.Pointer, n int) unsafe.Pointer {
	for range n {
		p = *(*unsafe.Pointer)(p)
	}
	return p
}

func TestRefusals(t *testing.T) {
	p := prober(t)
	for about, c := range map[string]struct {
		change func(*Job)
		is     error
		says   string
	}{
		"no node 9":      {func(j *Job) { j.Buffers[0].Nodes = set.FromNodes(9) }, ErrNoNode, "node 9"},
		"absurd size":    {func(j *Job) { j.Buffers[0].Bytes = 1 << 50 }, ErrNoRoom, "short"},
		"no CPU 4000":    {func(j *Job) { j.Threads[0].CPU = 4000 }, ErrNoCPU, "CPU 4000"},
		"no size":        {func(j *Job) { j.Buffers[0].Bytes = 0 }, ErrBadJob, "least"},
		"no nodes":       {func(j *Job) { j.Buffers[0].Nodes = set.NodeSet{} }, ErrBadJob, "needs nodes"},
		"no such policy": {func(j *Job) { j.Buffers[0].Policy = "best" }, ErrBadJob, `"best"`},
		"no such buffer": {func(j *Job) { j.Threads[0].Buffer = 1 }, ErrBadJob, "buffer 1 of 1"},
		"no such work":   {func(j *Job) { j.Threads[0].Work = "dance" }, ErrBadJob, "dance"},
		"no thread":      {func(j *Job) { j.Threads = nil }, ErrBadJob, "0 threads"},
		"no length":      {func(j *Job) { j.Length = 0 }, ErrBadJob, "length"},
		"own owner":      {func(j *Job) { j.Threads[0].Work = Transfer }, ErrBadJob, "two CPUs"},
		"nothing mixed":  {func(j *Job) { j.Threads[0] = Thread{Work: Mixed} }, ErrBadJob, "nothing to mix"},
		"copy of a line": {func(j *Job) { j.Threads[0].Work, j.Buffers[0].Bytes = Copy, 64 }, ErrBadJob, "has 0 lines for it and the 1 threads"},
		"too many parts": {func(j *Job) {
			j.Buffers[0].Bytes = 64
			j.Threads = []Thread{{Work: Read}, {Work: Chase}}
		}, ErrBadJob, "thread 0: read: buffer 0 of 64 B has 1 lines for it and the 2 threads"},
		"local of nodes": {func(j *Job) { j.Buffers[0].Policy = Local }, ErrBadJob, "takes no nodes"},
	} {
		j := job(Chase, 64*unit.KiB)
		c.change(&j)
		res, err := p.Run(t.Context(), j)
		if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) || len(res.Threads) != 0 {
			t.Errorf("%s: %+v, %v; want it to say %q", about, res, err, c.says)
		}
	}
	if _, err := New(unix.Live{}, nil); !errors.Is(err, unix.ErrNotSupported) {
		t.Errorf("not live: %v", err)
	}
	if _, err := p.Free(999); !errors.Is(err, ErrNoNode) {
		t.Errorf("node 999: %v", err)
	}
	if free, err := p.Free(0); err != nil || free <= 0 {
		t.Errorf("node 0 has %v free, %v", free, err)
	}
}

func TestPolicies(t *testing.T) {
	p := prober(t)
	cpu := cpus(t, p, 1)[0]
	for _, policy := range unix.MemPolicies() {
		j := job(Read, 64*unit.KiB)
		j.Threads[0].CPU = cpu
		j.Buffers[0].Policy, j.Buffers[0].TouchCPU = policy, cpu
		if !policy.TakesNodes() {
			j.Buffers[0].Nodes = set.NodeSet{}
		}
		if _, err := p.Run(t.Context(), j); err != nil {
			if policy == WeightedInterleave || policy == PreferredMany {
				t.Logf("%s: %v", policy, err)
				continue
			}
			t.Errorf("%s: %v", policy, err)
		}
	}
}

func TestCancel(t *testing.T) {
	p := prober(t)
	ctx, cancel := context.WithCancel(t.Context())
	j := job(Chase, 64*unit.KiB)
	j.Length = time.Hour
	j.Threads[0].CPU = cpus(t, p, 1)[0]
	time.AfterFunc(20*time.Millisecond, cancel)
	if res, err := p.Run(ctx, j); err != context.Canceled || len(res.Threads) != 0 {
		t.Errorf("%+v, %v", res, err)
	}
	if _, err := p.Run(ctx, j); err != context.Canceled {
		t.Errorf("already cancelled: %v", err)
	}
}

// Several threads, two of them on one CPU; more of them than Go has Ps.
func TestTogether(t *testing.T) {
	p := prober(t)
	c := cpus(t, p, 2)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	j := job(Read, 256*unit.KiB)
	j.Buffers = append(j.Buffers, Buffer{Bytes: 4096, Nodes: node0})
	j.Warm = 2 * time.Millisecond
	j.Threads = []Thread{
		{CPU: c[0], Work: Read, Shared: 1, AddEvery: 7},
		{CPU: c[1], Work: Read, Shared: 1, AddEvery: 7},
		{CPU: c[1], Work: Chase, Pause: 50},
	}
	res, err := p.Run(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range res.Threads {
		if r.Ops == 0 {
			t.Errorf("thread %d did nothing", i)
		}
	}
	if runtime.GOMAXPROCS(0) != 1 {
		t.Error("GOMAXPROCS was changed for good")
	}
	adds := uint64(0)
	for _, r := range p.cache.kept {
		for i := 0; r.key.bytes == 4096 && i < r.lines; i++ {
			adds += *word(r.base(), uintptr(i*line)+second) - 1*boolTo(i == 0)
		}
	}
	if least := (res.Threads[0].Ops + res.Threads[1].Ops) / 7; adds < least-2 {
		t.Errorf("%d adds, want at least %d", adds, least)
	}
}

func boolTo(b bool) uint64 {
	if b {
		return 1 // touch wrote it
	}
	return 0
}

// Threads of sequential work on one buffer have every line, and none twice.
func TestParts(t *testing.T) {
	p := prober(t)
	for _, lines := range []int{64, 65, 1000} {
		for parts := 1; parts < 8; parts++ {
			r, err := p.region(t.Context(), Buffer{Bytes: unit.Bytes(lines * 64), Nodes: node0}, key{ordinal: lines*10 + parts})
			if err != nil {
				t.Fatal(err)
			}
			next := r.base()
			for i := range parts {
				s := newSource(Thread{Work: Read}, []*region{r}, i, parts, 0)
				if s.base != next {
					t.Fatalf("part %d of %d starts at %p, want %p", i, parts, s.base, next)
				}
				next = unsafe.Add(next, s.lines*line)
			}
			if got := uintptr(next) - uintptr(r.base()); got != uintptr(lines*line) {
				t.Errorf("%d parts have %d bytes of %d", parts, got, lines*line)
			}
		}
	}
}

// The loops' effect on lines, compared with the same line by line.
func TestLoops(t *testing.T) {
	p := prober(t)
	const lines = 203
	r, err := p.region(t.Context(), Buffer{Bytes: 2 * lines * 64, Nodes: node0}, key{})
	if err != nil {
		t.Fatal(err)
	}
	at := func(i int) *uint64 { return word(r.base(), uintptr(i*line)+second) }
	for _, n := range []int{0, 1, 7, 8, 15, 16, 17, 100, lines} {
		want := uint64(0)
		for i := range 2 * lines {
			*at(i) = uint64(i*i + 1)
			if i < n {
				want ^= *at(i)
			}
		}
		if got := readLines(r.base(), n); got != want {
			t.Errorf("read %d: %d, want %d", n, got, want)
		}
		copyLines(unsafe.Add(r.base(), lines*line), r.base(), n)
		for i := range lines {
			if copied := *at(lines + i) == *at(i); copied != (i < n) {
				t.Errorf("copy of %d: line %d", n, i)
			}
		}
		writeLines(r.base(), n, math.MaxUint64)
		for i := range lines {
			if wrote := *at(i) == math.MaxUint64; wrote != (i < n) {
				t.Errorf("write of %d: line %d", n, i)
			}
		}
	}
}

// The pattern of a mix continues at its last position, however the ops are divided.
func TestMixed(t *testing.T) {
	p := prober(t)
	r, err := p.region(t.Context(), Buffer{Bytes: 1000 * 64, Nodes: node0}, key{})
	if err != nil {
		t.Fatal(err)
	}
	for _, mix := range [][2]int{{1, 1}, {2, 1}, {3, 1}, {4, 1}, {1, 2}, {1, 0}, {0, 1}} {
		for i := range 1000 {
			*word(r.base(), uintptr(i*line)+second) = 5
		}
		s := newSource(Thread{Work: Mixed, Reads: mix[0], Writes: mix[1]}, []*region{r}, 0, 1, 0)
		s.sum = 1 << 40 // written; a read leaves this bit alone
		for _, n := range []int{1, 2, 3, 100, 7, 64, 500, 323} {
			s.do(n)
		}
		for i := range 1000 {
			wrote := *word(r.base(), uintptr(i*line)+second)&(1<<40) != 0
			if want := i%(mix[0]+mix[1]) >= mix[0]; wrote != want {
				t.Fatalf("%v: line %d written: %v", mix, i, wrote)
			}
		}
		if s.next != 0 {
			t.Errorf("%v: after all lines the next is %d", mix, s.next)
		}
	}
}

// Each lap the reader sees what the owner wrote in that lap.
func TestTransferIsSeen(t *testing.T) {
	p := prober(t)
	c := cpus(t, p, 2)
	j := job(Transfer, 16*unit.KiB)
	j.Threads[0].CPU, j.Threads[0].Owner = c[0], c[1]
	j.Warm = time.Millisecond
	res, err := p.Run(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	lines := uint64(16 << 10 / 64)
	got := res.Threads[0]
	if got.Ops == 0 || got.Ops%lines != 0 || got.Elapsed <= 0 {
		t.Errorf("%+v, want whole laps of %d lines", got, lines)
	}
	checkCycle(t, p.cache.kept[0])
	r := p.cache.kept[0]
	w := &worker{run: &run{p: p, job: j}, thread: j.Threads[0], clock: p.clock, source: newSource(j.Threads[0], []*region{r}, 0, 1, 0)}
	w.owner = newOwner(w.run, c[1], &w.source)
	w.run.ready.Add(1)
	w.run.done.Add(1)
	go w.owner.main()
	for lap := range 100 {
		if n, _, _ := w.transfer(); n != lines {
			t.Fatalf("a lap of %d lines", n)
		}
		for i := range r.lines {
			if v := *word(r.base(), uintptr(i*line)+second); v != uint64(lap+1) {
				t.Fatalf("lap %d, line %d: the owner's value of lap %d", lap+1, i, v)
			}
		}
	}
	w.owner.quit()
	w.run.done.Wait()
}

func TestQuiet(t *testing.T) {
	var p paces
	if got := p.quiet(100, time.Second); got != time.Second {
		t.Errorf("no batch: %v", got)
	}
	for i := range 3000 { // a tenth of the batches are interrupted
		took := 2 * time.Microsecond
		if i%10 == 0 {
			took = time.Second
		}
		p.addBatch(1000, took)
	}
	p.addBatch(1, time.Hour)
	if got := p.quiet(5000, time.Hour); got != 10*time.Microsecond {
		t.Errorf("%v, want 5000 ops at 2 ns", got)
	}
}

// stopped is a clock that stands still, and records the steps.
type stopped struct {
	monotonic
	steps []string
	fail  error
	limit int64 // of memory, while it is measured
}

func (s *stopped) Prepare() error { s.steps = append(s.steps, "prepare"); return nil }
func (s *stopped) Measure() error {
	s.steps, s.limit = append(s.steps, "measure"), debug.SetMemoryLimit(-1)
	return s.fail
}

// Work is the clock of loops; Now means nothing to them.
//
//go:nosplit
func (s *stopped) Work(int) time.Duration { return time.Duration(nanotime()) }
func (s *stopped) Now(int) time.Duration  { return time.Hour }

func TestStagedClock(t *testing.T) {
	p := prober(t)
	c := &stopped{}
	p.clock = c
	j := job(Read, 4096)
	j.Threads[0].CPU = cpus(t, p, 1)[0]
	if _, err := p.Run(t.Context(), j); err != nil || strings.Join(c.steps, " ") != "prepare measure" {
		t.Errorf("%v, %v", c.steps, err)
	}
	j.Buffers[0].Bytes = 1 << 50
	if _, err := p.Run(t.Context(), j); err == nil || strings.Join(c.steps, " ") != "prepare measure prepare measure" {
		t.Errorf("%v, %v", c.steps, err)
	}
	j.Buffers[0].Bytes = 4096
	c.fail = errors.New("it is stuck")
	if _, err := p.Run(t.Context(), j); !errors.Is(err, c.fail) {
		t.Errorf("%v", err)
	}
}

// still is a clock that does not advance.
type still struct{ monotonic }

func (still) Now(int) time.Duration { return time.Hour }

func TestClockThatStandsStill(t *testing.T) {
	p := prober(t)
	p.clock, p.patience = still{}, 20*time.Millisecond
	j := job(Read, 4096)
	j.Length, j.Threads[0].CPU = time.Millisecond, cpus(t, p, 1)[0]
	if res, err := p.Run(t.Context(), j); !errors.Is(err, errClock) || len(res.Threads) != 0 {
		t.Errorf("%+v, %v", res, err)
	}
}

// While a stopped world keeps timers from firing, and peers from coming, waiting for
// them has an end. Without that end it would wait for ever.
func TestWaitHasAnEnd(t *testing.T) {
	p := prober(t)
	r, err := p.region(t.Context(), Buffer{Bytes: 4096, Nodes: node0}, key{})
	if err != nil {
		t.Fatal(err)
	}
	j := job(Read, 4096)
	for about, wait := range map[string]func(*worker){
		"a peer that does not come": func(w *worker) { w.while(&w.run.warming) },
		"a clock that stands still": func(w *worker) { w.clock = still{}; w.stretch(time.Hour) },
	} {
		w := &worker{run: &run{p: p, job: j}, thread: j.Threads[0], clock: p.clock, batch: 64}
		w.source = newSource(w.thread, []*region{r}, 0, 1, 0)
		w.run.warming.Store(1)
		w.run.deadline = nanotime() + int64(10*time.Millisecond)
		hung := time.AfterFunc(10*time.Second, func() { w.run.stop.Store(true) })
		wait(w)
		if !hung.Stop() || !w.run.late.Load() || !w.run.stop.Load() {
			t.Errorf("%s: it was waited for until the test ended it", about)
		}
	}
}

// A limit of memory that is far exceeded makes the collector run all the time, and each
// time it stops the world twice. It must not do so while threads run that cannot be
// stopped.
func TestNoCollectionMeanwhile(t *testing.T) {
	p := prober(t)
	c := cpus(t, p, 2)
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(1))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	clock := &stopped{}
	p.clock, p.patience = clock, time.Minute
	var end atomic.Bool
	defer end.Store(true)
	go func() {
		for !end.Load() {
			garbage = make([]byte, 1<<10)
		}
	}()
	j := job(Read, 4096)
	j.Warm, j.Length = time.Millisecond, time.Millisecond
	j.Threads = []Thread{{CPU: c[0], Work: Read}, {CPU: c[1], Work: Chase}}
	for range 10 {
		if _, err := p.Run(t.Context(), j); err != nil {
			t.Fatal(err)
		}
		if clock.limit != math.MaxInt64 || debug.SetMemoryLimit(-1) != 1 || runtime.GOMAXPROCS(0) != 8 {
			t.Fatalf("the limit of memory was %d, and is %d; %d Ps", clock.limit, debug.SetMemoryLimit(-1), runtime.GOMAXPROCS(0))
		}
	}
}

var garbage []byte

func TestMoveRefusals(t *testing.T) {
	p := prober(t)
	for about, m := range map[string]Move{
		"to itself": {From: 0, To: 0, Bytes: unit.MiB}, "no node 9": {From: 0, To: 9, Bytes: unit.MiB},
		"negative": {From: -1, To: 0, Bytes: unit.MiB},
	} {
		if got, err := p.Move(t.Context(), m); !errors.Is(err, ErrNoNode) || got != (Moved{}) {
			t.Errorf("%s: %+v, %v", about, got, err)
		}
	}
}

func TestConditions(t *testing.T) {
	p := prober(t)
	c, err := p.Conditions()
	if err != nil || !c.Busy.Known() {
		t.Errorf("%+v, %v", c, err)
	}
	t.Logf("%+v", c)
}

// The speed of the hot loops, for information.
func BenchmarkChase(b *testing.B) {
	p := prober(b)
	r, err := p.region(b.Context(), Buffer{Bytes: 4096, Nodes: node0}, key{})
	if err != nil {
		b.Fatal(err)
	}
	if err := buildCycle(r.base(), r.lines, 1, b.Context().Err); err != nil {
		b.Fatal(err)
	}
	at := chase(r.base(), b.N)
	runtime.KeepAlive(at)
}

// A chase continues where the one before it on the same buffer ended.
func TestChaseGoesOn(t *testing.T) {
	p := prober(t)
	j := job(Chase, 1<<20)
	j.Threads[0].CPU = cpus(t, p, 1)[0]
	var ends []unsafe.Pointer
	for range 3 {
		if _, err := p.Run(t.Context(), j); err != nil {
			t.Fatal(err)
		}
		kept := p.cache.kept[len(p.cache.kept)-1]
		if kept.next == nil {
			t.Fatal("it is not known where the chase ended")
		}
		if s := newSource(j.Threads[0], []*region{kept}, 0, 1, 0); s.at != kept.next {
			t.Error("the next chase starts elsewhere")
		}
		ends = append(ends, kept.next)
	}
	if ends[0] == ends[1] && ends[1] == ends[2] {
		t.Error("three chases ended at one line")
	}
}

// A pause takes longer the longer it is.
func TestSpin(t *testing.T) {
	for _, turns := range []int{-1, 0, 1, 2, 1000} {
		spin(turns)
	}
	least := func(turns int) int64 {
		least := int64(math.MaxInt64)
		for range 20 {
			began := nanotime()
			spin(turns)
			least = min(least, nanotime()-began)
		}
		return least
	}
	if short, long := least(1000), least(100_000); long < 10*short {
		t.Errorf("1,000 turns take %d ns, 100,000 take %d", short, long)
	}
}

// Every thread passes its cycle this often before it is measured, however short the
// warming time; an add at each step goes to the shared lines.
func TestLaps(t *testing.T) {
	p := prober(t)
	const lines, laps = 1 << 14, 3
	j := job(Chase, lines*line)
	j.Buffers = append(j.Buffers, Buffer{Bytes: 4 * line, Nodes: node0})
	j.Threads[0].Shared, j.Threads[0].AddEvery = 1, 1
	j.Length, j.Warm, j.Laps = time.Microsecond, 0, laps
	r, err := p.Run(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	adds := uint64(0)
	for _, kept := range p.cache.kept {
		if kept.lines == 4 {
			for i := range uintptr(4) {
				adds += *word(kept.base(), i*line+second)
			}
		}
	}
	if adds < laps*lines+r.Threads[0].Ops {
		t.Errorf("%d adds, %d of them measured: fewer than %d laps of %d before", adds, r.Threads[0].Ops, laps, lines)
	}
	j.Laps = -1
	if _, err := p.Run(t.Context(), j); !errors.Is(err, ErrBadJob) {
		t.Error(err)
	}
}
