// SPDX-License-Identifier: Apache-2.0

package membench

import (
	"math"
	"runtime"
	"sync/atomic"
	"time"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/perf"
	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
)

// worker is one thread of a job.
type worker struct {
	run    *run
	thread Thread
	clock  Clock
	region *region // for a chase that is alone on its buffer
	source source
	batch  int    // ops between two clock reads
	owner  *owner // Transfer
	lap    uint32 // Transfer: laps made
	looks  uint32 // laps of ended; beside batch, which each batch needs, too: a line less
	paces  paces
	counts *perf.ThreadGroup

	result   ThreadResult
	err      error
	problems []error
}

// main is the thread's whole life: the thread, and its pinning, end with it.
func (w *worker) main() {
	defer w.run.done.Done()
	runtime.LockOSThread()
	w.settle()
	w.run.ready.Done()
	defer holdSignals()()
	w.run.start.await(0)
	if !w.run.stop.Load() {
		w.warm()
		w.measure()
	}
	if w.owner != nil {
		w.owner.quit()
	}
	if w.counts != nil {
		w.counts.Close()
	}
}

func (w *worker) settle() {
	if w.err = pin(w.thread.CPU); w.err != nil {
		w.run.stop.Store(true)
		return
	}
	if w.thread.Count {
		w.counts, w.problems = perf.OpenThread(unix.LivePerf{}, w.run.p.table)
	}
}

// holdSignals blocks signals on the thread except those that it causes itself. SIGURG
// asks a goroutine to yield every 10 ms (sysmon in runtime/proc.go); other threads can
// take the rest.
func holdSignals() (back func()) {
	var most, old sys.Sigset_t
	for i := range most.Val {
		most.Val[i] = ^most.Val[i]
	}
	for _, s := range []sys.Signal{sys.SIGSEGV, sys.SIGBUS, sys.SIGFPE, sys.SIGILL, sys.SIGTRAP} {
		most.Val[0] &^= 1 << (s - 1)
	}
	if sys.PthreadSigmask(sys.SIG_SETMASK, &most, &old) != nil {
		return func() {}
	}
	return func() { _ = sys.PthreadSigmask(sys.SIG_SETMASK, &old, nil) }
}

// warm works for the warming time and laps, and continues until all threads have done
// so: the measured stretches begin when all are in the steady state.
func (w *worker) warm() {
	if w.run.job.Warm == 0 && w.run.job.Laps == 0 {
		return
	}
	ops, _ := w.stretch(w.run.job.Warm)
	if w.thread.Work == Chase {
		w.until(ops, uint64(w.run.job.Laps)*uint64(w.source.lines))
	}
	w.run.warming.Add(-1)
	w.while(&w.run.warming)
}

// measure is the measured stretch. A thread that has finished works on until all have:
// so the load on the last one's stretch does not fall.
func (w *worker) measure() {
	w.paces.look = w.look()
	if w.counts != nil {
		w.counts.Start()
	}
	began := w.run.p.clock.Now(w.thread.CPU)
	w.paces.n = 0
	w.result.Ops, w.result.Elapsed = w.stretch(w.run.job.Length)
	w.result.Whole = w.run.p.clock.Now(w.thread.CPU) - began
	if w.counts != nil {
		w.counts.Stop()
		w.result.take(w.counts.Counts())
	}
	w.run.measuring.Add(-1)
	w.while(&w.run.measuring)
	w.result.Bytes = w.result.Ops * bytesOf(w.thread.Work)
	w.result.Quiet = w.paces.quiet(w.result.Ops, w.result.Elapsed)
}

func bytesOf(w Work) uint64 {
	if w == Copy {
		return 2 * line
	}
	return line
}

