// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/bpfcount"
	"homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/kerneltest"
	"homenode/internal/kernel/perf"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// countingPerf makes cycles and the like grow at each read, and knows what is open.
type countingPerf struct {
	open map[int]bool
	next int
	most int
	now  uint64
	deny error
	room int         // events of a group; 0: no end
	in   map[int]int // by leader
	bare bool        // a guest without the registers that some events need
}

func (p *countingPerf) OpenDir(string) (int, error) { p.next++; return p.next, nil }
func (p *countingPerf) Close(fd int)                { delete(p.open, fd) }
func (p *countingPerf) Open(attr *sys.PerfEventAttr, _, _, leader int) (int, error) {
	if p.deny != nil {
		return 0, p.deny
	}
	if p.bare && attr.Ext1 != 0 {
		return 0, sys.ENXIO
	}
	if p.room > 0 && leader >= 0 {
		if p.in[leader]+1 >= p.room {
			return 0, sys.EINVAL
		}
		p.in[leader]++
	}
	p.next++
	p.open[p.next] = true
	p.most = max(p.most, len(p.open))
	return p.next, nil
}
func (p *countingPerf) Read(_ int, words []uint64) (int, error) {
	words[0] = uint64(len(words) - 3)
	for i := range words[1:] {
		words[1+i] = p.now
	}
	return len(words), nil
}

// manyGroups is fakeV2 with n workloads.
func manyGroups(t *testing.T, n int) Root {
	root := fakeV2(t)
	for i := range n {
		dir := fmt.Sprintf("%s/demo/w%d", top, i)
		kerneltest.Write(t, root, kerneltest.Files{
			dir + "/cgroup.procs": "10\n", dir + "/cgroup.threads": "10\n", dir + "/cgroup.events": "populated 1\n", dir + "/cpu.stat": "usage_usec 1\n",
			dir + "/cpuset.cpus": "\n", dir + "/cpuset.mems": "\n", dir + "/cpuset.cpus.effective": "0-3\n", dir + "/cpuset.mems.effective": "0-1\n",
		})
	}
	return root
}

