// SPDX-License-Identifier: Apache-2.0

package interference

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"homenode/internal/machine"
	"homenode/internal/policy/vmmap"
	"homenode/internal/unit"
	"homenode/internal/window"
	"homenode/internal/window/windowtest"
)

// Counters of 10⁹ cycles in caches of 4 MiB.
var programs = map[string]string{
	"sheep":  "cycles=1000000000 instructions=1000000000 requests=100000 local=10000 remote=0 waits=10000000 llc=256KiB",
	"rabbit": "cycles=1000000000 instructions=800000000 requests=8000000 local=100000 remote=0 waits=500000000 llc=3MiB",
	"devil":  "cycles=1000000000 instructions=500000000 requests=20000000 local=19800000 remote=0 waits=500000000 llc=3MiB",
}

func host(t *testing.T, size unit.Bytes) *windowtest.Host {
	t.Helper()
	h := &windowtest.Host{}
	h.Shape([]int{0, 1}, 2, 4*unit.GiB)
	for i := range h.Machine.Nodes {
		h.Machine.LLCs = append(h.Machine.LLCs, machine.Cache{Level: 3, CPUs: h.Machine.Nodes[i].CPUs, Size: unit.Some(size)})
		for k := range h.Machine.CPUs {
			if h.Machine.Nodes[i].CPUs.Has(h.Machine.CPUs[k].ID) {
				h.Machine.CPUs[k].LLC = unit.Some(i)
			}
		}
	}
	return h
}

func runs(t *testing.T, h *windowtest.Host, line string) {
	t.Helper()
	if _, err := h.Line("workload " + line); err != nil {
		t.Fatal(err)
	}
}

func see(t *testing.T, s *Study, w window.Window) {
	t.Helper()
	if err := s.Window(w); err != nil {
		t.Fatal(err)
	}
}

func TestStudy(t *testing.T) {
	h := host(t, 4*unit.MiB)
	s := New(h.Machine, vmmap.DefaultConfig().Infer)
	for what, figures := range programs {
		runs(t, h, "/"+what+" tasks=1 cpu=1 cpus=0-1 "+figures)
	}
	for i := range 6 {
		if i == 4 { // a workload that is gone is still reported
			if _, err := h.Line("gone /sheep"); err != nil {
				t.Fatal(err)
			}
			runs(t, h, "/late tasks=1 cpu=1 cpus=0-1 "+programs["devil"])
		}
		see(t, s, h.Window())
	}
	r := s.Result()
	text, err := json.Marshal(r)
	if err != nil || r.Windows != 6 || len(r.Workloads) != 4 || !strings.Contains(string(text), `"schema":1`) {
		t.Fatalf("%v: %s", err, text)
	}
	for i, want := range []struct {
		class     vmmap.Class
		id, doubt string
	}{{vmmap.Devil, "/devil", ""}, {vmmap.Sheep, "/sheep", ""}, {vmmap.Unknown, "/late", "2 of the 3 windows"}, {vmmap.Unknown, "/rabbit", "it was never seen with less of a cache"}} {
		wl := r.Workloads[i]
		if wl.Class != want.class || wl.ID != want.id || wl.ID != "/late" && (wl.Hurt.How != unit.HowEstimated || wl.Low != wl.High || !wl.Low.Known() || !wl.HurtRange.Known()) {
			t.Errorf("%s: %+v", want.id, wl)
		}
		if (wl.Doubt != "") != (want.doubt != "") || !strings.HasPrefix(wl.Doubt, want.doubt) {
			t.Errorf("%s is in doubt: %q", want.id, wl.Doubt)
		}
	}
	if r.Workloads[1].Windows != 4 || !r.Workloads[1].At.Before(r.To) {
		t.Errorf("the workload that is gone: %+v", r.Workloads[1])
	}
}

