// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// testIdleRate: a test that waits for the guest mostly waits for the guest's
// timers.
const testIdleRate = 8

// Tests share guests: a test has one to itself, and then passes it to the next test that
// needs its kind. So there are at most as many of a kind as tests that run at once. A
// guest without a test is stopped (SIGSTOP): an idle guest takes some of the host's
// time, and it does not notice the stop (TestLabSuspended).
var (
	guestsMu sync.Mutex
	resting  = map[string][]*Guest{} // by kind
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(fakeQEMU); dir != "" {
		os.Exit(playQEMU(dir, os.Args))
	}
	code := m.Run()
	for _, kind := range resting {
		for _, g := range kind {
			_ = g.cmd.Process.Kill() // it is stopped, so it could not end by itself
			g.Close()
		}
	}
	os.Exit(code)
}

// guest returns a guest of a shape for this test alone. It boots one if none is
// stopped.
func guest(t *testing.T, shape, cgroup string) *Guest {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: no lab boot")
	}
	return shared(t, shape+"/"+cgroup, labOptionsFor(t, shape, cgroup))
}

// shared returns a guest of a kind. A failed test does not pass its guest on: the
// guest ends with it. A test that leaves something running fails.
func shared(t *testing.T, kind string, o Options) *Guest {
	t.Helper()
	g := wake(t, kind)
	spent, clock := time.Duration(0), 0.0 // a boot is the test's that needed it
	if g == nil {
		g = boot(t, o)
		mustRun(t, g, "sh", "-c", quiet)
	} else {
		spent, clock = cpuTime(t, g), g.seconds()
	}
	before := inUse(t, g)
	t.Cleanup(func() {
		if !t.Failed() { // a guest that ended has neither
			t.Logf("%s: %.1f s of the host's CPU time, %.1f s of the guest's clock", kind, (cpuTime(t, g) - spent).Seconds(), g.seconds()-clock)
		}
		for look := 0; !t.Failed(); look++ {
			left := slices.DeleteFunc(inUse(t, g), func(what string) bool { return slices.Contains(before, what) })
			if len(left) == 0 {
				break
			}
			if look == 20 {
				t.Errorf("the test left in the guest: %q", left)
			}
			time.Sleep(100 * time.Millisecond) // killed processes are still ending
		}
		if t.Failed() {
			ctx, cancel := g.Within(context.Background(), patience)
			defer cancel()
			r, err := g.Run(ctx, "top", "-b", "-n", "2", "-d", "2")
			t.Logf("other processes in the guest: %s %v", r.Stdout[max(0, len(r.Stdout)-3000):], err)
			g.Close()
			return
		}
		signal(t, g, syscall.SIGSTOP)
		guestsMu.Lock()
		defer guestsMu.Unlock()
		resting[kind] = append(resting[kind], g)
	})
	return g
}

// inUse is what a later test in the same guest would measure as well: programs, the
// model, settings of the kernel.
func inUse(t *testing.T, g *Guest) []string {
	t.Helper()
	var found []string
	for line := range strings.Lines(mustRun(t, g, "sh", "-c", lookAround)) {
		found = append(found, strings.TrimSpace(line))
	}
	return found
}

// quiet makes khugepaged rest for longer than any test takes. Every ten seconds it would make
// huge pages of what programs hold: 2 MiB are read, and 4 MiB written, each time. A test
// that counts lines within one in a hundred would count those, too.
const quiet = "echo 86400000 > /sys/kernel/mm/transparent_hugepage/khugepaged/scan_sleep_millisecs"

const lookAround = `
for p in /proc/[0-9]*; do
	[ $p != /proc/$$ ] && [ $p != /proc/1 ] && readlink $p/exe > /dev/null && echo "program $(tr '\0' ' ' < $p/cmdline)"
done
homenode-load status | grep -o '"asked":"[a-z]*"'
echo "CPUs $(cat /sys/devices/system/cpu/online)"
cd /proc/sys && grep -s . kernel/numa_balancing vm/zone_reclaim_mode kernel/perf_event_max_sample_rate
true`

