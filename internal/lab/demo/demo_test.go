// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"homenode/internal/experiment"
	"homenode/internal/machine"
	"homenode/internal/machine/shapetest"
	"homenode/internal/set"
	"homenode/internal/unit"
)

const mixes = "../../../lab/mixes"

// mixText is a mix as a person writes it; pilots decide the values of the committed
// ones.
const mixText = `name: small
shape: four
repeats: 3
seed: 1
warmup_model_seconds: 24
measure_model_seconds: 8
workloads:
  - name: feed
    kind: sensitive
    cpu_limit: 2
    nodes: 0
    load: server --workers 4
  - name: pool
    kind: wide
    nodes: 1-2
    load: server --workers 8
    by_hand: --interleave 1-2
  - name: spinner
    kind: insensitive
    nodes: 3
    load: spin --threads 1
`

func TestDecodeMix(t *testing.T) {
	text := mixText
	m, err := ParseMix([]byte(text), "mix.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if m.Repeats != 3 || m.Warmup != 24 || m.Measure != 8 || len(m.Workloads) != 3 || m.Workloads[1].Nodes.String() != "1-2" || m.Workloads[1].ByHand != "--interleave 1-2" {
		t.Errorf("%+v", m)
	}
	for change, want := range map[[2]string]string{
		{"repeats: 3", "repeats: 0"}:                               `line 3: malformed: repeats: want 1 to 20`,
		{"repeats: 3", "colour: red"}:                              `line 3: malformed: unknown field "colour"`,
		{"kind: wide", "kind: dog"}:                                `line 14: malformed: workloads[1].kind: "dog"`,
		{"name: pool", "name: feed"}:                               `line 13: malformed: workloads[1].name: want a unique name`,
		{"warmup_model_seconds: 24", "warmup_model_seconds: 0"}:    `line 5: malformed: warmup_model_seconds`,
		{"load: spin --threads 1", "load: \" \""}:                  `line 21: malformed: workloads[2].load`,
		{"warmup_model_seconds: 24", "warmup: {at_most: 24s}"}:     `line 5: malformed: unknown field "warmup"`,
		{"nodes: 0", "nodes: 0-x"}:                                 `line 11: malformed: workloads[0].nodes: parse node list "0-x"`,
		{"nodes: 0", "nodes: 0-1"}:                                 `line 11: malformed: workloads[0].nodes: 0-1 is more than a node`,
		{"    nodes: 0\n", ""}:                                     `line 8: malformed: workloads[0].nodes: want the nodes`,
		{"measure_model_seconds: 8", "measure_model_seconds: 8 s"}: `line 6: malformed`,
		{text, ""}:      `malformed`,
		{text, "- !0 "}: `line 1: malformed`,
	} {
		changed := strings.Replace(text, change[0], change[1], 1)
		if changed == text {
			t.Errorf("%.40q changed nothing", change)
		}
		m, err := ParseMix([]byte(changed), "mix.yaml")
		if err == nil || !strings.Contains(err.Error(), "parse mix.yaml: "+want) || !errors.Is(err, ErrMalformed) || m.Name != "" {
			t.Errorf("%.40q: %v, want %s", change, err, want)
		}
	}
}