// Each missing counter is named; nothing is shown as 0.
func TestStudyInDoubt(t *testing.T) {
	for missing, want := range map[string]string{
		"waits": "waits for memory", "local": "reads from memory", "requests": "beyond the private caches", "cycles": "its cycles are not counted",
	} {
		h := host(t, 4*unit.MiB)
		s := New(h.Machine, vmmap.DefaultConfig().Infer)
		runs(t, h, "/a tasks=1 cpu=1 cpus=0-1 "+programs["rabbit"])
		runs(t, h, "/a "+missing+"=?")
		for range 5 {
			see(t, s, h.Window())
		}
		r := s.Result()
		wl := r.Workloads[0]
		if noted := strings.Contains(strings.Join(r.Notes, ""), "--penalty"); noted != (missing == "waits" || missing == "requests") {
			t.Errorf("without %s: notes %q", missing, r.Notes)
		}
		if wl.Class != vmmap.Unknown || !strings.Contains(wl.Doubt, want) || wl.Hurt.Known() || wl.Hurt.From != wl.Doubt {
			t.Errorf("without %s: %+v", missing, wl)
		}
	}
	h := host(t, 4*unit.MiB)
	s := New(h.Machine, vmmap.DefaultConfig().Infer)
	runs(t, h, "/idle tasks=1 cpu=0 cpus=0-1 cycles=0 instructions=0 requests=0 local=0 remote=0 waits=0")
	see(t, s, h.Window())
	if r := s.Result(); r.Workloads[0].Doubt != "it did not run while it was counted" || len(r.Notes) != 0 {
		t.Errorf("the idle workload: %+v, notes %q", r.Workloads[0], r.Notes)
	}
	h = host(t, 0)
	h.Machine.LLCs = nil
	for k := range h.Machine.CPUs {
		h.Machine.CPUs[k].LLC = unit.None[int]()
	}
	s = New(h.Machine, vmmap.DefaultConfig().Infer)
	runs(t, h, "/a tasks=1 cpu=1 cpus=0-1 "+programs["rabbit"])
	for range 5 {
		see(t, s, h.Window())
	}
	if wl := s.Result().Workloads[0]; !strings.Contains(wl.Doubt, "never seen with less of a cache") {
		t.Errorf("without caches: %+v", wl)
	}
}

func TestSample(t *testing.T) {
	h := host(t, 4*unit.MiB)
	s := New(h.Machine, vmmap.DefaultConfig().Infer)
	runs(t, h, "/a tasks=1 cpu=1 cpus=0-1 "+programs["rabbit"])
	see(t, s, h.Window())
	if _, err := s.Sample("/a"); err == nil || !strings.Contains(err.Error(), "in 1 windows: want 3") {
		t.Errorf("after one window: %v", err)
	}
	see(t, s, h.Window())
	see(t, s, h.Window())
	sample, err := s.Sample("/a")
	if err != nil || sample.Requests.Or(0) != 0.008 {
		t.Errorf("%v: %+v", err, sample)
	}
	if _, err := s.Sample("/b"); err == nil {
		t.Error("a sample of an unknown workload")
	}
	if ids := s.IDs(); len(ids) != 1 || ids[0] != "/a" {
		t.Errorf("IDs: %v", ids)
	}
}

func TestAnother(t *testing.T) {
	h := host(t, 4*unit.MiB)
	s := New(h.Machine, vmmap.DefaultConfig().Infer)
	if why := s.Another(host(t, 4*unit.MiB).Machine); why != "" {
		t.Errorf("the same: %s", why)
	}
	if why := s.Another(host(t, 8*unit.MiB).Machine); !strings.Contains(why, "caches") {
		t.Errorf("other caches: %q", why)
	}
	far := host(t, 4*unit.MiB)
	far.Machine.Distances[0][1] = unit.Some(40)
	if why := s.Another(far.Machine); !strings.Contains(why, "distances") {
		t.Errorf("another distance: %q", why)
	}
	other := host(t, 4*unit.MiB)
	other.Shape([]int{0, 1, 2}, 2, unit.GiB)
	if why := s.Another(other.Machine); !strings.Contains(why, "CPUs") {
		t.Errorf("more nodes: %q", why)
	}
}

