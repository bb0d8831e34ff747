// SPDX-License-Identifier: Apache-2.0

package resctrl

import (
	"errors"
	"maps"
	"reflect"
	"testing"

	"homenode/internal/kernel/kerneltest"
	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
)

func TestParseCount(t *testing.T) {
	for text, want := range map[string]Count{
		"39206912\n": {Bytes: 39206912}, "0": {}, "Unavailable\n": {Word: "Unavailable"}, "Error\n": {Word: "Error"}, "Unassigned\n": {Word: "Unassigned"},
		"18446744073709551615\n": {Bytes: 1<<64 - 1},
	} {
		if got, err := ParseCount([]byte(text)); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "-1", "12 13", "unavailable", "18446744073709551616"} {
		if got, err := ParseCount([]byte(text)); !errors.Is(err, unix.ErrMalformed) || got != (Count{}) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

// The texts are those of Documentation/filesystems/resctrl.rst.
func TestParseSchemata(t *testing.T) {
	for text, want := range map[string]string{
		"  L3DATA:0=fffff;1=fffff;2=3c0;3=fffff\n  L3CODE:0=fffff;1=fffff;2=fffff;3=fffff\n": "L3CODE:0=fffff;1=fffff;2=fffff;3=fffff\nL3DATA:0=fffff;1=fffff;2=3c0;3=fffff",
		"    MB:0=2048;1=  16;2=2048;3=2048\n    L3:0=ffff;1=ffff;2=ffff;3=ffff\n":           "L3:0=ffff;1=ffff;2=ffff;3=ffff\nMB:0=2048;1=16;2=2048;3=2048",
		"L3:0=00ff;\nMYSTERY:what=ever\n":                                                    "L3:0=ff",
		"":                                                                                   "",
	} {
		got, err := ParseSchemata([]byte(text))
		if err != nil || got.String() != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"L3", "L3:", "L3:0=fg", "L3:0=f;0=f", "L3:0=f\nL3:0=f", "MB:0=f", "L3:uninitialized", "L3:-1=f", "L3:0=10000000000000000", ":0=f"} {
		if got, err := ParseSchemata([]byte(text)); !errors.Is(err, unix.ErrMalformed) || got != nil {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	a, _ := ParseSchemata([]byte("L3:0=f\n"))
	b, _ := ParseSchemata([]byte("L3:0=f;1=ff\nMB:0=10"))
	if !a.Within(b) || b.Within(a) {
		t.Error("Within")
	}
}

func TestParseBitUsage(t *testing.T) {
	got, err := ParseBitUsage([]byte("0=XXSSEE00;1=SSSSSSSP\n"), 8)
	if want := map[int]uint64{0: 0x0c, 1: 1}; err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	for _, text := range []string{"0=XX", "0=XXSSEE0?", "XXSSEE00", "x=XXSSEE00"} {
		if got, err := ParseBitUsage([]byte(text), 8); err == nil || got != nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestNames(t *testing.T) {
	for id, want := range map[string]string{
		"/demo/a":         "homenode-mon-demo_a-",
		"/x y/\n../émile": "homenode-mon-x_y_____",
	} {
		got := MonName(id)
		if !IsMon(got) || IsControl(got) || len(got) > 100 || got[:len(want)] != want {
			t.Errorf("%q: %q", id, got)
		}
		if c := ControlName(id); !IsControl(c) || IsMon(c) {
			t.Errorf("%q: %q", id, c)
		}
	}
	for _, name := range []string{"homenode-mon-test", "homenode-mon-", "mon", "homenode-mon-a-00000000000000zz", "my-homenode-mon-a-0000000000000000"} {
		if IsMon(name) {
			t.Errorf("%q is not ours", name)
		}
	}
	if MonName("/a/b") == MonName("/a_b") || MonName("/a") == MonName("/a/") {
		t.Error("two workloads have one name")
	}
}

// A recorded tree of an AMD machine with assignable counters, and one of an Intel one.
func TestReadInfo(t *testing.T) {
	files := kerneltest.Files{
		"/proc/self/mountinfo": "99 31 0:50 / /sys/fs/resctrl rw,relatime shared:9 - resctrl resctrl rw,mba_MBps\n",
	}
	for name, text := range map[string]string{
		"L3/num_closids": "16", "L3/cbm_mask": "ffff", "L3/min_cbm_bits": "1", "L3/shareable_bits": "0", "L3/sparse_masks": "1", "L3/bit_usage": "0=SSSSSSSSSSSSSSSS;1=SSSSSSSSSSSSSSEE",
		"MB/num_closids": "16", "MB/min_bandwidth": "1", "MB/bandwidth_gran": "1", "L3_MON/num_rmids": "256", "L3_MON/mon_features": "llc_occupancy\nmbm_total_bytes\nmbm_total_bytes_config\nmbm_local_bytes",
		"L3_MON/max_threshold_occupancy": "524288", "L3_MON/mbm_assign_mode": "[mbm_event]\ndefault", "L3_MON/available_mbm_cntrs": "0=30;1=28",
	} {
		files["/sys/fs/resctrl/info/"+name] = text + "\n"
	}
	root := kerneltest.Tree(t, files)
	mount, err := Find(root)
	if err != nil || !mount.MBps {
		t.Fatal(mount, err)
	}
	got, err := ReadInfo(At(root, mount))
	want := Info{
		Monitoring: Monitoring{RMIDs: 256, Features: []string{"llc_occupancy", "mbm_total_bytes", "mbm_total_bytes_config", "mbm_local_bytes"}, Limbo: unit.Some(unit.Bytes(524288)), Counters: unit.Some(28)},
		Resources: []Limit{
			{Name: "L3", CLOSIDs: 16, Mask: 0xffff, MinBits: 1, Sparse: true, Taken: map[int]uint64{1: 3}},
			{Name: "MB", CLOSIDs: 16, Least: 1, Step: 1},
		},
	}
	if err != nil || !reflect.DeepEqual(got, want) || got.CLOSIDs() != 16 {
		t.Errorf("%+v, %v", got, err)
	}
	kerneltest.Write(t, root, kerneltest.Files{"/sys/fs/resctrl/info/L3/cbm_mask": "what\n"})
	if _, err := ReadInfo(At(root, mount)); !errors.Is(err, unix.ErrMalformed) {
		t.Error(err)
	}
	if _, err := Live(unix.Live{}, mount); !errors.Is(err, unix.ErrNotSupported) {
		t.Error("acts on a tree without the kernel's token")
	}
}

func TestFind(t *testing.T) {
	mounts := kerneltest.Files{"/proc/self/mountinfo": "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"}
	if _, err := Find(kerneltest.Tree(t, mounts)); err != ErrNoResctrl {
		t.Error(err)
	}
	if _, err := Find(kerneltest.Tree(t, mounts.With(kerneltest.Files{"/sys/fs/resctrl/": ""}))); err != ErrNotMounted {
		t.Error(err)
	}
}

func FuzzParseCount(f *testing.F) {
	f.Add([]byte("39206912\n"))
	f.Add([]byte("Unavailable\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := ParseCount(data)
		if err != nil && c != (Count{}) {
			t.Error("an error with a value")
		}
	})
}

func FuzzParseSchemata(f *testing.F) {
	f.Add([]byte("    MB:0=100;1= 50\n    L3:0=fffff;1=0000f\n"))
	f.Add([]byte("L3DATA:0=f\nL3CODE:0=f\nSMBA:0=2048"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := ParseSchemata(data)
		if err != nil {
			if s != nil {
				t.Error("an error with a value")
			}
			return
		}
		back, err := ParseSchemata([]byte(s.String()))
		if err != nil || !reflect.DeepEqual(back, s) {
			t.Errorf("%q: %v, %v", s, back, err)
		}
	})
}

func FuzzParseBitUsage(f *testing.F) {
	f.Add([]byte("0=XXSSEE00;1=SSSSSSSP\n"), 8)
	f.Fuzz(func(t *testing.T, data []byte, ways int) {
		if ways < 0 || ways > 64 {
			return
		}
		if got, err := ParseBitUsage(data, ways); err != nil && got != nil {
			t.Error("an error with a value")
		}
	})
}
