// SPDX-License-Identifier: Apache-2.0

package resctrl

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	sys "golang.org/x/sys/unix"

	"homenode/internal/action"
	"homenode/internal/kernel/kerneltest"
	"homenode/internal/machine"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// bench is a host of cgroups with threads, under a fake resctrl.
type bench struct {
	t    *testing.T
	fs   *kerneltest.Resctrl
	mon  *Monitor
	tids map[string][]int
	now  time.Time
	err  error
	// Each workload moves rate bytes a window per thread; of its loads, counted are
	// counted.
	rate    map[string]uint64
	counted map[string]bool
}

func newBench(t *testing.T, fs *kerneltest.Resctrl, cfg Config, n, threads int) *bench {
	t.Helper()
	b := &bench{t: t, fs: fs, tids: map[string][]int{}, rate: map[string]uint64{}, counted: map[string]bool{}, now: time.Unix(1000, 0)}
	for i := range n {
		id := fmt.Sprintf("/w/%03d", i)
		for k := range threads {
			b.tids[id] = append(b.tids[id], 1000*(i+1)+k)
		}
		fs.Start(b.tids[id]...)
		b.rate[id], b.counted[id] = 64_000_000, true
	}
	b.open(cfg)
	return b
}

func (b *bench) open(cfg Config) {
	b.t.Helper()
	var err error
	if b.mon, err = New(b.fs, b.fs, cfg, machine.Machine{}); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) of(dst []int, id string) ([]int, error) {
	if b.tids[id] == nil {
		return dst, fmt.Errorf("read %s: %w", id, sys.ENOENT)
	}
	return append(dst, b.tids[id]...), nil
}

// ratioOfLoads: loads show half of what moves.
const ratioOfLoads = 2

// round moves a window's bytes for all workloads, and reads it.
func (b *bench) round() window.Window {
	b.now = b.now.Add(10 * time.Second)
	b.fs.Tick()
	w := window.Window{At: b.now, Length: 10 * time.Second}
	for id, tids := range b.tids {
		for _, tid := range tids {
			b.fs.Moves(tid, 0, b.rate[id], b.rate[id]/4)
		}
		wl := window.Workload{ID: id, CPU: unit.Measured(1.0, "cpu.stat")}
		if b.counted[id] {
			all := b.rate[id] * uint64(len(tids)) / 64 / ratioOfLoads
			wl.LocalLoads, wl.RemoteLoads = unit.Measured(all/4, "pmu"), unit.Measured(all-all/4, "pmu")
		}
		w.Workloads = append(w.Workloads, wl)
	}
	slices.SortFunc(w.Workloads, func(x, y window.Workload) int { return strings.Compare(x.ID, y.ID) })
	b.err = b.mon.Round(&w, b.now, b.of)
	return w
}

func (b *bench) rounds(n int) (w window.Window) {
	for range n {
		if w = b.round(); b.err != nil {
			b.t.Fatal(b.err)
		}
	}
	return w
}

func get(w window.Window, id string) window.Workload { wl, _ := w.Workload(id); return wl }

func TestMeasured(t *testing.T) {
	fs := kerneltest.NewResctrl()
	fs.Stale = true
	b := newBench(t, fs, Config{}, 3, 4)
	for n, want := range []bool{false, false, true, true} { // a group; a base; figures
		wl := get(b.rounds(1), "/w/001")
		if wl.Traffic.Known() != want || wl.LLC.Known() != want {
			t.Fatalf("round %d: %v, %v", n, wl.Traffic, wl.LLC)
		}
		if !want {
			if wl.Traffic.From == "" || wl.LLC.From == "" {
				t.Errorf("round %d: no reason", n)
			}
			continue
		}
		if wl.Traffic.Or(0) != 256e6 || wl.LocalTraffic.Or(0) != 64e6 || wl.Traffic.How != unit.HowMeasured {
			t.Errorf("round %d: %v, %v", n, wl.Traffic, wl.LocalTraffic)
		}
	}
	if err := b.mon.Close(); err != nil || len(fs.Groups()) != 0 {
		t.Errorf("%v: %v is left", err, fs.Groups())
	}
}

