// SPDX-License-Identifier: Apache-2.0

package window

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"homenode/internal/action"
	"homenode/internal/schema"
	"homenode/internal/set"
	"homenode/internal/unit"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func bytesOn(amounts ...unit.Bytes) []unit.Value[unit.Bytes] {
	by := make([]unit.Value[unit.Bytes], len(amounts))
	for i, b := range amounts {
		by[i] = unit.Measured(b, "memory.numa_stat")
	}
	return by
}

func cpusOn(amounts ...float64) []unit.Value[float64] {
	by := make([]unit.Value[float64], len(amounts))
	for i, c := range amounts {
		by[i] = unit.Measured(c, "perf task-clock")
	}
	return by
}

// sample has every field set, so that the golden file shows every field.
func sample() Window {
	return Window{
		Schema: Schema, Seq: 7, At: time.Date(2026, 5, 4, 3, 2, 1, 500, time.UTC), Length: 2 * time.Second,
		Nodes: []Node{
			{
				ID: 0, CPUs: set.FromCPUs(0, 1), CPUBusy: unit.Measured(1.5, "/proc/stat"),
				Memory: unit.Measured(unit.GiB, "node0/meminfo"), Free: unit.Measured(512*unit.MiB, "node0/meminfo"),
				File: unit.Measured(64*unit.MiB, "node0/meminfo"), Anon: unit.Measured(256*unit.MiB, "node0/meminfo"),
			},
			{ID: 2, CPUs: set.FromCPUs(4, 5), CPUBusy: unit.UnknownValue[float64]("no /proc/stat")},
		},
		Workloads: []Workload{{
			ID: "/demo/a", Service: "a", Owner: "none", Approved: true, Target: unit.Some(unit.Ratio(0.9)),
			Tasks: unit.Measured(3, "cgroup.threads"), CPU: unit.Measured(1.0, "cpu.stat"), Quota: unit.Measured(1.5, "cpu.max"),
			CPUByNode: cpusOn(0.75, 0.25), AnonByNode: bytesOn(10*unit.MiB, 20*unit.MiB), FileByNode: bytesOn(10*unit.MiB, 0),
			Cycles: unit.Modelled(uint64(1000), "perf cycles"), Instructions: unit.Modelled(uint64(500), "perf instructions"),
			StallCycles: unit.Modelled(uint64(250), "perf r5a3"),
			LocalLoads:  unit.Modelled(uint64(30), "perf r1d3"), RemoteLoads: unit.Measured(uint64(10), "perf r2d3"),
			Binding: Binding{
				CPUs: set.FromCPUs(0, 1), Mems: set.FromNodes(0, 2), OursCPUs: true, OursMems: true,
				PinnedCPUs: true, PinnedMems: true, PinnedWhy: "numa_maps: bind:0",
			},
		}},
		Outcomes: []action.Outcome{{
			Step:   action.Step{Kind: action.SetCPUs, Workload: "/demo/a", CPUs: set.FromCPUs(0, 1), Reason: action.Reason{Rule: "mao.bind"}},
			Status: action.Done,
		}},
		Problems: []string{"read node2/meminfo: permission denied"},
	}
}

