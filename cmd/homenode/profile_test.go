// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"homenode/internal/cli/clitest"
	"homenode/internal/doctor"
	"homenode/internal/exit"
	"homenode/internal/machine"
	"homenode/internal/profile"
	"homenode/internal/source"
	"homenode/internal/unit"
)

// profileOf writes a profile of a machine on which remote loads take three times
// as long.
func profileOf(t *testing.T, m machine.Machine) string {
	t.Helper()
	p := profile.Profile{Schema: profile.Schema, How: unit.HowModelled, Machine: profile.FingerprintOf(m, "")}
	for _, from := range m.Nodes {
		for _, to := range m.Nodes {
			ns, bw := 100.0, 20e9
			if from.ID != to.ID {
				ns, bw = 300, 7e9
			}
			if from.CPUs.IsEmpty() {
				continue
			}
			p.Latency = append(p.Latency, profile.PairFigure{From: from.ID, To: to.ID, Figure: profile.FigureOf([]float64{ns})})
			p.Bandwidth = append(p.Bandwidth, profile.PairFigure{From: from.ID, To: to.ID, Figure: profile.FigureOf([]float64{bw})})
		}
	}
	data, err := profile.Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	return clitest.WriteFile(t, filepath.Join(t.TempDir(), "profile.json"), string(data))
}

func shapeMachine(t *testing.T, name string) machine.Machine {
	t.Helper()
	shape, err := source.Shape("", name)
	if err != nil {
		t.Fatal(err)
	}
	return shape.Machine()
}

// topo shows the measured figures in every format, and how they are known.
func TestTopoProfile(t *testing.T) {
	file := profileOf(t, shapeMachine(t, "far"))
	args := []string{"topo", "--shape", "far", "--profile", file}
	for face, want := range map[string][]string{
		"text": {"Latency, modelled (lab) at an unknown time (ns a load)", "Bandwidth, modelled (lab)", "100.0  300.0  300.0", "20.0"},
		"json": {`"latency_ns": 300`, `"read_bytes_per_s": 7000000000`, `"how": "modelled"`},
	} {
		code, out, errs := runWith(append(args, "-o", face)...)
		for _, w := range want {
			if code != 0 || !strings.Contains(out, w) {
				t.Errorf("%s: exit code %d, no %q in %s%s", face, code, w, out, errs)
			}
		}
	}
	if code, out, errs := runWith(append(args, "--svg", "-")...); code != 0 || !strings.Contains(out, ">Latency, modelled (lab)<") || !strings.Contains(out, ">300.0<") {
		t.Errorf("svg: exit code %d, %s%s", code, out, errs)
	}
	if _, out, _ := runWith("topo", "--shape", "far"); strings.Contains(out, "modelled") {
		t.Errorf("without a profile: %s", out)
	}
}

// With a profile the doctor weighs remote reads by their measured cost.
func TestDoctorProfile(t *testing.T) {
	s, err := source.Snapshot(savedSnapshot)
	if err != nil {
		t.Fatal(err)
	}
	worst := func(args ...string) float64 {
		var r doctor.Report
		if err := json.Unmarshal([]byte(doctorOutput(t, append(args, "--snapshot", savedSnapshot, "-o", "json")...)), &r); err != nil {
			t.Fatal(err)
		}
		cost := 0.0
		for _, f := range r.Findings {
			cost = max(cost, f.Cost.Or(0))
		}
		return cost
	}
	with, without := worst("--profile", profileOf(t, s.Machine)), worst()
	if without <= 0 || with <= without {
		t.Errorf("the worst finding costs %v CPUs with 300/100 ns, %v by SLIT", with, without)
	}
}

// A profile that cannot be used is exit code 2 and one sentence.
func TestProfileBadInput(t *testing.T) {
	four, dir := profileOf(t, shapeMachine(t, "four")), t.TempDir()
	topo := []string{"topo", "--shape", "two", "--profile"}
	examine := []string{"doctor", "--snapshot", savedSnapshot, "--profile"}
	for _, c := range []struct{ file, want string }{
		{four, "is of another machine: it has 4 nodes, this machine has 2"},
		{filepath.Join(dir, "none.json"), "none.json"},
		{clitest.WriteFile(t, filepath.Join(dir, "cut.json"), `{"schema":1`), "parse profile"},
		{clitest.WriteFile(t, filepath.Join(dir, "new.json"), `{"schema":9}`), "schema 9"},
		{dir, "read profile"},
	} {
		for _, args := range [][]string{topo, examine} {
			code, out, errs := runWith(append(args, c.file)...)
			if code != exit.Bad || !strings.Contains(errs, c.want) || out != "" || strings.Count(errs, "\n") != 1 {
				t.Errorf("%v %s: exit code %d, %q, %q; want %q", args, c.file, code, errs, out, c.want)
			}
		}
	}
	// It fails before the snapshot, which takes seconds.
	if code, text := runCaught(t, "doctor", "--for", "1h", "--profile", four); code != exit.Bad || !strings.Contains(text, "another machine") {
		t.Errorf("exit code %d, %s", code, text)
	}
}
