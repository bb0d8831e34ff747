// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"homenode/internal/cli/clitest"
	"homenode/internal/machine/machinetest"
	"homenode/internal/model"
)

const packSample = `machine: {shape: opteron}
containers:
  - {name: web, vcpus: 4, goal: 0.9, count: 5, speeds: [95, 100, 99, 98]}
`

func packFile(t *testing.T, text string) string {
	t.Helper()
	return clitest.WriteFile(t, filepath.Join(t.TempDir(), "containers.yaml"), text)
}

// Containers that reach their goal on two nodes fill the machine.
func TestPack(t *testing.T) {
	path := packFile(t, packSample)
	code, stdout, stderr := runWith("pack", path, "-o", "json")
	var got struct {
		Policies []struct {
			Policy                      string
			Packed, Meet, Miss, Unknown int
			Exact                       bool
		}
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != 0 || len(got.Policies) != 5 {
		t.Fatalf("exit %d, %v: %s", code, err, stderr)
	}
	for _, p := range got.Policies {
		switch p.Policy {
		case "ml", "exact":
			if p.Packed != 4 || p.Meet != 4 || p.Exact != (p.Policy == "exact") {
				t.Errorf("%+v", p)
			}
		case "conservative":
			if p.Packed != 1 || p.Unknown != 1 {
				t.Errorf("%+v", p)
			}
		}
	}
	if code, stdout, _ := runWith("pack", path, "--svg", "-"); code != 0 || !strings.HasPrefix(stdout, "<svg") {
		t.Errorf("exit %d: %.100s", code, stdout)
	}
	if code, stdout, _ := runWith("pack", path, "--tolerance", "0"); code != 0 || !strings.Contains(stdout, "not placed: 1 of web") {
		t.Errorf("exit %d: %s", code, stdout)
	}
}

// A model of the simulator, of another machine, or with a mistake is one sentence, exit code 2.
func TestPackModel(t *testing.T) {
	trained, err := os.ReadFile("../../internal/model/testdata/model.json")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	clitest.WriteFile(t, filepath.Join(dir, "m.json"), string(trained))
	m, err := model.Decode(trained)
	if err != nil {
		t.Fatal(err)
	}
	clitest.WriteFile(t, filepath.Join(dir, "newer.json"), strings.Replace(string(trained), `{"schema":1,`, `{"schema":2,`, 1))
	// The recorded Opteron: its nodes and links are those of the model's machine.
	pack := func(text string, args ...string) (int, string, string) {
		path := clitest.WriteFile(t, filepath.Join(dir, "containers.yaml"), text)
		return runWith(append([]string{"pack", path}, args...)...)
	}
	at := func(machine, rest string) string {
		return "machine: {" + machine + "}\ncontainers:\n  - {name: web, vcpus: 4, goal: 0.9, count: 9, " + rest + "}\n"
	}
	for want, c := range map[string]string{
		`of "opteron-6272", this is "opteron"`:       at("shape: opteron", "model: m.json, probes: [1, 1.1]"),
		`of 16 vCPUs, the workload has 4`:            at("shape: opteron, type: "+m.Machine, "model: m.json, probes: [1, 1.1]"),
		`its 9 important placements are not those`:   strings.Replace(at("shape: opteron, type: "+m.Machine, "model: m.json, probes: [1, 1.1]"), "vcpus: 4", "vcpus: 16", 1),
		"this homenode reads up to 1":                at("shape: opteron, type: x", "model: newer.json, probes: [1, 1.1]"),
		"no such file":                               at("shape: opteron, type: x", "model: missing.json, probes: [1, 1.1]"),
		"4 important placements":                     at("shape: opteron", "speeds: [1, 2]"),
		"baseline 9: want a placement, 1 to 4":       at("shape: opteron", "baseline: 9, speeds: [1, 2, 3, 4]"),
		"the nearest numbers that have one are 10 a": strings.Replace(at("shape: opteron", "speeds: [1, 2]"), "vcpus: 4", "vcpus: 11", 1),
	} {
		code, stdout, stderr := pack(c, "--simulated-model")
		if code != 2 || stdout != "" || !strings.Contains(stderr, want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: exit %d, %q, want %q", c, code, stderr, want)
		}
	}
}

// A model of the simulator is used only where that is asked for, and what it predicts is marked.
func TestPackSimulated(t *testing.T) {
	dir := t.TempDir()
	tree := machinetest.Unpack(t, machinetest.Dir(t)+"/64amd64-4p2n4ca2co-opteron6272.tar.bz2")
	if err := os.CopyFS(filepath.Join(dir, "opteron"), tree); err != nil {
		t.Fatal(err)
	}
	trained, err := filepath.Abs("../../internal/model/testdata/model.json")
	if err != nil {
		t.Fatal(err)
	}
	by := func(model string) string {
		return "machine: {root: opteron, type: opteron-6272}\ncontainers:\n  - {name: web, vcpus: 16, goal: 0.9, count: 3, model: " + model + ", probes: [1210, 1302]}\n"
	}
	path := clitest.WriteFile(t, filepath.Join(dir, "containers.yaml"), by(trained))
	if code, stdout, stderr := runWith("pack", path); code != 2 || stdout != "" || !strings.Contains(stderr, "allow that explicitly") || !strings.Contains(stderr, "--simulated-model") {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
	code, stdout, stderr := runWith("pack", path, "--simulated-model")
	if (code != 0 && code != 3) || !strings.Contains(stdout, "trained in the simulator") || !strings.Contains(stdout, "modelled") {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
	file, err := os.ReadFile(trained)
	if err != nil {
		t.Fatal(err)
	}
	inLab := clitest.WriteFile(t, filepath.Join(dir, "lab.json"), strings.Replace(string(file), `"source":"simulator"`, `"source":"modelled (lab)"`, 1))
	ofLab := clitest.WriteFile(t, filepath.Join(dir, "lab.yaml"), by(inLab))
	if _, stdout, stderr := runWith("pack", ofLab, "--simulated-model"); !strings.Contains(stdout, `trained on workloads of source "modelled (lab)"`) {
		t.Errorf("a model of the lab is not marked: %s%s", stdout, stderr)
	}
	if code, _, stderr := runWith("pack", path, "--simulated-model", "--confidence", "0.9999"); code != 2 || !strings.Contains(stderr, "is more than the model knows") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

func TestPackBadInput(t *testing.T) {
	path := packFile(t, packSample)
	for want, args := range map[string][]string{
		"read file of containers": {"/nonexistent"},
		"one file of containers":  {},
		"--confidence 1: want":    {path, "--confidence", "1"},
		"--tolerance -1: want":    {path, "--tolerance", "-1"},
		"only one output":         {path, "--svg", "-", "-o", "json"},
		"nothing is to be packed": {packFile(t, "machine: {shape: opteron}\n")},
		"goal: 0: want":           {packFile(t, strings.Replace(packSample, "0.9", "0", 1))},
	} {
		code, stdout, stderr := runWith(append([]string{"pack"}, args...)...)
		if code != 2 || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("%v: exit %d, %q, want %q", args, code, stderr, want)
		}
	}
}
