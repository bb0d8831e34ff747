// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"homenode/internal/machine"
	"homenode/internal/set"
	"homenode/internal/yamlfile"
)

// Mix is the workloads that run together, and how they are measured;
// lab/mixes/*.yaml.
type Mix struct {
	Name      string     `yaml:"name" json:"name"`
	Shape     string     `yaml:"shape" json:"shape"`
	Repeats   int        `yaml:"repeats" json:"repeats"`
	Seed      uint64     `yaml:"seed" json:"seed"`
	Warmup    float64    `yaml:"warmup_model_seconds" json:"warmup_model_s"` // the same for every arm
	Measure   float64    `yaml:"measure_model_seconds" json:"measure_model_s"`
	Workloads []Workload `yaml:"workloads" json:"workloads"`
}

// Workload is one load program.
type Workload struct {
	Name     string      `yaml:"name" json:"name"`
	Kind     string      `yaml:"kind" json:"kind"`           // sensitive, wide, hog, insensitive
	CPULimit float64     `yaml:"cpu_limit" json:"cpu_limit"` // CPUs; 0 = no limit
	OnNodes  string      `yaml:"nodes" json:"-"`             // as written in the file
	Nodes    set.NodeSet `yaml:"-" json:"nodes"`             // the hand-optimised placement
	Load     string      `yaml:"load" json:"load"`           // arguments of homenode-load
	ByHand   string      `yaml:"by_hand" json:"by_hand"`     // additional arguments in the arm by hand
}

// Kinds of workloads.
const (
	Sensitive   = "sensitive" // fits in a node, and placement matters to it
	Wide        = "wide"      // wider than a node: no placement makes it local
	Hog         = "hog"
	Insensitive = "insensitive"
)

var kinds = []string{Sensitive, Wide, Hog, Insensitive}

// ReadMix reads and checks a mix.
func ReadMix(path string) (Mix, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Mix{}, fmt.Errorf("read mix: %w", err)
	}
	return ParseMix(data, path)
}

// ErrMalformed is in every error of ParseMix.
var ErrMalformed = errors.New("malformed")

// maxMix bounds the size of a mix; the largest here has 2 KiB.
const maxMix = 64 << 10

// ParseMix refuses unknown keys, with line and excerpt.
func ParseMix(data []byte, file string) (m Mix, err error) {
	doc, err := yamlfile.Parse(data, file, yamlfile.Rules{Malformed: ErrMalformed, What: "a mix", Most: maxMix})
	if err != nil {
		return Mix{}, err
	}
	if err = doc.Decode(&m); err == nil {
		err = m.check(func(path, format string, args ...any) error {
			return doc.Wrong(path, fmt.Sprintf(format, args...))
		})
	}
	if err != nil {
		return Mix{}, err
	}
	return m, nil
}

// refusal returns what is wrong at a path of the file.
type refusal func(path, format string, args ...any) error

func (m *Mix) check(refuse refusal) error {
	switch {
	case m.Name == "" || m.Shape == "" || len(m.Workloads) == 0:
		return refuse("", "want name, shape and workloads")
	case m.Repeats < 1 || m.Repeats > 20:
		return refuse("repeats", "want 1 to 20")
	case !(m.Warmup > 0):
		return refuse("warmup_model_seconds", "want more than 0")
	case !(m.Measure > 0):
		return refuse("measure_model_seconds", "want more than 0")
	}
	seen := map[string]bool{}
	for i := range m.Workloads {
		w, path := &m.Workloads[i], fmt.Sprintf("workloads[%d]", i)
		if w.Name == "" || strings.ContainsAny(w.Name, "/ ") || seen[w.Name] {
			return refuse(path+".name", "want a unique name without / and spaces, not %q", w.Name)
		}
		seen[w.Name] = true
		if err := w.check(path, refuse); err != nil {
			return err
		}
	}
	return nil
}

func (w *Workload) check(path string, refuse refusal) error {
	nodes, err := set.ParseNodes(w.OnNodes)
	switch {
	case !slices.Contains(kinds, w.Kind):
		return refuse(path+".kind", "%q, want one of %s", w.Kind, strings.Join(kinds, ", "))
	case strings.TrimSpace(w.Load) == "":
		return refuse(path+".load", "want the arguments of homenode-load")
	case w.CPULimit < 0:
		return refuse(path+".cpu_limit", "want CPUs, 0 = no limit")
	case err != nil:
		return refuse(path+".nodes", "%v", err)
	case nodes.IsEmpty():
		return refuse(path+".nodes", "want the nodes of its placement by hand, such as 0 or 0-1")
	case w.Kind == Sensitive && nodes.Len() > 1:
		return refuse(path+".nodes", "%s is more than a node, and it is %s: want one node, or kind %s", nodes, Sensitive, Wide)
	}
	w.Nodes = nodes
	return nil
}

// CheckOn returns what the mix needs and a shape does not have.
func (m Mix) CheckOn(s machine.Shape) error {
	for _, w := range m.Workloads {
		for n := range w.Nodes.All() {
			if n >= len(s.Nodes) || s.Nodes[n].CPUs.IsEmpty() {
				return fmt.Errorf("workload %s: shape %s has no CPUs on node %d", w.Name, s.Name, n)
			}
		}
	}
	return nil
}
