// SPDX-License-Identifier: Apache-2.0

package placements

import (
	"bytes"
	"context"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"homenode/internal/profiling"
	"homenode/internal/sim"
	"homenode/internal/sim/catalog"
	"homenode/internal/sim/fleet"
)

func config(t *testing.T, name string, vcpus, applications int) Config {
	t.Helper()
	b, _ := catalog.MachineNamed(name)
	m, sys := b.Make()
	c, err := New(Config{Name: name, Machine: m, System: sys, VCPUs: vcpus, Seed: 1, Applications: applications, Noise: fleet.PackagedNoise(), Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func rowsOf(t *testing.T, c Config) (rows []Row) {
	t.Helper()
	err := Run(context.Background(), c, func(r []Row) error { rows = append(rows, r...); return nil }, func(int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// The same rows with any number of workers, one for each workload and placement, and noise
// of the size that was measured.
func TestRun(t *testing.T) {
	c := config(t, catalog.Opteron, 16, 8)
	rows := rowsOf(t, c)
	c.Workers = 1
	if again := rowsOf(t, c); !reflect.DeepEqual(rows, again) {
		t.Error("the number of workers changes rows")
	}
	if len(rows) != 8*catalog.SharerInputs*9 {
		t.Fatalf("%d rows, want 9 placements of 24 workloads", len(rows))
	}
	sum := 0.0
	for i, r := range rows {
		if int(r.Placement) != i%9 || r.IPC == nil || r.MSR == nil || r.MBW == nil || r.LLCMPKI == nil {
			t.Fatalf("row %d: %+v", i, r)
		}
		sum += math.Pow(r.Speed/r.SpeedAgain-1, 2)
	}
	if got, want := math.Sqrt(sum/float64(len(rows))), c.Noise.Gains.Latency; got < want/1.5 || got > want*1.5 {
		t.Errorf("two measurements differ by %v, measured in the lab: %v", got, want)
	}
}

// Placements that share cores or L2s are slower for what needs these, and nothing else
// differs: what only computes has the same speed everywhere on cores of its own.
func TestSharedCores(t *testing.T) {
	c := config(t, catalog.FourNodes, 24, 8)
	if len(c.List().Placements) != 7 {
		t.Fatalf("%d placements, want the paper's 7", len(c.List().Placements))
	}
	smt := map[string]map[string]float64{} // by workload and scores
	for _, r := range rowsOf(t, c) {
		if smt[r.Workload] == nil {
			smt[r.Workload] = map[string]float64{}
		}
		smt[r.Workload][r.Scores] = *r.SpeedTrue
	}
	for _, name := range []string{"compute-00.1", "core-00.1"} {
		shared, own := 0.0, 0.0
		for scores, speed := range smt[name] {
			switch {
			case strings.Contains(scores, "node=2") && strings.Contains(scores, "l2=12"):
				shared = speed
			case strings.Contains(scores, "node=2") && strings.Contains(scores, "l2=24"):
				own = speed
			}
		}
		if !(shared > 0 && own > shared*1.1) {
			t.Errorf("%s on two nodes: %v on shared cores, %v on its own: %v", name, shared, own, smt[name])
		}
	}
}

// Threads are spread evenly over the placement's nodes, and only there.
func TestEven(t *testing.T) {
	c := config(t, catalog.Opteron, 16, 1)
	s := catalog.GenerateSharers(1, 1)[0]
	for _, p := range c.List().Placements {
		spec := s.Spec("x", 16, 0)
		spec.Start.CPUs, spec.Start.Pinned = p.CPUs, true
		w, err := sim.NewWorld(sim.Config{Machine: c.Machine, System: systemOf(c.Machine, c.System, p.CPUs), Specs: []sim.Spec{spec}, Step: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		w.Run(time.Second)
		w.Window()
		w.Run(time.Second)
		x := w.Window().Workloads[0]
		for i, n := range c.Machine.Nodes {
			want := 0.0
			if p.Nodes.Has(n.ID) {
				want = float64(p.PerNode)
			}
			if got := x.CPUByNode[i].Or(-1); math.Abs(got-want) > 1e-6 {
				t.Errorf("nodes %s: %v CPUs on node %d, want %v", p.Nodes, got, n.ID, want)
			}
		}
	}
}

// A file says where it comes from.
func TestTable(t *testing.T) {
	c := config(t, catalog.Opteron, 16, 1)
	var file bytes.Buffer
	table, err := NewTable(&file, c, About{Commit: "abc", Command: "homenode-lab sim placements"})
	if err != nil {
		t.Fatal(err)
	}
	rows := rowsOf(t, c)
	if err := table.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := table.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := parquet.OpenFile(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{profiling.KeySource: "simulator", profiling.KeyCommit: "abc", profiling.KeyVCPUs: "16", profiling.KeyPlacements: "9", fleet.KeyMachine: "opteron-6272", fleet.KeyGenerator: "1"} {
		if got, _ := f.Lookup(key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	back, err := parquet.Read[Row](bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil || !reflect.DeepEqual(back, rows) {
		t.Errorf("read back: %v, %d rows of %d", err, len(back), len(rows))
	}
}

func TestRefused(t *testing.T) {
	b, _ := catalog.MachineNamed(catalog.Opteron)
	m, sys := b.Make()
	for _, c := range []Config{{VCPUs: 16}, {VCPUs: 17, Applications: 1}, {VCPUs: 0, Applications: 1}, {VCPUs: 16, Applications: MostApplications + 1}} {
		c.Machine, c.System = m, sys
		if _, err := New(c); err == nil {
			t.Errorf("%d vCPUs of %d applications is no error", c.VCPUs, c.Applications)
		}
	}
	if err := Run(context.Background(), Config{}, nil, nil); err == nil {
		t.Error("a configuration without placements runs")
	}
}
