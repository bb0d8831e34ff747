// SPDX-License-Identifier: Apache-2.0

package hotness

import (
	"context"
	"encoding/binary"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/kerneltest"
	"homenode/internal/kernel/sampling"
	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
)

// fakePMU puts the same samples into every ring when its event is disabled.
type fakePMU struct {
	unix.Sampling // what is not asked of it

	mu       sync.Mutex
	next     int
	rings    map[int]*fakeRing
	tasks    map[[2]int]bool
	period   []uint64
	samples  []byte
	counted  uint64
	noCPUs   bool // CPU-wide is not permitted
	noTasks  bool // single threads are not sampled (IBS before Linux 6.2)
	noStores bool
}

type fakeRing struct{ data []byte }

func (r *fakeRing) Take(into []byte) []byte {
	into, r.data = append(into, r.data...), nil
	return into
}
func (r *fakeRing) Close() error { return nil }

func (f *fakePMU) Open(*sys.PerfEventAttr, int, int, int) (int, error) { return 0, sys.EINVAL }
func (f *fakePMU) OpenDir(string) (int, error)                         { return 0, sys.ENOENT }
func (f *fakePMU) Close(int)                                           {}
func (f *fakePMU) Enable(int) error                                    { return nil }

func (f *fakePMU) OpenTask(attr *sys.PerfEventAttr, pid, cpu, _ int) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.noCPUs && pid < 0 {
		return 0, sys.EACCES
	}
	if f.noTasks && pid >= 0 {
		return 0, sys.EINVAL
	}
	if f.noStores && attr.Config == 0x82d0 {
		return 0, sys.ENOENT
	}
	f.next++
	f.tasks[[2]int{pid, cpu}] = true
	f.period = append(f.period, attr.Sample)
	return f.next, nil
}

func (f *fakePMU) Read(_ int, words []uint64) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	words[0] = f.counted
	return 1, nil
}

func (f *fakePMU) Ring(fd, _ int) (unix.Ring, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rings[fd] = &fakeRing{}
	return f.rings[fd], nil
}

func (f *fakePMU) Disable(fd int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rings[fd].data = f.samples
	return nil
}