// readRounds reads windows a second apart.
func readRounds(t *testing.T, r *Reader, c *clock, p *countingPerf, n int, each func(window.Window)) {
	t.Helper()
	for range n {
		c.at, p.now = c.at.Add(time.Second), p.now+uint64(time.Second)
		w, err := r.Read(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		each(w)
	}
}

// With room for two of six, each is counted in turn, a figure that is not counted is
// unknown with a reason, and the budget holds.
func TestCountedInTurns(t *testing.T) {
	p := &countingPerf{open: map[int]bool{}}
	each := 4 * (len(perf.Generic().Events) + 1)
	r, c := newFake(t, manyGroups(t, 5), Config{Roots: []string{"/demo/*"}, Perf: p, Budget: perf.Budget{Files: 2*each + 1}})
	known := map[string]int{}
	readRounds(t, r, c, p, 30, func(w window.Window) {
		for _, wl := range w.Workloads {
			switch n, ok := wl.Cycles.Get(); {
			case ok && n == 0:
				t.Errorf("%s: zero for what was not counted", wl.ID)
			case ok:
				known[wl.ID]++
			case wl.Cycles.From == "":
				t.Errorf("%s: unknown without a reason", wl.ID)
			}
		}
		if !slices.ContainsFunc(w.Problems, func(s string) bool { return strings.Contains(s, "4 of 6 workloads wait") }) {
			t.Errorf("problems: %q", w.Problems)
		}
	})
	if len(known) != 6 || p.most > 2*each {
		t.Errorf("counted: %v; %d descriptors at most, want %d", known, p.most, 2*each)
	}
	for id, n := range known {
		if n < 4 {
			t.Errorf("%s was counted in %d windows of 30", id, n)
		}
	}
}

// A host without workloads knows why it would not count, and leaves nothing open.
func TestWhyNotCounted(t *testing.T) {
	lab := kerneltest.Files{"/sys/bus/event_source/devices/cpu/identifier": "homenode-lab\n"}
	for _, c := range []struct {
		cpu  kerneltest.Files
		perf *countingPerf
		off  bool
		want string
	}{
		{lab, &countingPerf{}, false, ""},
		{nil, &countingPerf{}, false, "no such event in the generic table" + notOnThisPMU},
		{lab, &countingPerf{deny: sys.EACCES}, false, "not permitted"},
		{lab, &countingPerf{}, true, "perf is switched off"},
	} {
		c.perf.open = map[int]bool{}
		root := fakeV2(t)
		kerneltest.Write(t, root, c.cpu)
		r, _ := newFake(t, root, Config{Roots: []string{"/none/*"}, Perf: c.perf, NoPerf: c.off})
		if got := r.WhyNotCounted(); !strings.Contains(got, c.want) || (got == "") != (c.want == "") || len(c.perf.open) != 0 {
			t.Errorf("%q, want %q; %d left open", got, c.want, len(c.perf.open))
		}
	}
}

// The events that classes are inferred from are counted where that is asked for. A PMU
// without room for them counts the rest, and says so. Where they were not asked for
// there is nothing.
func TestPenaltyIsCountedIfAskedFor(t *testing.T) {
	for _, try := range []struct {
		asked, want bool
		room        int
	}{{false, false, 0}, {true, true, 0}, {true, false, 7}} {
		asked := try.asked
		p := &countingPerf{open: map[int]bool{}, room: try.room, in: map[int]int{}}
		root := fakeV2(t)
		kerneltest.Write(t, root, kerneltest.Files{"/sys/bus/event_source/devices/cpu/identifier": "homenode-lab\n"})
		r, c := newFake(t, root, Config{Roots: []string{"/demo/*"}, Perf: p, Penalty: asked})
		readRounds(t, r, c, p, 3, func(w window.Window) {
			if w.Seq < 2 {
				return
			}
			wl := w.Workloads[0]
			for name, v := range map[string]unit.Value[uint64]{"requests": wl.UncoreRequests, "waits": wl.UncoreWaits, "misses": wl.LLCMisses} {
				if v.Known() != try.want || asked && !strings.Contains(v.From, "perf r") || asked && !try.want && !strings.Contains(v.From, "not counted on this PMU") {
					t.Errorf("%+v: %s is %+v", try, name, v)
				}
			}
			if !wl.LocalLoads.Known() {
				t.Errorf("%+v: loads are %+v", try, wl.LocalLoads)
			}
		})
	}
}

// Reads by node name the events that were opened: those of a guest without OFFCORE_RSP are
// retired loads. Where a package has two nodes, a ratio that is of the package says so.
func TestSourcesOfReadsByNode(t *testing.T) {
	onePackage := kerneltest.Files{}
	for cpu := range 4 {
		onePackage[fmt.Sprintf("/sys/devices/system/cpu/cpu%d/topology/physical_package_id", cpu)] = "0\n"
	}
	for _, c := range []struct {
		cpu   string
		bare  bool
		nodes kerneltest.Files
		local string
	}{
		{"power9", false, nil, "2 × perf r2c048"}, // lines of 128 bytes
		{"ice-lake", false, nil, "perf cpu/config=0x1b7,config1=0x104000477/"},
		{"ice-lake", true, nil, "perf r01d3"},
		{"granite-rapids", false, onePackage, "perf cpu/config=0x12a,config1=0x104004477/"},
		{"granite-rapids", true, onePackage, "perf r01d3 (local is the package here, not the node)"},
	} {
		p := &countingPerf{open: map[int]bool{}, in: map[int]int{}, bare: c.bare}
		root := fakeV2(t)
		kerneltest.Write(t, root, kerneltest.CPUTree(c.cpu))
		kerneltest.Write(t, root, c.nodes)
		r, fake := newFake(t, root, Config{Roots: []string{"/demo/*"}, Perf: p})
		readRounds(t, r, fake, p, 3, func(w window.Window) {
			wl, lines := w.Workloads[0], uint64(1)
			if strings.HasPrefix(c.local, "2 × ") {
				lines = 2
			}
			if v := wl.LocalLoads; w.Seq >= 2 && (!v.Known() || v.From != c.local || v.V.Or(0) != lines*wl.Cycles.Or(0)) {
				t.Errorf("%s, bare %v: %+v, want %q", c.cpu, c.bare, v, c.local)
			}
		})
	}
}

// A refusal is a problem of the window; the rest of the window is there.
func TestRefusedEvents(t *testing.T) {
	for _, errno := range []error{sys.EMFILE, sys.ENOSPC, sys.EACCES} {
		p := &countingPerf{open: map[int]bool{}, deny: errno}
		r, c := newFake(t, fakeV2(t), Config{Roots: []string{"/demo/*"}, Perf: p})
		readRounds(t, r, c, p, 1, func(w window.Window) {
			if len(w.Problems) == 0 || len(w.Workloads) != 1 || w.Workloads[0].Cycles.Known() || !w.Workloads[0].Tasks.Known() {
				t.Errorf("%v: %+v", errno, w)
			}
		})
	}
}

// On the running kernel, if it permits: windows come, and BPF counts or says why not.
func TestLiveBPFReader(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not root")
	}
	r, err := NewReader(Config{Events: EventsAuto})
	if err != nil {
		t.Skip(err)
	}
	defer r.Close()
	w, err := r.Read(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	bpf := collectorOf[*eventCollector](t, r).bpf
	if bpf == nil && len(w.Problems) == 0 {
		t.Error("not counted by BPF, and no problem says so")
	}
	t.Logf("BPF: %v, problems %q", bpf != nil, w.Problems)
}

// belowTree is a directory with c0 to c(n-1) below it, and sub below c0.
func belowTree(t *testing.T, n int) string {
	t.Helper()
	top := t.TempDir()
	for i := range n {
		if err := os.MkdirAll(fmt.Sprintf("%s/c%d/sub", top, i), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return top
}

// A cgroup that is itself a workload has a slot of its own, with those below it; more
// cgroups than are read are reported.
func TestBelow(t *testing.T) {
	top := belowTree(t, 3)
	none := func(string) bool { return false }
	if ids, all, err := below(top, none); len(ids) != 7 || !all || err != nil {
		t.Errorf("all: %d ids, %v, %v", len(ids), all, err)
	}
	if ids, all, _ := below(top, func(dir string) bool { return dir == top+"/c1" }); len(ids) != 5 || !all {
		t.Errorf("without a workload's: %d ids, %v", len(ids), all)
	}
	if ids, all, _ := below(belowTree(t, mostBelow), none); len(ids) != mostBelow || all {
		t.Errorf("too many: %d ids, all %v", len(ids), all)
	}
	if _, _, err := below(top+"/gone", none); err == nil {
		t.Error("of nothing")
	}
}

func TestOtherThan(t *testing.T) {
	c := &eventCollector{of: map[string]*eventSensor{"/demo": {}, "/demo/a": {}}}
	of := func(id, dir string) *eventSensor {
		return &eventSensor{c: c, w: &workload{Cgroup: cgroup.Cgroup{ID: id}, dir: dir}}
	}
	other := of("/demo", "/sys/fs/cgroup/demo").isOther
	for dir, want := range map[string]bool{"/sys/fs/cgroup/demo/a": true, "/sys/fs/cgroup/demo/b": false, "/sys/fs/cgroup/demo/a/b": false} {
		if other(dir) != want {
			t.Errorf("%s: %v", dir, !want)
		}
	}
	if !of("/", "/sys/fs/cgroup").isOther("/sys/fs/cgroup/demo") {
		t.Error("below the root")
	}
}

// Counts of a part of a workload are estimates, and name the part, also where each tick
// counts.
func TestPartly(t *testing.T) {
	for _, c := range []struct {
		ticks  int
		partly bool
		want   string
	}{
		{1, false, ""}, {1, true, ", of some of its cgroups"}, {16, false, ", in one of 16 ticks"}, {16, true, ", in one of 16 ticks, of some of its cgroups"},
	} {
		s := eventSensor{c: &eventCollector{cfg: Config{Ticks: c.ticks}}, partly: c.partly}
		if got := s.partOf(); got != c.want {
			t.Errorf("%d, %v: %q", c.ticks, c.partly, got)
		}
	}
}

// liveBPF is a reader of the running kernel that counts cgroups by BPF, which the test
// makes below a new one.
func liveBPF(t *testing.T, slots int) (r *Reader, events *eventCollector, top string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("not root")
	}
	layout, err := cgroup.Find(Root{})
	if err != nil || layout.NeedCpuset() != nil {
		t.Skipf("no cpuset: %v", err)
	}
	id := fmt.Sprintf("/homenode-test-%d", os.Getpid())
	top = layout.Path(layout.Cpuset, id, "")
	if err := os.Mkdir(top, 0o755); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { os.Remove(top) })
	if r, err = NewReader(Config{Events: EventsBPF, Roots: []string{id}, Ticks: 1}); err != nil {
		t.Skip(err)
	}
	t.Cleanup(r.Close)
	events = collectorOf[*eventCollector](t, r)
	c := bpfcount.Config{CPUs: r.Machine().OnlineCPUs().IDs(), Slots: slots} // the clock alone: any machine has it
	if !layout.Cpuset.V2 {
		c.Controller = "cpuset"
	}
	if events.bpf, err = bpfcount.New(c); err != nil {
		t.Skip(err)
	}
	events.slots, events.topology = slots, r.topology.Reads
	return r, events, top
}

// A workload that makes cgroups without end does not fill the map for others: ended
// cgroups free their slots, and when there are too many at once the map is made again.
func TestLiveBPFChurn(t *testing.T) {
	r, events, top := liveBPF(t, 2) // room for eight
	made := func(n int) func() {
		for i := range n {
			if err := os.Mkdir(fmt.Sprintf("%s/c%d", top, i), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		return func() {
			for i := range n {
				os.Remove(fmt.Sprintf("%s/c%d", top, i))
			}
		}
	}
	r.meet(cgroup.Cgroup{ID: "/" + filepath.Base(top)})
	s := events.of["/"+filepath.Base(top)]
	for i := range 5 {
		remove := made(4)
		err := s.takeSlot()
		remove()
		if err != nil || s.partly || events.full {
			t.Fatalf("round %d: %v, partly %v", i, err, s.partly)
		}
	}
	defer made(9)()
	if err := s.takeSlot(); !errors.Is(err, bpfcount.ErrFull) || !s.partly || !events.full {
		t.Fatalf("nine below: %v", err)
	}
	events.growBPF(1)
	if events.slots <= 2 || s.slot != 0 {
		t.Fatalf("not made again, of %d slots", events.slots)
	}
	if events.bpf == nil {
		t.Skipf("no PMU to count with: %v", r.problems)
	}
	if err := s.takeSlot(); err != nil || s.partly {
		t.Errorf("with %d slots: %v", events.slots, err)
	}
}
