// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"context"
	"math"
	"testing"

	"homenode/internal/model/gain"
	"homenode/internal/sim/memsys"
)

func trialsOf(t *testing.T, workers int) (rows []gain.Row) {
	t.Helper()
	c := DefaultConfig()
	c.Machine, c.System = memsys.DualSkylake()
	c.Size, c.Seed, c.Workers = Size{Servers: 6, Workloads: 4}, 7, workers
	if err := RunTrials(context.Background(), c, func(more []gain.Row) error { rows = append(rows, more...); return nil }, nil); err != nil {
		t.Fatal(err)
	}
	return rows
}

// The same file with any number of workers; each row has its features and both trials.
func TestTrialsAreReproducible(t *testing.T) {
	var files [2][]byte
	for i, workers := range []int{1, 3} {
		rows := trialsOf(t, workers)
		var b bytes.Buffer
		table, err := NewTrialTable(&b, about.Config, "homenode-lab sim trials")
		if err != nil {
			t.Fatal(err)
		}
		if err := table.Write(rows); err != nil {
			t.Fatal(err)
		}
		if err := table.Close(); err != nil {
			t.Fatal(err)
		}
		files[i] = b.Bytes()
		if len(rows) < 10 {
			t.Errorf("%d rows of 6 servers", len(rows))
		}
		for _, r := range rows {
			for what, v := range map[string]*float64{
				"MBW": r.MBW, "MSR": r.MSR, "NPMR": r.NPMR, "RMBR": r.RMBR, "CPU": r.CPU, "CPU of node": r.CPUOfNode, "busy": r.Busy, "idlest": r.Idlest,
				"gain": r.GainLatency, "again": r.GainLatencyAgain, "true gain": r.GainLatencyTrue,
			} {
				if v == nil {
					t.Errorf("%s of %s has no %s", r.Replica, r.Kind, what)
				}
			}
			if r.Windows < 20 || r.Windows > 30 || *r.GainLatency >= 1 {
				t.Errorf("%s: %d windows, gain %v", r.Replica, r.Windows, *r.GainLatency)
			}
		}
	}
	if !bytes.Equal(files[0], files[1]) {
		t.Error("other bytes with three workers")
	}
}

// Where nothing is remote, nothing is gained: a machine of one node has no trials.
func TestTrialsOfOneNode(t *testing.T) {
	c := DefaultConfig()
	c.Machine, c.System = memsys.DualSkylake()
	c.Machine.Nodes = c.Machine.Nodes[:1]
	c.Size = Size{Servers: 1, Workloads: 2}
	rows := 0
	err := RunTrials(context.Background(), c, func(more []gain.Row) error { rows += len(more); return nil }, nil)
	if rows != 0 {
		t.Errorf("%d rows, %v", rows, err)
	}
}

func TestTrialSummary(t *testing.T) {
	row := func(kind, service string, first, again float64) gain.Row {
		return gain.Row{Kind: kind, Service: service, GainLatency: &first, GainLatencyAgain: &again}
	}
	var s TrialSummary
	s.Add([]gain.Row{row("web", "a", -0.3, -0.1), row("cache", "b", 0.1, 0.1)})
	s.Add([]gain.Row{row("web", "a", -0.3, 0.1)})
	s.Settle()
	if s.Rows != 3 || s.Services != 2 || s.Hurt != 1 || len(s.Kinds) != 2 || s.Kinds[0].Kind != "cache" || s.Kinds[1].Rows != 2 || *s.Kinds[1].Alone != -0.3 || s.Kinds[1].All != nil || math.Abs(*s.Apart-0.2) > 1e-9 {
		t.Errorf("%+v", s)
	}
}