func TestWireForm(t *testing.T) {
	line, err := Encode(sample())
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := json.Indent(&got, append(line, '\n'), "", "  "); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "window.golden.json")
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("the wire form changed; raise Schema unless fields were only added (go test -update):\n%s", got.Bytes())
	}
	back, err := Decode(want)
	if err != nil || !reflect.DeepEqual(back, sample()) {
		t.Errorf("reads back as %+v, %v", back, err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	good, _ := Encode(sample())
	edit := func(old, new string) string { return strings.Replace(string(good), old, new, 1) }
	for _, c := range []struct{ in, want string }{
		{"", "unexpected end"}, {"null", "schema 0"}, {"{}", "schema 0"}, {`[]`, "cannot unmarshal"},
		{string(good) + "{}", "after top-level value"},
		{edit(`"schema":2`, `"schema":3,"new":1`), "schema 3, this homenode reads up to 2: written by a newer homenode"},
		{edit(`"seq":7`, `"sequence":7`), `unknown field "sequence"`},
		{edit(`"length_ns":2000000000`, `"length_ns":-1`), "length -1ns is negative"},
		{edit(`"id":2`, `"id":0`), "node 0 at position 1: ids must ascend"},
		{edit(`"id":"/demo/a"`, `"id":""`), "IDs must ascend"},
		{edit(`"target":0.9`, `"target":1.5`), "target 1.5 is not a share"},
		{edit(`"value":1.5`, `"value":-1.5`), "node 0: a figure is negative"},
		{edit(`"value":0.75`, `"value":-0.75`), `workload "/demo/a": a figure is negative`},
		{edit(`"cpu_by_node":[`, `"cpu_by_node":[{"value":1,"how":"measured"},`), "3 figures by node for 2 nodes"},
		{edit(`"how":"measured"`, `"how":"unknown"`), "one of them is wrong"},
	} {
		w, err := Decode([]byte(c.in))
		if err == nil || !strings.Contains(err.Error(), c.want) || !reflect.DeepEqual(w, Window{}) {
			t.Errorf("Decode(%.60q) = %v; want an error with %q", c.in, err, c.want)
		}
	}
	if _, err := Decode([]byte(`{"schema":9}`)); !errors.Is(err, schema.ErrNewer) {
		t.Errorf("got %v, want ErrNewer", err)
	}
	if _, err := Encode(Window{}); err == nil {
		t.Error("Encode wrote a window without a schema")
	}
}

func TestFeatures(t *testing.T) {
	w := sample().Workloads[0]
	f := FeaturesOf(w, 2*time.Second)
	if r, _ := f.LocalAccessRatio.Get(); r != 0.75 || f.LocalAccessRatio.How != unit.HowModelled {
		t.Errorf("local access ratio %v, want 0.75, as weak as its weaker counter", f.LocalAccessRatio)
	}
	if r, _ := f.LocalPageRatio.Get(); r != 0.5 || f.LocalPageRatio.How != unit.HowEstimated {
		t.Errorf("local page ratio %v, want 0.75·½ + 0.25·½", f.LocalPageRatio)
	}
	if f.MBW.Or(0) != 40*64/2 || f.MSR.Or(0) != 0.25 || f.NPMR.Or(0) != 0.75 || f.RMBR.Or(0) != 0.25 {
		t.Errorf("features %+v", f)
	}
}

func TestFeaturesWithoutCounters(t *testing.T) {
	w := sample().Workloads[0]
	w.RemoteLoads = unit.UnknownValue[uint64]("no perf")
	f := FeaturesOf(w, 2*time.Second)
	if f.LocalAccessRatio.How != unit.HowEstimated || f.LocalAccessRatio.Or(0) != 0.5 || f.MBW.Known() || f.RMBR.Known() {
		t.Errorf("without remote loads: %+v", f)
	}
	w.AnonByNode = nil
	if f = FeaturesOf(w, 0); f.LocalAccessRatio.Known() || f.NPMR.Known() {
		t.Errorf("without pages: %+v", f)
	}
	w.StallCycles = unit.Measured(uint64(1001), "perf")
	if f = FeaturesOf(w, 0); f.MSR.Known() || f.MSR.From != "more stall cycles than cycles" {
		t.Errorf("contradicting counters: %v", f.MSR)
	}
}

// Counters near 2⁶⁴ must not wrap into a wrong ratio.
func TestFeaturesDoNotWrap(t *testing.T) {
	w := Workload{LocalLoads: unit.Measured(uint64(math.MaxUint64), "x"), RemoteLoads: unit.Measured(uint64(math.MaxUint64), "x")}
	if r := FeaturesOf(w, time.Second).LocalAccessRatio.Or(0); r != 0.5 {
		t.Errorf("local access ratio %v, want 0.5", r)
	}
}

func TestLookups(t *testing.T) {
	w := sample()
	if i, ok := w.NodeIndex(2); i != 1 || !ok {
		t.Errorf("NodeIndex(2) = %d, %v", i, ok)
	}
	if _, ok := w.NodeIndex(1); ok {
		t.Error("node 1 does not exist")
	}
	if wl, ok := w.Workload("/demo/a"); !ok || wl.Service != "a" {
		t.Errorf("Workload = %+v, %v", wl, ok)
	}
	if _, ok := w.Workload("/demo/b"); ok {
		t.Error("/demo/b does not exist")
	}
	if pages, ok := w.Workloads[0].PagesByNode(); !ok || pages[0] != 20*unit.MiB || pages[1] != 20*unit.MiB {
		t.Errorf("PagesByNode = %v, %v", pages, ok)
	}
}

func FuzzDecode(f *testing.F) {
	good, _ := Encode(sample())
	f.Add(good)
	f.Add([]byte(`{"schema":1,"nodes":null,"workloads":null}`))
	f.Add([]byte(`{"schema":2}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		w, err := Decode(data)
		if err != nil {
			if !reflect.DeepEqual(w, Window{}) {
				t.Fatalf("error and value: %+v", w)
			}
			return
		}
		line, err := Encode(w)
		if err != nil {
			t.Fatalf("decoded but cannot be written: %v", err)
		}
		again, err := Decode(line)
		if err != nil {
			t.Fatalf("written but cannot be read: %v", err)
		}
		if line2, _ := Encode(again); !bytes.Equal(line, line2) {
			t.Fatalf("not stable:\n%s\n%s", line, line2)
		}
		for _, wl := range w.Workloads {
			FeaturesOf(wl, w.Length)
		}
	})
}
