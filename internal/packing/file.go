// SPDX-License-Identifier: Apache-2.0

package packing

import (
	"errors"
	"fmt"
	"math"

	"homenode/internal/yamlfile"
)

// ErrMalformed marks a file of containers that cannot be.
var ErrMalformed = errors.New("malformed file of containers")

// MaxFile bounds a file of containers in bytes.
const MaxFile = 4 << 20

// File is what is to be packed, as a person writes it:
//
//	machine: {shape: opteron}       # or root, hwloc; without any: this host
//	containers:
//	  - name: web
//	    vcpus: 16
//	    goal: 0.9                   # of the speed in the baseline
//	    count: 3
//	    model: model.json           # predicted from the speeds of its probes, two or three
//	    probes: [1210, 1302]
//	  - name: batch
//	    vcpus: 16
//	    goal: 1
//	    baseline: 2                 # placement as 'homenode placements' numbers them
//	    speeds: [10.2, 11.3, 11.9]  # measured in every important placement
type File struct {
	Machine    FileMachine     `yaml:"machine"`
	Containers []FileContainer `yaml:"containers"`
}

// FileMachine names the machine. Paths are relative to the file.
type FileMachine struct {
	Shape   string `yaml:"shape"`   // of the lab, or a file
	Root    string `yaml:"root"`    // recorded tree
	Hwloc   string `yaml:"hwloc"`   // hwloc's XML
	Links   string `yaml:"links"`   // table of the bandwidths between nodes
	Profile string `yaml:"profile"` // of 'homenode bench', with these bandwidths
	Type    string `yaml:"type"`    // what models call this type of machine; "": the shape's name
}

// FileContainer is one container. It has probes, speeds, or neither: then its speed is unknown.
type FileContainer struct {
	Name     string    `yaml:"name"`
	VCPUs    int       `yaml:"vcpus"`
	Goal     float64   `yaml:"goal"`
	Count    int       `yaml:"count"`
	Model    string    `yaml:"model"`
	Probes   []float64 `yaml:"probes"`
	Speeds   []float64 `yaml:"speeds"`
	Baseline int       `yaml:"baseline"`
}

// SetDefaults is for yamlfile.
func (c *FileContainer) SetDefaults() { c.Count, c.Baseline = 1, 1 }

// ParseFile reads a file of containers. What depends on the machine, New checks.
func ParseFile(text []byte, file string) (File, error) {
	doc, err := yamlfile.Parse(text, file, yamlfile.Rules{Malformed: ErrMalformed, What: "a file of containers", Most: MaxFile})
	if err != nil {
		return File{}, err
	}
	var f File
	if err := doc.Decode(&f); err != nil {
		return File{}, err
	}
	var all []error
	wrong := func(path, format string, args ...any) {
		all = append(all, doc.Wrong(path, fmt.Sprintf(format, args...)))
	}
	f.Machine.check(wrong)
	if len(f.Containers) == 0 {
		wrong("containers", "nothing is to be packed: name containers")
	}
	names := map[string]bool{}
	for i, c := range f.Containers {
		at := fmt.Sprintf("containers[%d]", i)
		if names[c.Name] || c.Name == "" {
			wrong(at+".name", "%.80q: give each container a name of its own", c.Name)
		}
		names[c.Name] = true
		c.check(func(key, format string, args ...any) { wrong(at+"."+key, format, args...) })
	}
	if len(all) > 0 {
		return File{}, errors.Join(all...)
	}
	return f, nil
}

func (m FileMachine) check(wrong func(path, format string, args ...any)) {
	named := 0
	for _, name := range []string{m.Shape, m.Root, m.Hwloc} {
		if name != "" {
			named++
		}
	}
	if named > 1 {
		wrong("machine", "shape, root and hwloc each name a machine: give one of them")
	}
	if m.Links != "" && m.Profile != "" {
		wrong("machine.links", "links and profile both have bandwidths between nodes: give one of them")
	}
}

func (c FileContainer) check(wrong func(key, format string, args ...any)) {
	switch {
	case c.VCPUs < 1:
		wrong("vcpus", "%d: want 1 or more", c.VCPUs)
	case !(c.Goal > 0 && c.Goal <= maxGoal):
		wrong("goal", "%v: want a speed relative to the baseline's, above 0, such as 0.9", c.Goal)
	case c.Count < 1 || c.Count > MaxContainers:
		wrong("count", "%d: want 1 to %d", c.Count, MaxContainers)
	case len(c.Probes) > 0 && len(c.Speeds) > 0:
		wrong("probes", "probes and speeds are both given: give probes with a model, or the speeds of all placements")
	case len(c.Probes) > 0 && c.Model == "":
		wrong("probes", "probes need a model: name its file")
	case len(c.Probes) == 0 && c.Model != "":
		wrong("model", "a model needs the speeds of its probes: give probes, or leave out the model")
	}
	for name, list := range map[string][]float64{"probes": c.Probes, "speeds": c.Speeds} {
		for i, v := range list {
			if !(v > 0) || math.IsInf(v, 1) {
				wrong(fmt.Sprintf("%s[%d]", name, i), "%v: want a speed above 0: measure it again", v)
			}
		}
	}
	if len(c.Speeds) > 1 && constant(c.Speeds) {
		wrong("speeds", "the same in all placements: the metric does not tell them apart")
	}
	if c.Baseline < 1 {
		wrong("baseline", "%d: want a placement, from 1", c.Baseline)
	}
}

func constant(all []float64) bool {
	for _, v := range all {
		if v != all[0] {
			return false
		}
	}
	return true
}
