// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
)

// Mix is what runs side by side, and how it is measured; lab/mixes/*.yaml.
type Mix struct {
	Name         string     `yaml:"name" json:"name"`
	Shape        string     `yaml:"shape" json:"shape"`
	Repeats      int        `yaml:"repeats" json:"repeats"`
	Seed         uint64     `yaml:"seed" json:"seed"`
	Warmup       Warmup     `yaml:"warmup" json:"warmup"`
	ModelSeconds float64    `yaml:"measure_model_seconds" json:"measure_model_seconds"`
	MinRate      float64    `yaml:"min_rate" json:"min_rate"` // of nominal, over any 250 ms
	Workloads    []Workload `yaml:"workloads" json:"workloads"`
}

// Warmup is the rule when to stop warming up, the same for every arm.
type Warmup struct {
	CheckEvery   time.Duration `yaml:"check_every" json:"check_every_ns"`
	SteadyWithin float64       `yaml:"steady_within" json:"steady_within"`
	AtLeast      time.Duration `yaml:"at_least" json:"at_least_ns"`
	AtMost       time.Duration `yaml:"at_most" json:"at_most_ns"`
}

// Workload is one load program.
type Workload struct {
	Name     string  `yaml:"name" json:"name"`
	Kind     string  `yaml:"kind" json:"kind"`           // sensitive, hog, insensitive
	CPULimit float64 `yaml:"cpu_limit" json:"cpu_limit"` // CPUs' worth; 0 = none
	Node     int     `yaml:"node" json:"node"`           // the hand-optimised placement
	Load     string  `yaml:"load" json:"load"`           // arguments of homenode-load
}

// Kinds of workloads.
const (
	Sensitive   = "sensitive"
	Hog         = "hog"
	Insensitive = "insensitive"
)

// ReadMix reads and checks a mix.
func ReadMix(path string) (Mix, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Mix{}, fmt.Errorf("read mix: %w", err)
	}
	return ParseMix(data, path)
}

// ParseMix refuses unknown keys, with line and excerpt.
func ParseMix(data []byte, file string) (Mix, error) {
	var m Mix
	if err := yaml.UnmarshalWithOptions(data, &m, yaml.Strict()); err != nil {
		return Mix{}, fmt.Errorf("parse %s: %s", file, strings.TrimSpace(yaml.FormatError(err, false, true)))
	}
	if err := m.check(); err != nil {
		return Mix{}, fmt.Errorf("parse %s: %w", file, err)
	}
	return m, nil
}

func (m Mix) check() error {
	if m.Name == "" || m.Shape == "" || len(m.Workloads) == 0 {
		return fmt.Errorf("a mix needs name, shape and workloads")
	}
	if m.Repeats < 1 || m.Repeats > 20 || m.ModelSeconds <= 0 || m.MinRate < 0 || m.MinRate > 1 {
		return fmt.Errorf("want repeats 1 to 20, measure_model_seconds above 0, min_rate from 0 to 1")
	}
	if w := m.Warmup; w.CheckEvery <= 0 || w.AtMost < w.AtLeast || w.SteadyWithin <= 0 {
		return fmt.Errorf("warmup: want check_every and steady_within above 0, at_most not below at_least")
	}
	seen := map[string]bool{}
	for _, w := range m.Workloads {
		if w.Name == "" || strings.ContainsAny(w.Name, "/ ") || seen[w.Name] {
			return fmt.Errorf("workload %q: want a unique name without / and spaces", w.Name)
		}
		seen[w.Name] = true
		if w.Kind != Sensitive && w.Kind != Hog && w.Kind != Insensitive {
			return fmt.Errorf("workload %s: kind is %q, want sensitive, hog or insensitive", w.Name, w.Kind)
		}
		if strings.TrimSpace(w.Load) == "" || w.CPULimit < 0 || w.Node < 0 {
			return fmt.Errorf("workload %s: want load, cpu_limit ≥ 0, node ≥ 0", w.Name)
		}
	}
	return nil
}
