// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"homenode/internal/exit"
	"homenode/internal/golden"
	"homenode/internal/kernel"
	"homenode/internal/machine/shapetest"
	"homenode/internal/migrate"
	"homenode/internal/migration"
	"homenode/internal/policy/mao"
	"homenode/internal/profiling"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
)

func TestSurplus(t *testing.T) {
	for _, c := range []struct {
		what     string
		was, now map[int]unit.Bytes
		from     set.NodeSet
		lacks    []lack
	}{
		{"as it was", map[int]unit.Bytes{0: 500, 1: 500}, map[int]unit.Bytes{0: 505, 1: 495}, set.NodeSet{}, nil},
		{"bound", map[int]unit.Bytes{0: 100, 1: 700, 3: 200}, map[int]unit.Bytes{0: 1000}, set.FromNodes(0), []lack{{1, 700}, {3, 200}}},
		{"it grew while it was bound", map[int]unit.Bytes{0: 500, 1: 500}, map[int]unit.Bytes{1: 1500}, set.FromNodes(1), []lack{{0, 500}}},
		{"it shrank", map[int]unit.Bytes{0: 500, 1: 500}, map[int]unit.Bytes{0: 200, 1: 100}, set.NodeSet{}, nil},
		{"it is on a node of its own now", map[int]unit.Bytes{0: 500}, map[int]unit.Bytes{7: 500}, set.FromNodes(7), []lack{{0, 500}}},
		{"nothing", nil, nil, set.NodeSet{}, nil},
	} {
		if from, lacks := surplus(c.was, c.now); from != c.from || !reflect.DeepEqual(lacks, c.lacks) {
			t.Errorf("%s: from %s to %v, want %s and %v", c.what, from, lacks, c.from, c.lacks)
		}
	}
}

// spreads is a reader of a workload whose memory is there.
type spreads map[int]unit.Bytes

func (s spreads) Read(context.Context) (window.Window, error) {
	one := window.Workload{ID: "/a"}
	w := window.Window{Length: time.Second}
	for n := range 2 {
		w.Nodes = append(w.Nodes, window.Node{ID: n})
		one.AnonByNode = append(one.AnonByNode, unit.Measured(s[n], ""))
		one.FileByNode = append(one.FileByNode, unit.Measured(unit.Bytes(0), ""))
	}
	w.Workloads = []window.Workload{one}
	return w, nil
}

func (spreads) Close() {}

// Unbound, as much of its memory is on each node as before: no more is moved, and what stays is told.
func TestRespread(t *testing.T) {
	for moves, unbound := range map[unit.Bytes]bool{600: true, 560: true, 100: false} {
		var jobs []migrate.Job
		w := &workload{id: "/a", spread: map[int]unit.Bytes{0: 400, 1: 600}, reader: spreads{0: 1000}, move: func(_ context.Context, j migrate.Job) (migration.Report, error) {
			jobs = append(jobs, j)
			r := migration.Result{Kinds: []migration.KindResult{{Moved: moves}}}
			return migration.Report{Outcome: migration.Partial, Result: unit.Some(r)}, nil
		}}
		if err := w.respread(context.Background()); (err == nil) != unbound || len(jobs) != 1 || jobs[0].Most != 600 || jobs[0].From != set.FromNodes(0) || jobs[0].To != set.FromNodes(1) {
			t.Errorf("%v, %+v, %q", err, jobs, w.notes)
		}
	}
	w := &workload{id: "/a", spread: map[int]unit.Bytes{1: 600}, reader: spreads{0: 1000}, move: func(context.Context, migrate.Job) (migration.Report, error) {
		return migration.Report{}, errors.New("no room")
	}}
	if err := w.respread(context.Background()); err == nil {
		t.Error("a move that failed is no error")
	}
}

// The nodes are those to which the agent would bind it, or a sentence says why it would not.
func TestWhereTo(t *testing.T) {
	m := shapetest.Shape(t, "two").Machine()
	w, _ := spreads{0: 50 << 20, 1: 200 << 20}.Read(context.Background())
	w.Seq = 1
	for i := range w.Nodes {
		n, _ := m.Node(i)
		w.Nodes[i] = window.Node{ID: i, CPUs: n.CPUs, CPUBusy: unit.Measured(0.5, ""), Memory: unit.Measured(n.Memory.Or(0), ""), Free: unit.Measured(unit.Bytes(400<<20), "")}
	}
	one := &w.Workloads[0]
	one.CPU = unit.Measured(1.0, "")
	if _, _, err := whereTo(mao.DefaultConfig(), m, w, "/a", set.NodeSet{}); err == nil {
		t.Error("nothing is known of its reads, and it is bound")
	}
	one.LocalLoads, one.RemoteLoads = unit.Measured[uint64](600, ""), unit.Measured[uint64](400, "")
	nodes, why, err := whereTo(mao.DefaultConfig(), m, w, "/a", set.NodeSet{})
	if err != nil || nodes != set.FromNodes(1) || why != "the agent's policy" {
		t.Errorf("%s, %q, %v", nodes, why, err)
	}
	c := mao.DefaultConfig()
	c.RequireNear = true
	if nodes, _, err := whereTo(c, m, w, "/a", set.FromNodes(0)); err != nil || nodes != set.FromNodes(0) {
		t.Errorf("with its device on node 0: %s, %v", nodes, err)
	}
	if _, _, err := whereTo(mao.DefaultConfig(), m, w, "/b", set.NodeSet{}); err == nil {
		t.Error("a workload that is not there")
	}
}