// Forked threads are in the group by themselves. A thread from outside is added, and the
// window in which it came is an estimate. A thread that leaves goes back.
func TestFollow(t *testing.T) {
	fs := kerneltest.NewResctrl()
	b := newBench(t, fs, Config{}, 2, 2)
	b.rounds(3)
	const id = "/w/000"
	fs.Fork(1000, 77)
	b.tids[id] = append(b.tids[id], 77)
	if wl := get(b.rounds(1), id); wl.Traffic.Or(0) != 192e6 || wl.Traffic.How != unit.HowMeasured {
		t.Errorf("a fork: %v", wl.Traffic)
	}
	fs.Start(88)
	b.tids[id] = append(b.tids[id], 88)
	if wl := get(b.rounds(1), id); wl.Traffic.Or(0) != 192e6 || wl.Traffic.How != unit.HowEstimated || !strings.Contains(wl.Traffic.From, "1 of its threads") {
		t.Errorf("a newcomer: %v", wl.Traffic)
	}
	if wl := get(b.rounds(1), id); wl.Traffic.Or(0) != 256e6 || wl.Traffic.How != unit.HowMeasured {
		t.Errorf("after it: %v", wl.Traffic)
	}
	b.tids[id] = []int{1000, 77, 99} // 1001 ended, 88 left, 99 has ended by now
	fs.End(1001)
	fs.Start(99)
	b.mon.acts = &vanishing{fs, 99}
	b.rounds(1)
	if fs.Group(88) != "" || fs.Group(77) == "" {
		t.Errorf("88 is in %q, 77 in %q", fs.Group(88), fs.Group(77))
	}
}

// vanishing ends a thread just before it is moved.
type vanishing struct {
	*kerneltest.Resctrl
	tid int
}

func (v *vanishing) Write(file, text string) error {
	if text == fmt.Sprint(v.tid) {
		return &errno{sys.ESRCH}
	}
	return v.Resctrl.Write(file, text)
}

type errno struct{ error }

func (e *errno) Unwrap() error { return e.error }