func boot(t *testing.T, o Options) *Guest {
	t.Helper()
	g, err := Boot(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if g.Note != "" {
		t.Log(g.Note)
	}
	return g
}

// wake returns nil if no guest of this kind is stopped.
func wake(t *testing.T, kind string) *Guest {
	t.Helper()
	guestsMu.Lock()
	defer guestsMu.Unlock()
	left := len(resting[kind]) - 1
	if left < 0 {
		return nil
	}
	g := resting[kind][left]
	resting[kind] = resting[kind][:left]
	signal(t, g, syscall.SIGCONT)
	return g
}

func signal(t *testing.T, g *Guest, s syscall.Signal) {
	t.Helper()
	if err := g.cmd.Process.Signal(s); err != nil {
		t.Errorf("%v to the guest's QEMU: %v", s, err)
	}
}

func labOptionsFor(t *testing.T, shape, cgroup string) Options {
	t.Helper()
	a, err := FindAssets(filepath.Join(root, "build/lab"))
	built := filepath.Join(root, "build")
	for _, name := range []string{"homenode", "homenode-lab"} {
		if err == nil {
			_, err = os.Stat(filepath.Join(built, name))
		}
	}
	if err != nil && os.Getenv("CI") == "true" {
		t.Fatalf("the lab is not built: %v", err)
	} else if err != nil {
		t.Skipf("the lab is not built ('make lab'): %v", err)
	}
	return Options{IdleRate: testIdleRate, Shape: shapeNamed(t, shape), Assets: a, Bin: built, Cgroup: cgroup}
}

// mustRun runs a program in the guest and returns its stdout.
func mustRun(t *testing.T, g *Guest, argv ...string) string {
	t.Helper()
	ctx, cancel := g.Within(context.Background(), patience)
	defer cancel()
	r, err := g.Run(ctx, argv...)
	if err != nil {
		t.Fatal(err)
	}
	if r.Exit != 0 {
		t.Fatalf("%v: exit %d\n%s%s", argv, r.Exit, r.Stdout, r.Stderr)
	}
	return r.Stdout
}

type loadReport struct {
	Phases []struct {
		Ops uint64 `json:"ops"`
	} `json:"phases"`
	Perf whole `json:"perf"`
}

// whole returns counts of events that were on the PMU all the time. homenode-load gives
// null for any other event. That includes an event that needs no counter (dram<n>): it
// also waits behind a group of its context that found no counter.
type whole map[string]float64

func (w *whole) UnmarshalJSON(data []byte) error {
	var all map[string]*float64
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	*w = whole{}
	for name, n := range all {
		if n == nil {
			return fmt.Errorf("%s was off the PMU for a while: its count is an estimate", name)
		}
		(*w)[name] = *n
	}
	return nil
}

func runLoad(t *testing.T, g *Guest, args ...string) loadReport {
	t.Helper()
	out := mustRun(t, g, append([]string{"homenode-load"}, args...)...)
	var r loadReport
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return r
}

// within fails the test if got is not want ± share, and reports it.
func within(t *testing.T, what string, got, want, share float64) {
	t.Helper()
	if !(math.Abs(got-want) <= share*want) {
		t.Errorf("%s: got %.0f, want %.0f ± %.2g %%", what, got, want, share*100)
	}
}

func TestLabCounts(t *testing.T) {
	t.Parallel()
	for _, shape := range []string{"two", "four", "opteron", "far"} {
		t.Run(shape, func(t *testing.T) {
			g := guest(t, shape, "v2")
			mustRun(t, g, "homenode-load", "control", "on")
			defer mustRun(t, g, "homenode-load", "control", "off")
			countEveryNode(t, g)
			countCaches(t, g)
			countStream(t, g)
		})
	}
}

const countedOps = 1_000_000

// A chase over 4 MiB misses a 512 KiB cache at every load: a million loads are
// a million DRAM reads, all local or all remote, at the pair's latency.
func countEveryNode(t *testing.T, g *Guest) {
	for home := range g.Shape.Nodes {
		src := (home + 1) % len(g.Shape.Nodes)
		for _, from := range []int{src, home} {
			cpu, ok := g.Shape.Nodes[from].CPUs.First()
			if !ok {
				continue
			}
			what := fmt.Sprintf("cpu %d on node %d, memory on node %d", cpu, from, home)
			r := runLoad(t, g, "chase", "--threads", "1", "--ws", "4MiB", "--ops", fmt.Sprint(countedOps),
				"--bind-cpu", fmt.Sprint(cpu), "--bind-mem", fmt.Sprint(home),
				"--perf", "cycles,loads,llc-misses,local-loads,remote-loads")
			within(t, what+": loads", r.Perf["loads"], countedOps, 0.001)
			within(t, what+": LLC misses", r.Perf["llc-misses"], countedOps, 0.001)
			near, far := "local-loads", "remote-loads"
			if from != home {
				near, far = far, near
			}
			within(t, what+": "+near, r.Perf[near], countedOps, 0.001)
			if r.Perf[far] > 0.001*countedOps {
				t.Errorf("%s: %s: got %.0f, want none", what, far, r.Perf[far])
			}
			within(t, what+": cycles", r.Perf["cycles"], countedOps*(latencyUnder(g.Shape, from, home, chasing)+1), 0.01)
		}
	}
}

// Data that fits into a cache stays in it, wherever the kernel finds pages for it. An L2
// of 64 KiB holds four pages of one colour, so eight may not fit. Everything else in the
// guest runs on node 0; another node's caches are quieter.
func countCaches(t *testing.T, g *Guest) {
	node := deviceNode(g.Shape)
	cpu, _ := g.Shape.Nodes[node].CPUs.First()
	for _, c := range []struct{ ws, event string }{{"4KiB", "l1-misses"}, {"16KiB", "l2-misses"}, {"128KiB", "llc-misses"}} {
		r := runLoad(t, g, "chase", "--threads", "1", "--ws", c.ws, "--ops", fmt.Sprint(countedOps), "--bind-cpu", fmt.Sprint(cpu),
			"--perf", "loads,"+c.event)
		within(t, c.ws+": loads", r.Perf["loads"], countedOps, 0.001)
		if r.Perf[c.event] > 0.005*countedOps {
			t.Errorf("%s: %s: got %.0f of %d loads, want next to none", c.ws, c.event, r.Perf[c.event], countedOps)
		}
	}
}

func countStream(t *testing.T, g *Guest) {
	r := runLoad(t, g, "stream", "--threads", "1", "--ws", "4MiB", "--ops", fmt.Sprint(countedOps), "--bind-cpu", "0", "--bind-mem", "0",
		"--perf", "llc-misses,local-loads")
	within(t, "stream: LLC misses", r.Perf["llc-misses"], countedOps, 0.001)
	within(t, "stream: local loads", r.Perf["local-loads"], countedOps, 0.001)
	r = runLoad(t, g, "stream", "--write", "--threads", "1", "--ws", "4MiB", "--ops", fmt.Sprint(countedOps), "--bind-cpu", "0", "--bind-mem", "1",
		"--perf", "stores,remote-stores")
	within(t, "stream --write: stores", r.Perf["stores"], countedOps, 0.001)
	within(t, "stream --write: remote stores", r.Perf["remote-stores"], countedOps, 0.001)
}

type labStatus struct {
	State     string   `json:"state"`
	Model     uint64   `json:"model_cycles"`
	MHz       uint64   `json:"mhz"`
	LinkLines []uint64 `json:"link_lines"`
	Lines     []uint64 `json:"mc_lines"`
}

func status(t *testing.T, g *Guest) labStatus {
	t.Helper()
	var s labStatus
	if err := json.Unmarshal([]byte(mustRun(t, g, "homenode-load", "status")), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// Lines from the opposite corner of the ring travel over two links.
func TestLabLinks(t *testing.T) {
	t.Parallel()
	g := guest(t, "four", "v2")
	mustRun(t, g, "homenode-load", "control", "on")
	defer mustRun(t, g, "homenode-load", "control", "off")
	before := status(t, g)
	runLoad(t, g, "chase", "--threads", "1", "--ws", "4MiB", "--ops", fmt.Sprint(countedOps), "--bind-cpu", "0", "--bind-mem", "3", "--perf", "loads")
	after := status(t, g)
	// the measured laps, the warm lap, and building the chain (a read for ownership a line, and more)
	var busy []int
	for i := range after.LinkLines {
		if after.LinkLines[i]-before.LinkLines[i] >= countedOps {
			busy = append(busy, i)
		}
	}
	if want := g.Shape.Routes()[0][3]; len(busy) != 2 || !sameSet(busy, want) {
		t.Errorf("links that carried a million lines: %v, want %v", busy, want)
	}
}

func sameSet(a, b []int) bool {
	seen := map[int]bool{}
	for _, x := range a {
		seen[x] = true
	}
	for _, x := range b {
		if !seen[x] {
			return false
		}
	}
	return len(a) == len(b)
}

// The guest's clock is the model's: a sleep and a computation take equally long by either
// clock, model on or off, and the tick comes at its rate.
func TestLabOneClock(t *testing.T) {
	t.Parallel()
	g := variant(t, "four", func(*Options) {}) // a guest of its own: daemons and perf events of other tests also have timers
	for _, state := range []string{"on", "off"} {
		for what, busy := range map[string]string{"asleep": "sleep 3", "busy": "homenode-load spin --threads 4 --cpus 0-3 --seconds 3"} {
			out := strings.Fields(mustRun(t, g, "sh", "-c", fmt.Sprintf(bothClocks, state, busy)))
			if len(out) != 6 {
				t.Fatalf("%s, %s: %q", state, what, out)
			}
			var v [6]float64
			for i, text := range out {
				v[i], _ = strconv.ParseFloat(text, 64)
			}
			guest, model, ticks := v[3]-v[0], (v[4]-v[1])/float64(g.Shape.Model.MHz)/1e6, v[5]-v[2]
			// programs start between the two readings, which takes some 10 ms of such a CPU
			if guest < 3 || math.Abs(guest-model) > 0.1 {
				t.Errorf("%s, %s: %.2f s by the guest's clock, %.3f s by the model's", state, what, guest, model)
			}
			t.Logf("%s, %s: %.0f ticks in %.2f s", state, what, ticks, guest)
			// an idle CPU has no tick, so before and after the load there are few; timers of
			// the kernel and of sleeping programs are included: 0 to 45 in 3 s while all is
			// asleep, by which of them this CPU has
			if what == "busy" && state == "on" && (ticks < 0.98*guestHZ*3 || ticks > (guestHZ+otherTimers)*guest) {
				t.Errorf("%s, %s: %.0f ticks in %.2f s, want %d a second", state, what, ticks, guest, guestHZ)
			}
		}
	}
}

const (
	guestHZ     = 250 // CONFIG_HZ of Debian's kernel
	otherTimers = 30  // a second, at most
)

// bothClocks prints /proc/uptime, the model's cycles and CPU 1's ticks, before and after.
const bothClocks = `
look() { cut -d" " -f1 /proc/uptime; homenode-load status | sed 's/.*"model_cycles":\([0-9]*\).*/\1/'; sed -n 's/^ *LOC: *[0-9]* *\([0-9]*\).*/\1/p' /proc/interrupts; }
homenode-load control %s > /dev/null
look; %s > /dev/null; look
homenode-load control off > /dev/null`

// A guest does not notice that a host, or a debugger, stops QEMU for a while: its clock
// also stood still.
func TestLabSuspended(t *testing.T) {
	t.Parallel()
	g := guest(t, "two", "v2")
	if err := g.setIdleRate(1); err != nil {
		t.Fatal(err)
	}
	defer g.setIdleRate(testIdleRate)
	before := g.seconds()
	done := make(chan string, 1)
	go func() {
		done <- mustRun(t, g, "sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10; do cut -d' ' -f1 /proc/uptime; sleep 0.2; done")
	}()
	time.Sleep(500 * time.Millisecond)
	stop := 5 * time.Second
	if os.Getenv("HOMENODE_SUSPEND") != "" {
		stop = time.Minute
	}
	if err := g.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	time.Sleep(stop)
	if err := g.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	last := 0.0
	for i, text := range strings.Fields(<-done) {
		now, err := strconv.ParseFloat(text, 64)
		if err != nil || i > 0 && (now-last < 0.19 || now-last > 0.6) {
			t.Errorf("look %d: %s after %.2f, want some 0.2 s later", i, text, last)
		}
		last = now
	}
	if passed := g.seconds() - before; passed > stop.Seconds() {
		t.Errorf("%.1f s of the guest's clock passed: it ran while QEMU was stopped for %v", passed, stop)
	}
}

// A guest whose memory is counted on the wrong node is refused.
func TestLabRefusesWrongNodeMap(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: no lab boot")
	}
	o := labOptionsFor(t, "two", "v2")
	wrong := shapeNamed(t, "two")
	wrong.Nodes[0].Memory *= 2 // the plugin assumes a start of node 1 that is too late
	o.modelConf = wrong.ModelConf()
	refused(t, o, "node map is wrong")
}

// Calibration reads its lines from DRAM whatever the size of the LLC, which replaces
// lines at random: it flushes by that size.
func TestLabFlushesLargerLLC(t *testing.T) {
	t.Parallel()
	g := variant(t, "two", func(o *Options) { o.Shape.Model.LLC *= 8 })
	mustRun(t, g, "homenode-load", "control", "on")
	got, err := parseTouched([]byte(mustRun(t, g, "taskset", "1", "homenode-load", "touch", "--node", "1", "--pages", "64")))
	if err != nil {
		t.Fatal(err)
	}
	within(t, "lines of node 1", float64(got.DRAM[1]), float64(got.Lines), 0.02)
}

func TestLabFetch(t *testing.T) {
	t.Parallel()
	talk(t, guest(t, "two", "v2"))
}

// talk carries files in and out, and a program's output and exit code.
func talk(t *testing.T, g *Guest) {
	t.Helper()
	want := strings.Repeat("0123456789abcdef", 20_000)
	if err := g.Put(t.Context(), "/tmp/x", 0o644, []byte(want)); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		got, err := g.Fetch(t.Context(), "/tmp/x")
		if err != nil || string(got) != want {
			t.Fatalf("%d bytes back, %v", len(got), err)
		}
	}
	if _, err := g.Fetch(t.Context(), "/tmp/none"); err == nil {
		t.Error("a missing file was fetched")
	}
	if r, err := g.Run(t.Context(), "sh", "-c", "echo out; echo err >&2; exit 3"); err != nil || r.Exit != 3 || r.Stdout != "out\n" || r.Stderr != "err\n" {
		t.Errorf("%+v, %v", r, err)
	}
}