// sampleOf is a record of addr's layout: ip, pid|tid, time, address, CPU, latency,
// source.
func sampleOf(pid int, at uint64) []byte {
	b := binary.LittleEndian.AppendUint32(nil, sys.PERF_RECORD_SAMPLE)
	b = binary.LittleEndian.AppendUint16(b, 2)
	b = binary.LittleEndian.AppendUint16(b, 8+7*8)
	for _, w := range []uint64{0x401000, uint64(pid)<<32 | uint64(pid), 1, at, 0, 100, 2} {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return b
}

func pmuSearch(t *testing.T, cfg Config) (*search, *fakePMU) {
	f := &fakePMU{rings: map[int]*fakeRing{}, tasks: map[[2]int]bool{}}
	f.samples = append(f.samples, sampleOf(fakePID, base+0x1010)...)
	f.samples = append(f.samples, sampleOf(fakePID, base+0x1020)...)
	f.samples = append(f.samples, sampleOf(fakePID, second(64)+0x212345)...)
	f.samples = append(f.samples, sampleOf(13, base+0x3000)...)       // not asked for
	f.samples = append(f.samples, sampleOf(fakePID, 0)...)            // not known
	f.samples = append(f.samples, sampleOf(fakePID, 1<<63|0x1000)...) // the kernel's
	cfg.Calls = f
	cfg.Sources = []string{Samples}
	return fakeSearch(t, kerneltest.Files{
		"/proc/12/smaps": smapsOf([3]int{64, 0, 0}, [3]int{4096, 0, 2048}), "/proc/12/task/12/": "", "/proc/12/task/14/": "",
		"/sys/devices/system/cpu/online":               "0-1\n",
		"/sys/bus/event_source/devices/cpu/identifier": "homenode-lab\n",
	}, cfg), f
}

func TestDecisionSamples(t *testing.T) {
	want := map[int][]span{12: {{base + 0x1000, base + 0x2000}, {second(64) + 0x1f0000, second(64) + 0x3f0000}}}
	for _, c := range []struct {
		about   string
		cfg     Config
		threads int // more than two
		set     func(*fakePMU)
		opened  [][2]int
		note    string
	}{
		{"threads", Config{}, 0, func(*fakePMU) {}, [][2]int{{12, -1}, {14, -1}}, ""},
		{"very many threads", Config{}, maxThreads, func(*fakePMU) {}, [][2]int{{-1, 0}, {-1, 1}}, ""},
		{"no privilege", Config{}, maxThreads, func(f *fakePMU) { f.noCPUs = true }, [][2]int{{12, -1}, {1000 + maxThreads - 1, -1}}, ""},
		{"no stores", Config{}, 0, func(f *fakePMU) { f.noStores = true }, [][2]int{{12, -1}, {14, -1}}, "Stores were not sampled"},
		{"a period of its own", Config{Period: 77}, 0, func(f *fakePMU) {}, [][2]int{{12, -1}, {14, -1}}, ""},
	} {
		c.cfg.For = 20 * time.Millisecond
		l, f := pmuSearch(t, c.cfg)
		c.set(f)
		for i := range c.threads {
			kerneltest.Write(t, l.root, kerneltest.Files{fmt.Sprintf("/proc/12/task/%d/", 1000+i): ""})
		}
		p, err := find(context.Background(), l, []int{fakePID})
		if err != nil {
			t.Errorf("%s: %v", c.about, err)
			continue
		}
		if !reflect.DeepEqual(p.spans, want) {
			t.Errorf("%s: %x, want %x", c.about, p.spans, want)
		}
		if h := p.Heat(); h.Source != "PMU samples" || h.How != unit.HowModelled || h.Unit != "page" || h.Bytes != 4096+2*unit.MiB {
			t.Errorf("%s: %+v", c.about, h)
		}
		if len(f.tasks) != len(c.opened) && len(f.tasks) != 2+c.threads || !f.tasks[c.opened[0]] || !f.tasks[c.opened[1]] {
			t.Errorf("%s: opened %v", c.about, f.tasks)
		}
		if notes := strings.Join(p.Notes(), "\n"); !strings.Contains(notes, c.note) || c.note == "" && notes != "" {
			t.Errorf("%s: notes %q", c.about, notes)
		}
		if c.cfg.Period != 0 && f.period[0] != c.cfg.Period {
			t.Errorf("%s: periods %v", c.about, f.period)
		}
	}
}

// AMD's kernels before 6.2 sample CPUs, not threads: those are taken then, and what is of
// other processes is dropped. On other CPUs a refusal stands.
func TestThreadsThatCannotBeSampled(t *testing.T) {
	for _, c := range []struct {
		cpu  kerneltest.Files
		want bool
	}{{kerneltest.CPUTree("zen-4"), true}, {kerneltest.Files{"/sys/bus/event_source/devices/cpu/identifier": "homenode-lab\n"}, false}} {
		l, f := pmuSearch(t, Config{For: 20 * time.Millisecond})
		kerneltest.Remove(t, l.root, "/sys/bus/event_source/devices/cpu/identifier")
		kerneltest.Write(t, l.root, c.cpu)
		f.noTasks = true
		p, err := find(context.Background(), l, []int{fakePID})
		if !c.want {
			if err == nil || len(f.tasks) != 0 {
				t.Errorf("%v, opened %v", err, f.tasks)
			}
			continue
		}
		if err != nil || len(p.spans) != 1 || len(p.spans[fakePID]) != 2 || !f.tasks[[2]int{-1, 0}] || !f.tasks[[2]int{-1, 1}] {
			t.Errorf("%v, %x, opened %v", err, p, f.tasks)
		}
	}
}

func TestDecisionSamplesTell(t *testing.T) {
	l, f := pmuSearch(t, Config{For: 20 * time.Millisecond, Least: 1000})
	f.samples = nil
	p, err := find(context.Background(), l, []int{fakePID})
	if err != nil || len(p.spans) != 0 || !strings.Contains(strings.Join(p.Notes(), ""), "No access of the processes was sampled") {
		t.Errorf("%v, %x, %q", err, p.spans, p.Notes())
	}
	s := samples{search: l, hits: map[page]hit{}, of: map[int]bool{fakePID: true}}
	// four loads of three pages; and as many stores as one likes, to a stack
	for _, addr := range []uint64{1, 4096, 8192, 8200} {
		s.take(sampling.Access{PID: fakePID, Addr: addr}, 100_000)
	}
	for range 100 {
		s.take(sampling.Access{PID: fakePID, Addr: 12288, Store: true}, leastPeriod)
	}
	l.notes = nil
	if s.tell(sampling.Stats{}); len(l.notes) != 1 || !strings.Contains(l.notes[0], "104 samples are few for 4 pages: about 48.8%") {
		t.Errorf("%q", l.notes)
	}
	l.cfg.Least = 3
	l.found = map[int][]span{}
	if s.judge(); !reflect.DeepEqual(l.found[fakePID], []span{{12288, 16384}}) {
		t.Errorf("%x", l.found)
	}
}

func TestDecisionPeriod(t *testing.T) {
	for _, c := range []struct {
		qualified uint64
		search    time.Duration
		cpus      int
		want      uint64
	}{
		{0, time.Second, 4, leastPeriod}, {1e9, time.Second, 4, 100_001}, {2e8, 200 * time.Millisecond, 100, 10_001}, {1 << 62, time.Second, 1, mostPeriod | 1},
	} {
		if got := periodFor(c.qualified, c.search, c.cpus, leastPeriod); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}
