// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"homenode/internal/machine"
	"homenode/internal/set"
	"homenode/internal/snapshot"
	"homenode/internal/unit"
)

var update = flag.Bool("update", false, "write testdata again")

// saved are whole snapshots, kept as files for tests that show reports or judge
// snapshots by command line.
var saved = map[string]func() snapshot.Snapshot{
	// A database of which one thread touched all, while cache fills the other node.
	"first-touch": func() snapshot.Snapshot {
		s := healthy(2)
		run(&s, 0, 1.5, 1.5)
		keep(&s, 0, 2*gib, 0)
		far(&s, 0, 48)
		s.Processes[0].Name = "postgres"
		s.Samples.Places[0] = snapshot.Place{
			PID: 100, Workload: "/w0", Name: "postgres", Mapping: "anon 7f0000000000", Loads: []uint64{500, 500}, Remote: []uint64{0, 480}, Stores: []uint64{40, 45},
			Functions: []snapshot.Function{{Name: "hash_search", Samples: 410, Writes: 3}},
		}
		fill(&s, 1, 5*gib, 80*mib)
		s.Nodes[1].Numastat.Foreign, s.Nodes[0].Numastat.Miss = known[uint64](40000), known[uint64](40000)
		s.Window.Workloads[1].FileByNode = knownAll(0*gib, 4*gib)
		s.Groups[1].MemoryUsed = known(5 * gib)
		s.IRQs[1].Counts = []uint64{490000, 10000}
		s.Machine.Devices = []machine.Device{{Address: "0000:01:00.0", Class: machine.Network, Names: []string{"eth1"}, Node: unit.Some(1)}}
		return s
	},
	// A guest that sees nothing.
	"guest": func() snapshot.Snapshot {
		s := healthy(2)
		blind(&s)
		keep(&s, 0, 500*mib, 524*mib)
		s.Hypervisor = known("kvm")
		s.Machine.Distances[0][1], s.Machine.Distances[1][0] = unit.Some(10), unit.Some(10)
		s.Samples = snapshot.Samples{Why: "no PMU in this guest"}
		s.Processes, s.IRQs, s.Swapping = nil, nil, snapshot.Swapping{}
		for i := range s.Nodes {
			s.Nodes[i].Traffic = snapshot.Traffic{Busy: unit.UnknownValue[unit.Ratio]("no uncore PMU in this guest")}
			s.Nodes[i].LowFree = unit.UnknownValue[unit.Bytes]("/proc/zoneinfo is not readable")
		}
		return s
	},
	// A memory bound that is too tight, of a workload with a name that means harm.
	"hostile": func() snapshot.Snapshot {
		s := healthy(2)
		evil := "/w1\x1b[2J; rm -rf '|<b>@all"
		s.Window.Workloads[1].ID, s.Groups[1].ID, s.Processes[1].Workload, s.Processes[1].Name = evil, evil, evil, "\u202eevil\n"
		s.Samples.Places[1].Workload = evil
		bound(&s, 1, nodeCPUs(&s, 1), 1)
		fill(&s, 1, 100*mib, 100*mib)
		s.Processes[1].Threads[1].Allowed, s.Processes[1].Threads[1].Waited = set.FromCPUs(5), known(0.3)
		s.Processes[1].Threads[1].Name = "\x07bell"
		return s
	},
}

func TestSaved(t *testing.T) {
	for name, build := range saved {
		s := build()
		line, err := snapshot.Encode(s)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join("testdata", name+".snapshot.json")
		if *update {
			if err := os.WriteFile(file, append(line, '\n'), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		stored, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(bytes.TrimSpace(stored), line) {
			t.Errorf("%s is not what its test builds: go test -update", file)
		}
		again, err := snapshot.Decode(stored)
		if err != nil {
			t.Fatal(err)
		}
		want, got := Examine(s, DefaultConfig()), Examine(again, DefaultConfig())
		if a, b := encoded(t, want), encoded(t, got); !bytes.Equal(a, b) {
			t.Errorf("%s: a saved snapshot is judged differently:\n%s\n%s", name, a, b)
		}
	}
}

func encoded(t *testing.T, r Report) []byte {
	t.Helper()
	data, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return data
}
