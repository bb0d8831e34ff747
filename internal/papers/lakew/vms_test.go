// SPDX-License-Identifier: Apache-2.0

package lakew

import (
	"slices"
	"testing"
)

// Each population has the paper's counts, and all of it fits on the machine.
func TestPopulations(t *testing.T) {
	for _, p := range []population{first, second} {
		cores := 0
		for _, s := range Sizes {
			if len(p[s.Name]) != s.Count {
				t.Errorf("%d %s VMs, want %d", len(p[s.Name]), s.Name, s.Count)
			}
			cores += s.Cores * s.Count
		}
		if cores != 256 || len(p.vms()) != 20 {
			t.Errorf("%d cores in %d VMs", cores, len(p.vms()))
		}
		for _, v := range p.vms() {
			if sizeOf("/"+v.name()) != v.size.Name || !slices.Contains(Applications, v.app) {
				t.Errorf("%s: size %q", v.name(), sizeOf("/"+v.name()))
			}
		}
	}
	if sizeOf("/other") != "" {
		t.Error("another workload has a size")
	}
	// Sizes are compared by these applications.
	for _, app := range []string{"stream", "sunflow", "derby", "fft"} {
		for _, s := range Sizes[:3] {
			if !slices.Contains(first[s.Name], app) && !slices.Contains(second[s.Name], app) {
				t.Errorf("%s is in no %s VM", app, s.Name)
			}
		}
	}
}

// A seed draws order and times, and nothing else. The same seed draws the same.
func TestArrivals(t *testing.T) {
	orders := map[string]bool{}
	for seed := range uint64(10) {
		vms, times := first.arrivals(seed)
		again, timesAgain := first.arrivals(seed)
		if !slices.Equal(vms, again) || !slices.Equal(times, timesAgain) {
			t.Fatalf("seed %d: not the same again", seed)
		}
		if !slices.IsSorted(times) || times[0] != 0 || times[len(times)-1] > fullWarmup/2 {
			t.Errorf("seed %d: they come at %v", seed, times)
		}
		var names []string
		for _, v := range vms {
			names = append(names, v.name())
		}
		orders[names[0]+names[1]+names[2]] = true
		slices.Sort(names)
		var want []string
		for _, v := range first.vms() {
			want = append(want, v.name())
		}
		slices.Sort(want)
		if !slices.Equal(names, want) {
			t.Errorf("seed %d: %v", seed, names)
		}
	}
	if len(orders) < 8 {
		t.Errorf("ten seeds drew %d orders", len(orders))
	}
}

func TestPart(t *testing.T) {
	p := first.without("huge").part(3)
	if len(p["small"]) != 4 || len(p["medium"]) != 2 || len(p["large"]) != 1 || len(p["huge"]) != 0 {
		t.Errorf("%v", p)
	}
}