// Every mix that comes with homenode fits its shape: nodes have CPUs, and by hand no
// node has workloads with higher limits than its CPUs.
func TestDecodeMixesFitTheirShapes(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(mixes, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for _, file := range files {
		if strings.HasSuffix(file, "-agent.yaml") {
			continue
		}
		read++
		m, err := ReadMix(file)
		if err != nil {
			t.Error(err)
			continue
		}
		s := shapetest.Shape(t, m.Shape)
		if err := m.CheckOn(s); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		limits := map[string]float64{}
		for _, w := range m.Workloads {
			var cpus set.CPUSet
			for n := range w.Nodes.All() {
				cpus = cpus.Union(s.Nodes[n].CPUs.Minus(s.Housekeeping))
			}
			if limits[w.Nodes.String()] += w.CPULimit; limits[w.Nodes.String()] > float64(cpus.Len()) {
				t.Errorf("%s: limits of %v CPUs on nodes %s", file, limits[w.Nodes.String()], w.Nodes)
			}
		}
		if m.Name+".yaml" != filepath.Base(file) {
			t.Errorf("%s is named %s", file, m.Name)
		}
	}
	if read < 3 {
		t.Errorf("read %d mixes only", read)
	}
	m, err := ReadMix(filepath.Join(mixes, "first-light.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.CheckOn(machine.Shape{Name: "tiny", Nodes: []machine.ShapeNode{{CPUs: set.FromCPUs(0)}}}); err == nil || !strings.Contains(err.Error(), "no CPUs on node 1") {
		t.Errorf("a shape of one node: %v", err)
	}
}

func TestDecisionByHand(t *testing.T) {
	w := Workload{Load: "server --ws 1MiB --file /dev/shm/pool", ByHand: "--interleave 0-1", Nodes: set.FromNodes(0, 1)}
	for arm, want := range map[string]string{
		ArmLinux:    "server --ws 1MiB --file /dev/shm/pool",
		ArmHomenode: "server --ws 1MiB --file /dev/shm/pool",
		ArmByHand:   "server --ws 1MiB --file /dev/shm/pool --interleave 0-1",
	} {
		if got := loadArgs(w, arm); strings.Join(got, " ") != want || sharedFile(got) != "/dev/shm/pool" {
			t.Errorf("%s: %q maps %q", arm, got, sharedFile(got))
		}
	}
	for args, want := range map[string]string{"spin": "", "hold --file": "", "hold --file=/tmp/x": "/tmp/x", "hold --files /y": ""} {
		if got := sharedFile(strings.Fields(args)); got != want {
			t.Errorf("%q maps %q, want %q", args, got, want)
		}
	}
	p := Plan{NodeCPUs: []string{"0-1", "2-3", "4-5"}}
	if cpus, err := p.cpusOf(set.FromNodes(0, 2)); err != nil || cpus.String() != "0-1,4-5" {
		t.Errorf("nodes 0 and 2: %s, %v", cpus, err)
	}
	if _, err := p.cpusOf(set.FromNodes(3)); err == nil {
		t.Error("a missing node has CPUs")
	}
}

// The guest gets the mix as the host read it.
func TestParityPlanOverTheWire(t *testing.T) {
	m, err := ReadMix(filepath.Join(mixes, "database.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(Plan{Mix: m, Arm: ArmByHand})
	if err != nil {
		t.Fatal(err)
	}
	var p Plan
	if err := json.Unmarshal(data, &p); err != nil {
		t.Fatal(err)
	}
	for i := range m.Workloads {
		m.Workloads[i].OnNodes = "" // the written form stays on the host
	}
	if !reflect.DeepEqual(p.Mix, m) || p.Mix.Workloads[0].Nodes.String() != "0-1" {
		t.Errorf("%+v, want %+v", p.Mix, m)
	}
}

// run makes one result: throughput of the one service and its local share.
func run(arm string, repeat int, ops, local, spin float64, acted bool) RunResult {
	return RunResult{Arm: arm, Repeat: repeat, Acted: acted, Steady: repeat == 0, Services: []ServiceResult{
		{Name: "svc", Kind: Sensitive, WorkPerModelS: ops, LocalLoads: unit.Some(local), RemoteLoads: unit.Some(1 - local)},
		{Name: "spin", Kind: Insensitive, WorkPerModelS: spin},
	}}
}

func judgeMix() Mix {
	return Mix{Name: "m", Repeats: 2, Workloads: []Workload{{Name: "svc", Kind: Sensitive}, {Name: "spin", Kind: Insensitive}}}
}

func peerRuns() []RunResult {
	return []RunResult{
		run(ArmLinux, 0, 100, 0.4, 50, true), run(ArmLinux, 1, 110, 0.5, 51, true),
		run(ArmBalancing, 0, 90, 0.6, 50, true), run(ArmBalancing, 1, 90, 0.6, 50, true),
		run(ArmNumad, 0, 400, 0.99, 50, false), run(ArmNumad, 1, 400, 0.99, 50, false), // never acted: not a peer
		run(ArmByHand, 0, 200, 1, 50, true), run(ArmByHand, 1, 200, 1, 50, true),
	}
}

func TestDecisionJudge(t *testing.T) {
	mix := judgeMix()
	for _, c := range []struct {
		about string
		ours  []RunResult
		met   []bool // local, remote, peers, ceiling, spread, spinner
	}{
		{"all met", []RunResult{run(ArmHomenode, 0, 195, 0.97, 50, true), run(ArmHomenode, 1, 197, 0.98, 50, true)}, []bool{true, true, true, true, true, true}},
		{"slow spinner", []RunResult{run(ArmHomenode, 0, 195, 0.97, 30, true), run(ArmHomenode, 1, 197, 0.98, 30, true)}, []bool{true, true, true, true, true, false}},
		{"remote", []RunResult{run(ArmHomenode, 0, 195, 0.7, 50, true), run(ArmHomenode, 1, 197, 0.7, 50, true)}, []bool{false, false, true, true, true, true}},
		{"slow", []RunResult{run(ArmHomenode, 0, 105, 0.97, 50, true), run(ArmHomenode, 1, 105, 0.97, 50, true)}, []bool{true, true, false, false, true, true}},
		{"unsteady", []RunResult{run(ArmHomenode, 0, 194, 0.97, 50, true), run(ArmHomenode, 1, 201, 0.98, 50, true)}, []bool{true, true, true, true, false, true}},
		{"one repeat", []RunResult{run(ArmHomenode, 0, 195, 0.97, 50, true)}, []bool{true, true, true, true, false, true}},
	} {
		targets := gather(Options{Mix: mix, Arms: Arms}, append(peerRuns(), c.ours...)).Targets
		if len(targets) != len(c.met) {
			t.Fatalf("%s: %d targets", c.about, len(targets))
		}
		for i, want := range c.met {
			if targets[i].Met != want {
				t.Errorf("%s: %+v", c.about, targets[i])
			}
		}
	}
	c := gather(Options{Mix: mix, Arms: Arms}, peerRuns())
	if numad, _ := c.Arm(ArmNumad); numad.Applicable || numad.Why == "" {
		t.Errorf("an arm that never acted is a peer: %+v", numad)
	}
	if linux, _ := c.Arm(ArmLinux); linux.Unsteady != 1 {
		t.Errorf("one of two repeats was not steady: %d", linux.Unsteady)
	}
	if len(c.Targets) != 0 {
		t.Error("there were targets without homenode's arm")
	}
}

// A placement by hand that varies is as bad a measurement as a varying homenode.
func TestDecisionSpreadIsOfBothBoundArms(t *testing.T) {
	runs := append(peerRuns(), run(ArmHomenode, 0, 195, 0.97, 50, true), run(ArmHomenode, 1, 196, 0.97, 50, true))
	for i := range runs {
		if runs[i].Arm == ArmByHand && runs[i].Repeat == 1 {
			runs[i].Services[0].WorkPerModelS = 207
		}
	}
	targets := gather(Options{Mix: judgeMix(), Arms: Arms}, runs).Targets
	i := slices.IndexFunc(targets, func(t experiment.Target) bool { return strings.Contains(t.Name, "min to max") })
	if i < 0 || targets[i].Met || !strings.Contains(targets[i].Note, Title(ArmByHand)) {
		t.Errorf("%+v", targets)
	}
}

// A workload wider than a node has no target for locality: it only must not be
// harmed.
func TestDecisionWideIsNotHarmed(t *testing.T) {
	mix := judgeMix()
	mix.Workloads[0].Kind = Wide
	targets := gather(Options{Mix: mix, Arms: Arms}, append(peerRuns(), run(ArmHomenode, 0, 60, 0.5, 50, true), run(ArmHomenode, 1, 60, 0.5, 50, true))).Targets
	var names []string
	for _, target := range targets {
		if strings.HasPrefix(target.Name, "svc") {
			names = append(names, target.Name)
			if target.Met {
				t.Errorf("harmed, but the target is %+v", target)
			}
		}
	}
	if len(names) != 1 {
		t.Errorf("targets of a wide workload: %q", names)
	}
}

func TestDecisionLoadSum(t *testing.T) {
	m, s := judgeMix(), machine.Shape{Name: "a", Nodes: []machine.ShapeNode{{CPUs: set.FromCPUs(0)}}}
	sum := LoadSum(m, s)
	longer, other := m, m
	longer.Warmup, longer.Measure, longer.Repeats = 120, 16, 9
	other.Workloads = []Workload{{Name: "svc", Kind: Sensitive, Load: "spin"}}
	if LoadSum(longer, s) != sum || LoadSum(other, s) == sum {
		t.Error("warm-up, measured time and repeats are not part of the load, workloads are")
	}
	s.Model.MHz = 99
	if LoadSum(m, s) == sum {
		t.Error("another machine has the same load sum")
	}
}