// A placement on CPUs that the workload's parent does not have is refused at once.
func TestAllows(t *testing.T) {
	w := &workload{id: "/a"}
	l := profiling.ArmsOn(set.FromNodes(0), set.FromCPUs(0, 1, 8))
	if err := w.allows(l); err != nil {
		t.Errorf("its CPUs are unknown: %v", err)
	}
	w.parent = set.FromCPUs(0, 1, 2, 3)
	if err := w.allows(l); err == nil || !strings.Contains(err.Error(), "/a may run on CPUs 0-3 only, and placement 2 needs CPUs 8") {
		t.Errorf("%v", err)
	}
	if err := w.allows(profiling.ArmsOn(set.FromNodes(0), set.FromCPUs(0, 1))); err != nil {
		t.Error(err)
	}
}

// The row of a finished experiment is the file that python/tests reads.
func TestTrialFile(t *testing.T) {
	l, err := profiling.Arms(shapetest.Shape(t, "two").Machine(), set.FromNodes(1), set.CPUSet{}, set.CPUSet{})
	if err != nil {
		t.Fatal(err)
	}
	mbw, msr, npmr, rmbr, cpu, ipc, mpki := 1e9, 0.4, 0.9, 0.5, 1.5, 0.8, 12.0
	f := profiling.Features{MBW: &mbw, MSR: &msr, NPMR: &npmr, RMBR: &rmbr, CPU: &cpu, IPC: &ipc, LLCMPKI: &mpki}
	s := profiling.State{Schema: 1, Before: &profiling.Look{Speed: 100, Features: f, CPUOfNode: &cpu, Busy: &msr, Idlest: &msr, Neighbours: 3}, Job: profiling.Job{
		Machine: "fake, 2 nodes, 4 CPUs", Source: profiling.Measured, Workload: "/db", VCPUs: 1, Metric: profiling.Metric{Kind: profiling.File, Arg: "/x"}, For: time.Second, Repeats: 4, Seed: 1, Placements: profiling.CandidatesOf(l),
	}}
	for _, r := range s.Job.Runs() {
		s.Samples = append(s.Samples, profiling.Sample{Placement: r.Arm, Repeat: r.Repeat, Speed: float64(100 + 20*r.Arm + r.Repeat), Took: 1, Features: f})
	}
	path := filepath.Join(t.TempDir(), "row.parquet")
	tr := trial{o: &Options{Workload: "/db", Rows: path, Saved: path + ".json", Version: "test", CommandLine: "homenode experiment"}, w: &workload{id: "/db"}, list: l, host: "host"}
	r, err := tr.end(s, nil, nil)
	if err != nil || r.Outcome != "complete" {
		t.Fatalf("%v, %+v", err, r)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, filepath.Join("testdata", "experiment.parquet"), got)
}

// A workload that is not back is an error, whatever was measured, and the state stays.
func TestTrialNotBack(t *testing.T) {
	l, err := profiling.Arms(shapetest.Shape(t, "two").Machine(), set.FromNodes(1), set.CPUSet{}, set.CPUSet{})
	if err != nil {
		t.Fatal(err)
	}
	saved := filepath.Join(t.TempDir(), "s")
	if err := os.WriteFile(saved, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s := profiling.State{Schema: 1, Job: profiling.Job{Metric: profiling.Metric{Kind: profiling.File}, Repeats: 2, Placements: profiling.CandidatesOf(l)}}
	for _, measured := range []error{nil, profiling.ErrHurt} {
		tr := trial{o: &Options{Saved: saved}, list: l}
		r, err := tr.end(s, measured, errors.New("cpuset.cpus: busy"))
		if _, gone := os.Stat(saved); err == nil || !strings.Contains(err.Error(), "busy") || r.Outcome != "unfinished" || gone != nil {
			t.Errorf("%v: %q, %v; state: %v", measured, r.Outcome, err, gone)
		}
	}
}

// One that was stopped, interrupted or measured a constant: its exit code, and what it says.
func TestTrialEnds(t *testing.T) {
	l, err := profiling.Arms(shapetest.Shape(t, "two").Machine(), set.FromNodes(1), set.CPUSet{}, set.CPUSet{})
	if err != nil {
		t.Fatal(err)
	}
	s := profiling.State{Schema: 1, Job: profiling.Job{Metric: profiling.Metric{Kind: profiling.File}, Repeats: 4, Placements: profiling.CandidatesOf(l)}}
	for _, c := range []struct {
		err     error
		outcome string
		code    int
		says    string
	}{
		{profiling.ErrHurt, "stopped", exit.Partly, ""}, {profiling.ErrUnfinished, "unfinished", exit.Partly, "the same command continues"},
		{profiling.ErrConstant, "unfinished", exit.Bad, "constant"}, {profiling.ErrJumped, "unfinished", exit.Bad, "jumped"}, {kernel.ErrGone, "unfinished", exit.Bad, ""},
	} {
		tr := trial{o: &Options{Saved: filepath.Join(t.TempDir(), "s")}, list: l}
		r, err := tr.end(s, c.err, nil)
		var code exit.Error
		if !errors.As(err, &code) || code.Code != c.code || r.Outcome != c.outcome || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v: %q, %v", c.err, r.Outcome, err)
		}
	}
}
