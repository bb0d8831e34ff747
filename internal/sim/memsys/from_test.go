// SPDX-License-Identifier: Apache-2.0

package memsys

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"homenode/internal/machine"
	"homenode/internal/machine/machinetest"
	"homenode/internal/profile"
	"homenode/internal/sim/detmath"
	"homenode/internal/unit"
)

// Every recorded machine with memory gives a system that can be solved.
func TestRecordedMachines(t *testing.T) {
	archives, err := filepath.Glob(filepath.Join(machinetest.Dir(t), "*.tar.*"))
	if err != nil {
		t.Fatal(err)
	}
	solved := 0
	for _, archive := range archives {
		t.Run(filepath.Base(archive), func(t *testing.T) {
			m, err := machine.ParseSysfs(machinetest.Unpack(t, archive), "recorded:"+filepath.Base(archive))
			if err != nil {
				t.Skipf("no machine: %v", err)
			}
			sys, err := FromMachine(m, nil)
			if err != nil {
				t.Skipf("no system: %v", err)
			}
			checkSystem(t, m, &sys)
			r := detmath.NewRandom(1, filepath.Base(archive)) // the same wherever the checkout is
			for range 50 {
				if got := new(Solver).Solve(&sys, randomLoads(&r, &sys, 10)); !(got.Residue <= 1e-5) {
					t.Errorf("residue %v after %d rounds", got.Residue, got.Rounds)
				}
			}
			solved++
			t.Logf("%d nodes, %d domains, %d threads, L2 %v, LLC %v: %s, %s", len(sys.Nodes), len(sys.Domains), sys.Threads, unit.Bytes(sys.L2), unit.Bytes(sys.Domains[0].LLC), sys.How, sys.From)
		})
	}
	if solved < 8 {
		t.Errorf("only %d machines of %d archives", solved, len(archives))
	}
}

// checkSystem: every CPU is in one domain, every figure is a number, and every way exists.
func checkSystem(t *testing.T, m machine.Machine, sys *System) {
	t.Helper()
	cpus := make([]float64, len(sys.Nodes))
	for _, d := range sys.Domains {
		cpus[d.Node] += d.CPUs
		if !(d.LLC > 0) {
			t.Errorf("domain %+v", d)
		}
	}
	for i, n := range sys.Nodes {
		if n.ID != m.Nodes[i].ID || cpus[i] != n.CPUs || n.CPUs != float64(m.Nodes[i].CPUs.Len()) || !(n.Cycles > 0) {
			t.Errorf("node %+v has domains of %v CPUs", n, cpus[i])
		}
		for j := range sys.Nodes {
			if l := sys.Latency[i][j]; !(l > 0) || math.IsInf(l, 0) || !(sys.Transfer[i][j] > 0) || len(sys.Path[i][j]) > 2 {
				t.Errorf("from %d to %d: latency %v, transfer %v, way %v", i, j, l, sys.Transfer[i][j], sys.Path[i][j])
			}
			if i != j && n.CPUs > 0 && sys.Latency[i][j] < sys.Latency[i][i] {
				t.Errorf("node %d is nearer to %d than itself", i, j)
			}
		}
	}
}

func TestFromMachineRefuses(t *testing.T) {
	m, _ := DualSkylake()
	other := skylakeProfile(m)
	other.Machine.CPUs = 4
	other.Origin = "elsewhere"
	noMemory, noCPUs := m, m
	noMemory.Nodes, noCPUs.Nodes = slices.Clone(m.Nodes), slices.Clone(m.Nodes)
	for i := range m.Nodes {
		noMemory.Nodes[i].Memory = unit.None[unit.Bytes]()
		noCPUs.Nodes[i].CPUs = noCPUs.Nodes[i].CPUs.Minus(noCPUs.Nodes[i].CPUs)
	}
	for _, c := range []struct {
		m    machine.Machine
		p    *profile.Profile
		want string
	}{
		{noMemory, nil, "no node has memory"}, {noCPUs, nil, "no node has an online CPU"},
		{m, &other, "use profile of elsewhere for fake:dual-skylake: it has 4 CPUs online, this machine has 112"},
	} {
		if _, err := FromMachine(c.m, c.p); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}

func TestFromProfile(t *testing.T) {
	m, sys := DualSkylake()
	if len(sys.Domains) != 2 || sys.Threads != 2 || sys.Hz != 2.7e9 || sys.How != unit.HowMeasured {
		t.Errorf("%+v", sys)
	}
	if ns := sys.Latency[0][1] / sys.Hz * 1e9; math.Abs(ns-144.3) > 1e-9 {
		t.Errorf("%v ns", ns)
	}
	p := skylakeProfile(m)
	p.Latency[0].Cycles = unit.Some(90.2 * 3)
	sys, err := FromMachine(m, &p)
	if err != nil || math.Abs(sys.Hz-3e9) > 1 || !strings.Contains(sys.From, "estimated: ") {
		t.Errorf("%v Hz, from %s: %v", sys.Hz, sys.From, err)
	}
	if bytes := LineBytes * sys.Hz / sys.Links[0].Cycles; math.Abs(bytes-34.3e9) > 1 {
		t.Errorf("a link of %v bytes/s", bytes)
	}
}

// At the usual distance of 21 a remote read takes what measured Skylakes show, 138 to 144
// ns for 80 to 90 ns locally, and not 2.1 times the local one.
func TestLatencyByDistance(t *testing.T) {
	m, _ := DualSkylake()
	sys, err := FromMachine(m, nil)
	if err != nil {
		t.Fatal(err)
	}
	near, far := sys.Latency[0][0]/sys.Hz*1e9, sys.Latency[0][1]/sys.Hz*1e9
	if math.Abs(near-80) > 1e-9 || math.Abs(far-80*(1+1.1*machine.SLITExcess)) > 1e-9 {
		t.Errorf("%v and %v ns", near, far)
	}
}

// A link's curve is a multiple of what the link adds, not of the whole latency: the
// controller's part waits at the controller.
func TestLinksWaitForTheirOwnPart(t *testing.T) {
	_, sys := DualSkylake()
	var s Solver
	s.adopt(&sys)
	for k := range sys.Links {
		if ns := s.servers[len(sys.Nodes)+k].idle / sys.Hz * 1e9; math.Abs(ns-54.1) > 1e-6 {
			t.Errorf("link %d: %v ns", k, ns)
		}
	}
	if !strings.Contains(sys.From, "waits on links are a guess") {
		t.Errorf("from %s", sys.From)
	}
}