// What another process has grouped is left alone, and so are its groups.
func TestOthers(t *testing.T) {
	fs := kerneltest.NewResctrl()
	b := newBench(t, fs, Config{}, 4, 2)
	must(t, fs.Make("theirs"), fs.Make("mon_groups/pqos"), fs.Make("mon_groups/homenode-mon-mine"), fs.Write("theirs/tasks", "1000"), fs.Write("mon_groups/pqos/tasks", "2001"))
	w := b.rounds(4)
	for id, where := range map[string]string{"/w/000": `"theirs"`, "/w/001": `"mon_groups/pqos"`} {
		if wl := get(w, id); wl.Traffic.Known() || !strings.Contains(wl.Traffic.From, where) || !strings.Contains(wl.Traffic.From, "left alone") {
			t.Errorf("%s: %v", id, wl.Traffic)
		}
	}
	if fs.Group(1000) != "theirs" || fs.Group(1001) != "" || fs.Group(2001) != "mon_groups/pqos" || fs.Group(3000) == "" {
		t.Error("another process's task was moved, or ours was not")
	}
	// Another process takes one of our threads: from then on it is left alone.
	must(t, fs.Write("theirs/tasks", "3000"))
	if wl := get(b.rounds(1), "/w/002"); wl.Traffic.How != unit.HowEstimated || !strings.Contains(wl.LLC.From, "theirs") || fs.Group(3000) != "theirs" || fs.Group(3001) != "" {
		t.Errorf("%v; %q %q", wl.Traffic, fs.Group(3000), fs.Group(3001))
	}
	must(t, b.mon.Close())
	if got := strings.Join(fs.Groups(), " "); got != "mon_groups/homenode-mon-mine mon_groups/pqos theirs" {
		t.Error(got)
	}
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// What a killed homenode left is removed by the next one; a recorded tree is only read.
func TestLeftovers(t *testing.T) {
	fs := kerneltest.NewResctrl()
	b := newBench(t, fs, Config{}, 3, 1)
	b.rounds(2)
	if len(fs.Groups()) != 3 {
		t.Fatal(fs.Groups())
	}
	other, err := New(fs, nil, Config{}, machine.Machine{}) // beside it, reading
	must(t, err)
	running := b.mon
	for range 3 {
		b.mon = running
		b.rounds(1)
		b.mon = other
		w := window.Window{Workloads: []window.Workload{{ID: "/w/001"}}}
		must(t, other.Round(&w, b.now, b.of))
		t.Log(w.Workloads[0].Traffic)
	}
	w := window.Window{Workloads: []window.Workload{{ID: "/w/001"}}}
	fs.Moves(2000, 1, 5e6, 0)
	must(t, other.Round(&w, b.now.Add(time.Second), b.of))
	if w.Workloads[0].Traffic.Or(0) != 5e6 {
		t.Errorf("the reader: %v", w.Workloads[0].Traffic)
	}
	must(t, other.Close())
	if len(fs.Groups()) != 3 {
		t.Error("a reader removed groups")
	}
	b.open(Config{}) // running was killed
	if len(fs.Groups()) != 0 {
		t.Error(fs.Groups())
	}
}

// More workloads than RMIDs: all get their turn, large ones more often, approved ones
// sooner. Those without a group are estimated by what was learnt of them.
func TestRotation(t *testing.T) {
	fs := kerneltest.NewResctrl()
	fs.RMIDs, fs.Limbo = 8, 1 // default, 2 reserved: 5
	service := func(id string) (string, bool) { return "s", id == "/w/017" }
	b := newBench(t, fs, Config{Service: service}, 20, 1)
	b.rate["/w/003"] *= 20
	turns, first := map[string]int{}, map[string]int{}
	estimated := 0
	for n := 1; n <= 400; n++ {
		w := b.rounds(1)
		if len(fs.Groups()) > 5 {
			t.Fatalf("%d groups", len(fs.Groups()))
		}
		for _, wl := range w.Workloads {
			v, ok := wl.Traffic.Get()
			if wl.Traffic.How == unit.HowMeasured {
				turns[wl.ID]++
				if first[wl.ID] == 0 {
					first[wl.ID] = n
				}
			}
			if n > 10 && !ok && wl.Traffic.From != "resctrl: its group is new, and the first reading is only a base" {
				t.Fatalf("round %d, %s: %v", n, wl.ID, wl.Traffic)
			}
			if want := b.rate[wl.ID]; ok && math.Abs(float64(v)-float64(want)) > 1e-6*float64(want) {
				t.Fatalf("round %d, %s: %v, want %d", n, wl.ID, wl.Traffic, want)
			}
			if wl.Traffic.How == unit.HowEstimated {
				estimated++
			}
		}
	}
	least := 400
	for id := range b.tids {
		least = min(least, turns[id])
	}
	if least < 20 || turns["/w/003"] < 2*turns["/w/005"] || estimated < 1000 {
		t.Errorf("%v, %d estimated", turns, estimated)
	}
	if first["/w/017"] > 4 {
		t.Errorf("the approved one was measured in round %d first", first["/w/017"])
	}
	t.Log(turns)
}

// No RMID is available: no other workload loses its group, and it is tried less and less
// often.
func TestLimbo(t *testing.T) {
	fs := kerneltest.NewResctrl()
	b := newBench(t, fs, Config{}, 3, 1)
	tries := 0
	fs.Before = func(op, name string) error {
		if op == "make" && strings.Contains(name, "002") {
			tries++
			return sys.EBUSY
		}
		return nil
	}
	w := b.rounds(40)
	if tries > 8 || tries < 4 || !get(w, "/w/000").Traffic.Known() {
		t.Errorf("%d tries, %v", tries, get(w, "/w/000").Traffic)
	}
	if from := get(w, "/w/002").Traffic.From; !strings.Contains(from, "device or resource busy") {
		t.Error(from)
	}
}

// Impossible figures are unknown, whatever they look like.
func TestUnbelievable(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(fs *kerneltest.Resctrl, g string)
		want string
	}{
		"backwards":   {func(fs *kerneltest.Resctrl, g string) { fs.Counts(g, 1).Total -= 1 << 20 }, "backwards in domain 1"},
		"wrap":        {func(fs *kerneltest.Resctrl, g string) { fs.Counts(g, 0).Total += 1 << 45 }, "can carry"},
		"unavailable": {func(fs *kerneltest.Resctrl, g string) { fs.Words["mbm_total_bytes"] = "Unavailable" }, "Unavailable in domain 0"},
		"unassigned":  {func(fs *kerneltest.Resctrl, g string) { fs.Words["mbm_total_bytes"] = "Unassigned" }, "Unassigned"},
		"stands":      {func(fs *kerneltest.Resctrl, g string) { fs.Counts(g, 0).Total -= 256e6 }, "stood still"},
		"hotplug":     {func(fs *kerneltest.Resctrl, g string) { fs.Domains = fs.Domains[:1] }, "changed"},
		"local":       {func(fs *kerneltest.Resctrl, g string) { fs.Counts(g, 0).Local += 1 << 30 }, ""},
	} {
		fs := kerneltest.NewResctrl()
		b := newBench(t, fs, Config{}, 1, 2)
		id, g := "/w/000", "mon_groups/"+MonName("/w/000")
		fs.Moves(1000, 1, 1<<30, 1<<30)
		b.rounds(1)
		fs.Counts(g, 1).Total = 1 << 30
		b.rate[id] = 128_000_000
		b.rounds(3)
		if b.mon.past[id].proxy.total.windows == 0 {
			t.Fatal(name)
		}
		b.mon.past[id].proxy = proxy{} // no estimate in the way
		c.do(fs, g)
		wl := get(b.rounds(1), id)
		if c.want == "" {
			if !wl.Traffic.Known() || wl.LocalTraffic.Known() || !strings.Contains(wl.LocalTraffic.From, "more than the total") {
				t.Errorf("%s: %v, %v", name, wl.Traffic, wl.LocalTraffic)
			}
			continue
		}
		if wl.Traffic.Known() || !strings.Contains(wl.Traffic.From, c.want) {
			t.Errorf("%s: %v", name, wl.Traffic)
		}
		if name == "unavailable" {
			delete(fs.Words, "mbm_total_bytes")
			b.rounds(1)
			if wl := get(b.rounds(1), id); wl.Traffic.How != unit.HowMeasured {
				t.Errorf("%s: it does not come back: %v", name, wl.Traffic)
			}
		}
	}
}

