// SPDX-License-Identifier: Apache-2.0

package packing

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

const sample = `machine: {shape: opteron}
containers:
  - {name: web, vcpus: 16, goal: 0.9, count: 3, model: m.json, probes: [1210, 1302]}
  - {name: batch, vcpus: 16, goal: 1, baseline: 2, speeds: [10.2, 11.3]}
`

func TestParseFile(t *testing.T) {
	got, err := ParseFile([]byte(sample), "x.yaml")
	want := File{Machine: FileMachine{Shape: "opteron"}, Containers: []FileContainer{
		{Name: "web", VCPUs: 16, Goal: 0.9, Count: 3, Model: "m.json", Probes: []float64{1210, 1302}, Baseline: 1},
		{Name: "batch", VCPUs: 16, Goal: 1, Count: 1, Speeds: []float64{10.2, 11.3}, Baseline: 2},
	}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestParseFileRefuses(t *testing.T) {
	for want, change := range map[string][2]string{
		"vcpus: 0: want 1":                       {"vcpus: 16, goal: 0.9", "vcpus: 0, goal: 0.9"},
		"goal: -1: want":                         {"goal: 0.9", "goal: -1"},
		"goal: it is .nan":                       {"goal: 0.9", "goal: .nan"},
		"count: 0: want":                         {"count: 3", "count: 0"},
		"probes need a model":                    {"model: m.json, ", ""},
		"a model needs the speeds of its probes": {", probes: [1210, 1302]", ""},
		"probes[1]: 0: want a speed above 0":     {"1302", "0"},
		"speeds[0]: it is .inf":                  {"10.2", ".inf"},
		"the same in all placements":             {"10.2, 11.3", "7, 7"},
		"give each container a name of its own":  {"name: batch", "name: web"},
		"nothing is to be packed":                {sample[strings.Index(sample, "containers"):], "containers: []\n"},
		"each name a machine":                    {"{shape: opteron}", "{shape: opteron, root: x}"},
		"both have bandwidths":                   {"{shape: opteron}", "{links: a, profile: b}"},
		"baseline: 0: want":                      {"baseline: 2", "baseline: 0"},
		"probes and speeds are both given":       {"speeds: [10.2", "model: x, probes: [1], speeds: [10.2"},
	} {
		f, err := ParseFile([]byte(strings.Replace(sample, change[0], change[1], 1)), "x.yaml")
		if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, ErrMalformed) || f.Containers != nil {
			t.Errorf("no %q in %v", want, err)
		}
	}
}

func FuzzParseFile(f *testing.F) {
	f.Add([]byte(sample))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := ParseFile(text, "x.yaml")
		if err != nil && got.Containers != nil {
			t.Fatalf("an error and a value: %+v", got)
		}
		if err == nil && len(got.Containers) == 0 {
			t.Fatal("nothing to pack, and no error")
		}
	})
}