// stretch works for a time.
//
//go:nosplit
func (w *worker) stretch(length time.Duration) (ops uint64, elapsed time.Duration) {
	if w.owner != nil {
		return w.laps(length)
	}
	began := w.clock.Now(w.thread.CPU)
	last := began
	for {
		w.source.do(w.batch)
		ops += uint64(w.batch)
		now := w.clock.Now(w.thread.CPU)
		if now-began >= length || w.ended() {
			return ops, now - began
		}
		w.paces.addBatch(w.batch, now-last)
		w.adapt(now-last, length)
		last = now
	}
}

// laps is stretch for a transfer: elapsed is the time of the chases.
func (w *worker) laps(length time.Duration) (ops uint64, elapsed time.Duration) {
	began := w.clock.Now(w.thread.CPU)
	for {
		n, took, now := w.transfer()
		ops, elapsed = ops+n, elapsed+took
		w.paces.addBatch(int(n), took)
		if now-began >= length || w.ended() {
			return ops, elapsed
		}
	}
}

// while works until no thread needs the work any more.
//
//go:nosplit
func (w *worker) while(left *atomic.Int32) {
	for left.Load() > 0 && !w.ended() {
		if w.owner != nil {
			w.transfer()
			continue
		}
		w.source.do(w.batch)
	}
}

// ended says that the run is over, finished or not. A timer reports that it took too
// long; but a timer needs a world that runs (do). So every 64 batches, some 0.5 s at
// most, the worker checks the machine's own time itself, because the prober's clock may
// stand still.
//
//go:nosplit
func (w *worker) ended() bool {
	if w.looks++; w.looks%64 == 0 && nanotime() > w.run.deadline {
		w.run.tooLate()
	}
	return w.run.stop.Load()
}

// until works on until done ops are done, which all includes.
//
//go:nosplit
func (w *worker) until(done, all uint64) {
	for ; done < all && !w.run.stop.Load(); done += uint64(w.batch) {
		w.source.do(w.batch)
	}
}

// look is the cost of a batch beyond its ops: some 100 instructions in the lab, and 30
// ns elsewhere. The least of a few tries had no interruption. A lap has no code around
// its chase.
//
//go:nosplit
func (w *worker) look() time.Duration {
	least := time.Duration(math.MaxInt64)
	for range 8 {
		began := w.clock.Now(w.thread.CPU)
		for range 16 {
			w.source.do(0)
			now := w.clock.Now(w.thread.CPU)
			w.paces.n = 0
			w.paces.addBatch(1, now-began)
		}
		least = min(least, w.clock.Now(w.thread.CPU)-began)
	}
	if w.owner != nil {
		return 0
	}
	return least / 16
}

// With fewer batches per stretch than slow, an interruption is in most of them. With
// more than fast, or fewer ops, the clock reads themselves count in the lab: 2 % of 32
// misses.
const (
	leastOps = 32
	mostOps  = 8192
	slow     = 16
	fast     = 64
	// tick is the longest batch: each longer one would contain a tick of the kernel (1
	// to 10 ms apart).
	tick = 800 * time.Microsecond
)

// adapt finds a batch that is short compared with the stretch, and long compared with a
// clock read.
//
//go:nosplit
func (w *worker) adapt(took, length time.Duration) {
	if took > min(length/slow, 2*tick) && w.batch > leastOps {
		w.batch /= 2
	} else if took < min(length/fast, tick/2) && w.batch < mostOps {
		w.batch *= 2
	}
}

// firstBatch is a few thousand instructions, at most 64 ops.
func firstBatch(t Thread) int {
	n := 64
	for n > 1 && n*t.Pause > 16<<10 {
		n /= 2
	}
	return n
}

func (r *ThreadResult) take(c perf.ThreadCounts) {
	for field, into := range map[perf.Field]*unit.Opt[float64]{
		perf.Cycles: &r.Cycles, perf.Instructions: &r.Instructions, perf.L2Misses: &r.L2Misses, perf.LLCMisses: &r.LLCMisses,
		perf.UncoreRequests: &r.Requests, perf.UncoreOutstanding: &r.Outstanding, perf.UncoreWaits: &r.Critical,
	} {
		*into = c[field]
	}
}