// A workload that is isolated is counted in its own control group.
func TestIsolated(t *testing.T) {
	fs := kerneltest.NewResctrl()
	b := newBench(t, fs, Config{}, 2, 2)
	b.rounds(3)
	dir := ControlName("/w/000")
	must(t, fs.Make(dir), fs.Write(dir+"/schemata", "L3:0=f0000;1=ff000\nMB:0=30;1=100"), fs.Write(dir+"/tasks", "1000"), fs.Write(dir+"/tasks", "1001"))
	b.rounds(2)
	wl := get(b.rounds(1), "/w/000")
	if wl.Traffic.How != unit.HowMeasured || wl.Traffic.Or(0) != 128e6 || wl.Class == nil || *wl.Class != (action.Class{Cache: 0.2, Bandwidth: 0.3}) {
		t.Errorf("%v, %v", wl.Traffic, wl.Class)
	}
	if got := strings.Join(fs.Groups(), " "); got != dir+" mon_groups/"+MonName("/w/001") {
		t.Error(got)
	}
	must(t, fs.Remove(dir))
	if wl := get(b.rounds(1), "/w/000"); wl.Class != nil {
		t.Error(wl.Class)
	}
	if wl := get(b.rounds(2), "/w/000"); wl.Traffic.How != unit.HowMeasured {
		t.Error(wl.Traffic)
	}
}

// Of two workloads, one above the other, only one has a group.
func TestNested(t *testing.T) {
	fs := kerneltest.NewResctrl()
	b := newBench(t, fs, Config{}, 1, 2)
	b.tids["/w/000/below"] = []int{1001}
	w := b.rounds(4)
	n := 0
	for _, wl := range w.Workloads {
		if wl.Traffic.How == unit.HowMeasured {
			n++
		} else if !strings.Contains(wl.Traffic.From, "counted with those of /w/000") {
			t.Errorf("%s: %v", wl.ID, wl.Traffic)
		}
	}
	if n != 1 {
		t.Errorf("%d have groups", n)
	}
}

