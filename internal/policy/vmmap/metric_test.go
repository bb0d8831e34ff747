// SPDX-License-Identifier: Apache-2.0

package vmmap

import (
	"fmt"
	"strings"
	"testing"

	"homenode/internal/unit"
	"homenode/internal/window"
	"homenode/internal/window/windowtest"
)

// host has a rabbit on one node; a workload that another process pinned runs on the other.
func host(t *testing.T) *windowtest.Host {
	t.Helper()
	h := &windowtest.Host{}
	h.Shape([]int{0, 1}, 4, 16*unit.GiB)
	giveCaches(&h.Machine, 4*unit.MiB)
	come(t, h, "/a", 2, "rabbit")
	if _, err := h.Line(`workload /b tasks=4 cpu=4 cpus=4-7 pinned-cpus="taskset"`); err != nil {
		t.Fatal(err)
	}
	return h
}

func come(t *testing.T, h *windowtest.Host, id string, cpus int, what string) {
	t.Helper()
	if _, err := h.Line(fmt.Sprintf("workload %s tasks=%d cpu=%d anon=1GiB", id, cpus, cpus)); err != nil {
		t.Fatal(err)
	}
	if err := is(h, id, what); err != nil {
		t.Fatal(err)
	}
}

// acts reports whether a VM is moved once a rabbit's counters are these, its neighbour has
// turned into a devil, and there is room elsewhere.
func acts(t *testing.T, metric Metric, counters string) bool {
	t.Helper()
	h := host(t)
	s := &script{cfg: DefaultConfig()}
	s.cfg.Metric, s.cfg.CoolDown = metric, h0
	s.tick(h, 10)
	come(t, h, "/c", 2, "sheep")
	s.tick(h, 10)
	come(t, h, "/c", 2, "devil")
	if _, err := h.Line("workload /a " + counters); err != nil {
		t.Fatal(err)
	}
	h.Remove("/b")
	return strings.Contains(s.tick(h, 12), "animal.interference")
}

// The metric decides. Instructions per cycle fall where memory is slower for all, misses
// per instruction do not; where misses cost nothing it is the other way round.
func TestMetricDecides(t *testing.T) {
	for _, c := range []struct {
		what, counters string
		ipc, mpi       bool
	}{
		{"as it was", "instructions=800000000 requests=8000000 local=100000 waits=500000000", false, false},
		{"slower, with as many misses", "instructions=520000000 requests=5200000 local=65000 waits=500000000", true, false},
		{"as fast, with more misses", "instructions=800000000 requests=8000000 local=300000 waits=500000000", false, true},
	} {
		if ipc, mpi := acts(t, IPC, c.counters), acts(t, MPI, c.counters); ipc != c.ipc || mpi != c.mpi {
			t.Errorf("%s: IPC acts %v, MPI %v; want %v, %v", c.what, ipc, mpi, c.ipc, c.mpi)
		}
	}
}

// threadsOf makes threads with these instructions and requests.
func threadsOf(figures ...[2]uint64) *window.Workload {
	w := &window.Workload{}
	for _, f := range figures {
		w.Threads = append(w.Threads, window.Thread{Instructions: unit.Measured(f[0], "test"), UncoreRequests: unit.Measured(f[1], "test")})
	}
	return w
}

// Threads that wait for the slowest have more instructions for the same requests.
func TestWaiting(t *testing.T) {
	for _, c := range []struct {
		what      string
		w         *window.Workload
		spins     bool
		intensity float64
	}{
		{"alike", threadsOf([2]uint64{1e6, 1e4}, [2]uint64{1e6, 1.1e4}), false, 0.011},
		{"slower, not waiting", threadsOf([2]uint64{1e6, 1e4}, [2]uint64{5e5, 5e3}), false, 0.01},
		{"one waits", threadsOf([2]uint64{1e6, 1e4}, [2]uint64{2e6, 1e4}), true, 0.01},
		{"one alone", threadsOf([2]uint64{1e6, 1e4}), false, -1},
		{"too little to tell", threadsOf([2]uint64{1e6, 900}, [2]uint64{1e6, 100}), false, -1},
		{"threads not read", &window.Workload{}, false, -1},
	} {
		spins, intensity := waiting(c.w, 0.25)
		if spins != c.spins || intensity.Or(-1) != c.intensity {
			t.Errorf("%s: %v %v", c.what, spins, intensity)
		}
	}
}

// A VM that spins is not judged by its instructions, and its reason says so.
func TestSpinnerIsNotJudged(t *testing.T) {
	h := host(t)
	s := &script{cfg: DefaultConfig()}
	s.tick(h, 10)
	h.Load("/a").Threads = threadsOf([2]uint64{1e8, 1e6}, [2]uint64{3e8, 1e6}).Threads
	if out := s.tick(h, 1); !strings.Contains(out, "/a animal.keep.spin") {
		t.Error(out)
	}
	if got := s.st.VMs[0].Pace.Now; got.Known() {
		t.Errorf("its pace is %v", got)
	}
}
