// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"homenode/internal/machine"
	"homenode/internal/schema"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
)

func sample() Snapshot {
	bytesOn := func(by ...unit.Bytes) []unit.Bytes { return by }
	s := Snapshot{
		Schema: Schema, At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Length: time.Second,
		Machine: machine.Machine{
			Origin: "fake:test", Nodes: []machine.Node{{ID: 0, CPUs: set.FromCPUs(0, 1)}, {ID: 2, CPUs: set.FromCPUs(2)}},
			Distances: [][]unit.Opt[int]{{unit.Some(10), unit.Some(21)}, {unit.Some(21), unit.Some(10)}},
			CPUs:      []machine.CPU{{ID: 0, Node: unit.Some(0), Online: true}, {ID: 2, Node: unit.Some(2), Online: true}},
		},
		Window:     window.Window{Schema: 1, Nodes: []window.Node{{ID: 0}, {ID: 2}}, Workloads: []window.Workload{{ID: "/a"}}},
		Nodes:      []Node{{ID: 0, Memory: Kinds{Total: unit.Measured(unit.GiB, "meminfo")}}, {ID: 2}},
		Hypervisor: unit.Measured("kvm", "dmi"),
		Groups:     []Group{{ID: "/a", PIDs: []int{7}}},
		Processes:  []Process{{PID: 7, Name: "x", Mappings: []Mapping{{Start: 4096, Kind: Anon, Policy: "default", ByNode: bytesOn(1, 2)}}}},
		IRQs:       []IRQ{{Number: "9", Counts: []uint64{1, 2}}},
		Samples:    Samples{Why: "no PMU"},
	}
	s.Processes[0].ByKind[Anon] = bytesOn(4096, 0)
	return s
}

func TestRoundTrip(t *testing.T) {
	line, err := Encode(sample())
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(line)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := Encode(got); err != nil || !bytes.Equal(line, again) {
		t.Errorf("%v\n%s\n%s", err, line, again)
	}
	if got.Processes[0].Mappings[0].Kind != Anon || got.Machine.Nodes[1].ID != 2 {
		t.Errorf("%+v", got)
	}
}

func TestDecodeRefuses(t *testing.T) {
	edit := func(change func(*Snapshot)) Snapshot { s := sample(); change(&s); return s }
	for _, c := range []struct {
		s    Snapshot
		want string
	}{
		{edit(func(s *Snapshot) { s.Schema = 0 }), "schema 0"},
		{edit(func(s *Snapshot) { s.Length = -1 }), "negative"},
		{edit(func(s *Snapshot) { s.Window.Nodes = nil }), "0 of the window"},
		{edit(func(s *Snapshot) { s.Nodes[1].ID = 1 }), "position 1"},
		{edit(func(s *Snapshot) { s.Nodes[0].Memory.Free = unit.Measured(unit.Bytes(-1), "x") }), "node 0"},
		{edit(func(s *Snapshot) { s.Nodes[0].Traffic.Busy = unit.Measured(unit.Ratio(2), "x") }), "not a share"},
		{edit(func(s *Snapshot) { s.Machine.CPUs[1].ID = 0 }), "cpu 0"},
		{edit(func(s *Snapshot) { s.Machine.Distances = s.Machine.Distances[:1] }), "distances"},
		{edit(func(s *Snapshot) { s.Groups = nil }), "0 groups"},
		{edit(func(s *Snapshot) { s.Groups[0].ID = "/b" }), "/b"},
		{edit(func(s *Snapshot) { s.Processes[0].PID = 0 }), "process 0"},
		{edit(func(s *Snapshot) { s.Processes[0].Mappings[0].ByNode = []unit.Bytes{1} }), "process 7"},
		{edit(func(s *Snapshot) { s.IRQs[0].Counts = []uint64{1} }), "irq"},
		{edit(func(s *Snapshot) { s.Samples.Lines = []Line{{Stores: []uint64{1}}} }), "line"},
	} {
		if _, err := Encode(c.s); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	for _, c := range []struct{ text, want string }{
		{"", "JSON"}, {`{"schema":1,"colour":1}`, "colour"}, {`{"schema":1} x`, "after top-level"},
		{`{"schema":1,"processes":[{"mappings":[{"kind":"red"}]}]}`, "red"},
	} {
		if s, err := Decode([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) || !reflect.DeepEqual(s, Snapshot{}) {
			t.Errorf("%s: %v, want %q", c.text, err, c.want)
		}
	}
	if _, err := Decode([]byte(`{"schema":2,"colour":1}`)); !errors.Is(err, schema.ErrNewer) {
		t.Errorf("newer: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	good, err := Encode(sample())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"schema":1,"window":{"schema":1}}`))
	f.Add([]byte(`{"schema":2}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Decode(data)
		if err != nil {
			if !reflect.DeepEqual(s, Snapshot{}) {
				t.Fatalf("error and value: %+v", s)
			}
			return
		}
		line, err := Encode(s)
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
	})
}