// Every operation may fail, once or from then on: no panic, no group of another process
// is touched, no figure is wrong, and nothing of ours is left in the end.
func TestEveryFailure(t *testing.T) {
	for _, lasting := range []bool{false, true} {
		for stop := 1; ; stop++ {
			fs := kerneltest.NewResctrl()
			fs.RMIDs = 6
			must(t, fs.Make("theirs"))
			fs.Start(5)
			must(t, fs.Write("theirs/tasks", "5"))
			ops := 0
			b := newBench(t, fs, Config{}, 4, 2)
			fs.Before = func(op, name string) error {
				if strings.HasPrefix(name, "theirs") && (op == "write" || op == "remove") {
					t.Fatalf("%s %s", op, name)
				}
				if ops++; ops == stop || lasting && ops > stop && ops < stop+40 {
					return []error{sys.ENOENT, sys.EIO, sys.EBUSY, sys.EPERM, sys.ENODEV}[stop%5]
				}
				return nil
			}
			for range 8 {
				for _, wl := range b.round().Workloads {
					if v, ok := wl.Traffic.Get(); ok && wl.Traffic.How == unit.HowMeasured && v != 128e6 {
						t.Fatalf("stop %d: %v", stop, wl.Traffic)
					}
				}
			}
			done := ops < stop
			fs.Before = nil
			_ = b.mon.Close()
			b.open(Config{})
			if got := strings.Join(fs.Groups(), " "); got != "theirs" || fs.Group(5) != "theirs" {
				t.Fatalf("stop %d: %s", stop, got)
			}
			if done {
				t.Logf("%d operations", stop)
				break
			}
		}
	}
}

func TestDomains(t *testing.T) {
	m := machine.Machine{
		CPUs: []machine.CPU{{ID: 0, Node: unit.Some(0)}, {ID: 1, Node: unit.Some(1)}, {ID: 2, Node: unit.Some(1)}},
		LLCs: []machine.Cache{{Level: 3, ID: unit.Some(0), CPUs: set.FromCPUs(0, 1)}, {Level: 3, ID: unit.Some(4), CPUs: set.FromCPUs(2)}, {Level: 2, ID: unit.Some(9), CPUs: set.FromCPUs(2)}},
	}
	got := DomainsOf(m)
	if len(got) != 2 || got[0].Nodes != set.FromNodes(0, 1) || got[1].ID != 4 || got[1].Nodes != set.FromNodes(1) {
		t.Errorf("%+v", got)
	}
	// A cache of two nodes, and a kernel that does not distinguish them.
	fs := kerneltest.NewResctrl()
	b := newBench(t, fs, Config{}, 1, 1)
	b.mon.clusters = severalNodes(got)
	b.round()
	b.round()
	if w := b.round(); get(w, "/w/000").Traffic.Known() || !strings.Contains(get(w, "/w/000").Traffic.From, "before 6.11") {
		t.Error(get(w, "/w/000").Traffic)
	}
}

// What a killed homenode left is removed; groups of others stay.
func TestRemoveMons(t *testing.T) {
	fs := kerneltest.NewResctrl()
	b := newBench(t, fs, Config{}, 3, 1)
	b.round()
	if err := errors.Join(fs.Make("mon_groups/theirs"), fs.Make("mon_groups/homenode-mon-mine"), fs.Make("pqos")); err != nil {
		t.Fatal(err)
	}
	if left, err := ReadGroups(fs); err != nil || len(left.Mons) == 0 {
		t.Fatalf("no group to be removed: %+v, %v", left, err)
	}
	for range 2 {
		if err := removeMons(fs); err != nil {
			t.Fatal(err)
		}
		mons, _ := fs.Dirs(monGroups)
		slices.Sort(mons)
		if dirs, _ := fs.Dirs(""); !slices.Equal(mons, []string{"homenode-mon-mine", "theirs"}) || !slices.Contains(dirs, "pqos") {
			t.Fatalf("left: %v, %v", mons, dirs)
		}
	}
}