// Another program runs under the same name: the class of the old one is in doubt until
// there is one of the new.
func TestStudyOfTwoPrograms(t *testing.T) {
	h := host(t, 4*unit.MiB)
	s := New(h.Machine, vmmap.DefaultConfig().Infer)
	runs(t, h, "/a tasks=1 cpu=1 cpus=0-1 "+programs["devil"])
	for range 5 {
		see(t, s, h.Window())
	}
	runs(t, h, "/a "+programs["sheep"])
	changed := false
	for n := range 12 {
		see(t, s, h.Window())
		wl := s.Result().Workloads[0]
		switch {
		case wl.Class == vmmap.Sheep:
			if wl.Doubt != "" {
				t.Errorf("window %d: %+v", n, wl)
			}
			return
		case wl.Doubt != "":
			changed = true
			if !strings.Contains(wl.Doubt, "the class is from before") {
				t.Errorf("window %d: %+v", n, wl)
			}
		case changed || n >= 2: // two odd windows may be chance
			t.Errorf("window %d: it is a sheep now: %+v", n, wl)
		}
	}
	t.Error("it is a sheep for twelve windows, and not said to be one")
}

// A workload that was absent for a while keeps its class, but its occupancy of a cache is
// unknown.
func TestStudyGoesOn(t *testing.T) {
	h := host(t, 4*unit.MiB)
	s := New(h.Machine, vmmap.DefaultConfig().Infer)
	const counted = "/a tasks=1 cpu=1 cpus=0-1 cycles=1000000000 instructions=500000000 requests=20000000 local=19800000 remote=0 waits=500000000"
	runs(t, h, counted)
	for range 5 {
		see(t, s, h.Window())
	}
	before := s.Result().Workloads[0]
	if before.Class != vmmap.Devil || before.Held != unit.HowEstimated {
		t.Fatalf("%+v", before)
	}
	if _, err := h.Line("gone /a"); err != nil {
		t.Fatal(err)
	}
	see(t, s, h.Window())
	runs(t, h, strings.Replace(counted, "local=19800000", "local=100", 1))
	see(t, s, h.Window())
	if is := s.Result().Workloads[0]; is.Class != vmmap.Devil || is.Windows < before.Windows {
		t.Errorf("back again: %+v", is)
	}
	if b := s.seen["/a"].memory.Look.Bounds[0]; b.High-b.Low < 0.5 {
		t.Errorf("it may hold anything after it was away: %+v", b)
	}
}

// Recordings in the wrong order, or one given twice, would be counted wrongly.
func TestStudyRefusesThePast(t *testing.T) {
	h := host(t, 4*unit.MiB)
	s := New(h.Machine, vmmap.DefaultConfig().Infer)
	runs(t, h, "/a tasks=1 cpu=1 cpus=0-1 "+programs["devil"])
	first := h.Window()
	see(t, s, first)
	see(t, s, h.Window())
	s.Recording()
	if err := s.Window(first); err == nil || !strings.Contains(err.Error(), "order") {
		t.Errorf("a window twice: %v", err)
	}
	runs(t, h, "/a llc=? local=100")
	later := h.Window()
	later.At = first.At.Add(-time.Minute) // the clock was set
	s.fresh = false
	see(t, s, later)
	if b := s.seen["/a"].memory.Look.Bounds[0]; b.Low > 0.9 {
		t.Errorf("bounds go on over a step of the clock: %+v", b)
	}
	if r := s.Result(); r.Windows != 3 {
		t.Errorf("%+v", r)
	}
}

// With an eighth of a cache a workload does not show what it would do with all of it.
func TestStudySqueezed(t *testing.T) {
	for _, c := range []struct {
		held string
		want bool
	}{{"512KiB", true}, {"3MiB", false}} {
		h := host(t, 4*unit.MiB)
		s := New(h.Machine, vmmap.DefaultConfig().Infer)
		runs(t, h, "/a tasks=1 cpu=1 cpus=0-1 "+programs["devil"]+" llc="+c.held)
		for range 5 {
			see(t, s, h.Window())
		}
		wl := s.Result().Workloads[0]
		if doubt := strings.Contains(wl.Doubt, "never seen with more than 12.5% of a cache"); doubt != c.want || wl.Class != vmmap.Devil {
			t.Errorf("with %s: %+v", c.held, wl)
		}
	}
}
