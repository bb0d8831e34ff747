// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"strings"
	"testing"
	"time"

	"homenode/internal/set"
	"homenode/internal/sim/memsys"
	"homenode/internal/unit"
)

// Each problem is reported with its workload, its field and what is wanted.
func TestBadSpecs(t *testing.T) {
	for _, c := range []struct {
		name, want string
		change     func(s *Spec)
	}{
		{"rate", `workload "feed": demand.rate -3: want 0 or more`, func(s *Spec) { s.Demand.Rate = -3 }},
		{"nan", `workload "feed": demand.rate NaN: want 0 or more`, func(s *Spec) { s.Demand.Rate = math.NaN() }},
		{"name", `workload "a/b": name "a/b": want letters, digits`, func(s *Spec) { s.Name = "a/b" }},
		{"no name", `workload "": name "": want letters, digits`, func(s *Spec) { s.Name = "" }},
		{"threads", `workload "feed": threads 0: want 1 to 65536`, func(s *Spec) { s.Threads = 0 }},
		{"replicas", `workload "feed": replicas -1: want 0 (one) to 4096`, func(s *Spec) { s.Replicas = -1 }},
		{"quota", `workload "feed": cpu_limit -1: want 0 or more`, func(s *Spec) { s.CPULimit = -1 }},
		{"cpus", `workload "feed": start.cpus 2-5: want CPUs of 0-3: the machine has no CPU 4-5 online`, func(s *Spec) { s.Start.CPUs = set.FromCPUs(2, 3, 4, 5) }},
		{"bind", `workload "feed": start.bind 7: want nodes of 0-1: the machine has no memory on node 7`, func(s *Spec) { s.Start.Bind = set.FromNodes(7) }},
		{"pinned", `workload "feed": start.pinned true: want start.cpus, to tie its threads to`, func(s *Spec) { s.Start.Pinned = true }},
		{"memory", `workload "feed": memory 1 TiB in all: want no more than the machine has, 1.47 GiB`, func(s *Spec) { s.Memory.Private = unit.TiB }},
		{"bound memory", `workload "feed": start.bind 1: want nodes with 1.01 GiB: they have 753 MiB`, func(s *Spec) {
			s.Memory.Private, s.Memory.Shared, s.Start.Bind = unit.GiB, 0, set.FromNodes(1)
			s.Work.Regions = nil
		}},
		{"region", `workload "feed": memory.private 64 MiB: want 128 MiB or more: the regions of its threads take that`, func(s *Spec) { s.Work.Regions[0].Size = 64 * unit.MiB }},
		{"private region", `workload "feed": memory.private 0 B: want 16 MiB or more: the regions of its threads take that`, func(s *Spec) { s.Memory.Private = 0 }},
		{"shared region", `workload "feed": memory.shared 8 MiB: want 32 MiB or more: its shared regions take that`, func(s *Spec) { s.Memory.Shared = 0 }},
		{"private accesses", `workload "feed": memory.private_accesses 2: want a share, 0 to 1, or -1`, func(s *Spec) { two := 2.0; s.Memory.PrivateAccesses = &two }},
		{"writes", `workload "feed": work.regions[0].writes 2: want a share, 0 to 1`, func(s *Spec) { s.Work.Regions[0].Writes = 2 }},
		{"cycles", `workload "feed": work.cycles 0: want more than 0`, func(s *Spec) { s.Work.Cycles = 0 }},
		{"think", `workload "feed": demand.think 1s: want 0 where there is a rate`, func(s *Spec) { s.Demand.Think = time.Second }},
		{"depart", `workload "feed": depart 1m0s: want 0 (never), or later than arrive`, func(s *Spec) { s.Arrive, s.Depart = time.Hour, time.Minute }},
		{"phase", `workload "feed": phases[0].lasts 0s: want more than 0`, func(s *Spec) { s.Phases = []PhaseSpec{{}} }},
		{"toucher", `workload "feed": memory.toucher "me": want "main" or "workers"`, func(s *Spec) { s.Memory.Toucher = "me" }},
		{"barrier", `workload "feed": work.barrier 10: want 0 where there is a rate or a think`, func(s *Spec) { s.Work.Barrier = 10 }},
		{"thinking barrier", `workload "feed": work.barrier 10: want 0 where there is a rate or a think`, func(s *Spec) { s.Work.Barrier, s.Demand.Rate, s.Demand.Think = 10, 0, 1 }},
		{"less than no barrier", `workload "feed": work.barrier -1: want 0 (none) or more operations`, func(s *Spec) { s.Work.Barrier = -1 }},
		{"spin", `workload "feed": work.spin true: want work.barrier, to wait at`, func(s *Spec) { s.Work.Spin = true }},
		{"lines", `workload "feed": work.lines 0: want 1 or more, as there are adds`, func(s *Spec) { s.Work.Adds = 1 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serving("feed", 2, 100)
			c.change(&s)
			_, err := NewWorld(testConfig(t, s))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestBadTogether(t *testing.T) {
	a, b := serving("a", 1, 10), serving("a", 1, 10)
	if _, err := NewWorld(testConfig(t, a, b)); err == nil || !strings.Contains(err.Error(), `workload "a" has the ID /a, too`) {
		t.Errorf("two of one name: %v", err)
	}
	b.Name, a.Memory.Private, b.Memory.Private = "b", unit.GiB, unit.GiB
	if _, err := NewWorld(testConfig(t, a, b)); err == nil || !strings.Contains(err.Error(), `want no more than the machine has, 1.47 GiB`) {
		t.Errorf("too much together: %v", err)
	}
	for _, c := range []struct {
		one, other set.NodeSet
		want       string
	}{
		{set.FromNodes(0), set.FromNodes(0), `workload "a": start.bind 0: want nodes with 1 GiB for all workloads bound to nodes 0 at that time: they have 753 MiB`},
		{set.FromNodes(0), set.FromNodes(1), ""},
		{set.FromNodes(0), set.NodeSet{}, ""},
	} {
		a, b := serving("a", 1, 10), serving("b", 1, 10)
		a.Memory.Private, a.Memory.Shared, a.Memory.Files, a.Work.Regions = 512*unit.MiB, 0, 0, nil
		b.Memory, b.Work.Regions = a.Memory, nil
		a.Start.Bind, b.Start.Bind = c.one, c.other
		_, err := NewWorld(testConfig(t, a, b))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("bound to %v and %v: got %v, want %q", c.one, c.other, err, c.want)
		}
	}
	a.Depart, b.Arrive = time.Hour, time.Hour
	if _, err := NewWorld(testConfig(t, a, b)); err != nil {
		t.Errorf("one after the other: %v", err)
	}
	c := testConfig(t, a)
	c.System = memsys.System{}
	if _, err := NewWorld(c); err == nil || !strings.Contains(err.Error(), "want the same") {
		t.Errorf("system of another machine: %v", err)
	}
}
