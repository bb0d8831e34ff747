// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"homenode/internal/kernel/kerneltest"
	"homenode/internal/kernel/resctrl"
	"homenode/internal/unit"
)

const mounted = "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n99 31 0:50 / /sys/fs/resctrl rw - resctrl resctrl rw\n"

// A tree without the kernel's token is only read: a running homenode's group is found
// by its name, and no other is made.
func TestTrafficOfATree(t *testing.T) {
	root := fakeV2(t)
	const top = "/sys/fs/resctrl"
	group := top + "/mon_groups/" + resctrl.MonName("/demo/a")
	counter := func(total, local, llc string) {
		data := group + "/mon_data/mon_L3_00/"
		kerneltest.Write(t, root, kerneltest.Files{data + "mbm_total_bytes": total + "\n", data + "mbm_local_bytes": local + "\n", data + "llc_occupancy": llc + "\n"})
	}
	counter("1000", "900", "4096")
	kerneltest.Write(t, root, kerneltest.Files{
		"/proc/self/mountinfo":         mounted,
		top + "/info/L3_MON/num_rmids": "16\n", top + "/info/L3_MON/mon_features": "llc_occupancy\nmbm_total_bytes\nmbm_local_bytes\n",
		top + "/mon_data/": "", group + "/tasks": "10\n11\n",
	})
	r, c := newFake(t, root, Config{})
	step := func() { c.at = c.at.Add(time.Second); read(t, r) }
	step()
	counter("51000", "40900", "8192")
	c.at = c.at.Add(time.Second)
	w := read(t, r)
	wl := w.Workloads[0]
	if wl.Traffic != unit.Measured(unit.Bytes(50000), "resctrl mbm_total_bytes") || wl.LocalTraffic.Or(0) != 40000 || wl.LLC.Or(0) != 8192 {
		t.Errorf("%v, %v, %v; %v", wl.Traffic, wl.LocalTraffic, wl.LLC, w.Problems)
	}
	r.Close()
	if names, err := os.ReadDir(root.Path(top + "/mon_groups")); err != nil || len(names) != 1 {
		t.Errorf("%v, %v", names, err)
	}
}

func TestTrafficIsMissed(t *testing.T) {
	root := fakeV2(t)
	r, _ := newFake(t, root, Config{})
	if w := read(t, r); len(w.Problems) != 0 && strings.Contains(strings.Join(w.Problems, ""), "resctrl") || !strings.Contains(w.Workloads[0].Traffic.From, "neither RDT nor QoS") {
		t.Errorf("%v, %v", w.Problems, w.Workloads[0].Traffic)
	}
	kerneltest.Write(t, root, kerneltest.Files{"/sys/fs/resctrl/": ""})
	r, _ = newFake(t, root, Config{})
	if w := read(t, r); !strings.Contains(strings.Join(w.Problems, ""), "mount -t resctrl") {
		t.Error(w.Problems)
	}
	if w := read(t, r); !strings.Contains(strings.Join(w.Problems, ""), "mount -t resctrl") {
		t.Error(w.Problems)
	}
	r, _ = newFake(t, root, Config{Resctrl: resctrl.Config{Live: Live()}}) // an agent says it once
	for n := range 2 {
		w := read(t, r)
		said := slices.ContainsFunc(w.Problems, func(p string) bool { return strings.Contains(p, "mount -t resctrl resctrl /sys/fs/resctrl") })
		if said != (n == 0) || !strings.Contains(w.Workloads[0].Traffic.From, "mount -t resctrl") {
			t.Errorf("%d: %v, %v", n, w.Problems, w.Workloads[0].Traffic)
		}
	}
	r, _ = newFake(t, root, Config{Resctrl: resctrl.Config{Off: true}})
	if w := read(t, r); w.Workloads[0].LLC.From != "resctrl is switched off" || len(w.Problems) > 1 {
		t.Errorf("%v, %v", w.Problems, w.Workloads[0].LLC)
	}
}
