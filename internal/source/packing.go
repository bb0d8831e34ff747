// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"homenode/internal/kernel/unix"
	"homenode/internal/machine"
	"homenode/internal/model"
	"homenode/internal/packing"
	"homenode/internal/placement"
)

// PackingOptions are how predictions are taken, and when a goal is missed.
type PackingOptions struct {
	Confidence, Tolerance float64
	Simulated             bool // take models that were not trained on hardware, too
}

// Packing is a file of containers, and what it names.
type Packing struct {
	From map[string]string // where a container's speeds come from, by its name

	file    packing.File
	folder  string
	options PackingOptions
	models  map[string]*model.Model
}

// NewPacking reads a file of containers.
func NewPacking(path string, o PackingOptions) (*Packing, error) {
	text, err := unix.ReadAtMost(path, packing.MaxFile)
	if err != nil {
		return nil, fmt.Errorf("read file of containers: %w", err)
	}
	file, err := packing.ParseFile(text, path)
	return &Packing{From: map[string]string{}, file: file, folder: filepath.Dir(path), options: o, models: map[string]*model.Model{}}, err
}

// path is relative to the file of containers.
func (in *Packing) path(name string) string {
	if name == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(in.folder, name)
}

// Machine is where the machine is read from.
func (in *Packing) Machine() *Machine {
	shape := in.file.Machine.Shape
	if strings.ContainsAny(shape, "/.") {
		shape = in.path(shape)
	}
	return &Machine{Shape: shape, Root: in.path(in.file.Machine.Root), FromHwloc: in.path(in.file.Machine.Hwloc)}
}

// Problem is what is to be packed onto a machine.
func (in *Packing) Problem(m machine.Machine) (*packing.Problem, error) {
	links, err := Bandwidths(in.path(in.file.Machine.Links), in.path(in.file.Machine.Profile), m, in.Machine().CPUModel())
	if err != nil {
		return nil, err
	}
	var all []packing.Container
	for _, c := range in.file.Containers {
		all = append(all, packing.Container{Name: c.Name, VCPUs: c.VCPUs, Goal: c.Goal, Count: c.Count})
	}
	p, err := packing.New(m, links, all)
	if err != nil {
		return nil, err
	}
	for i, c := range in.file.Containers {
		if all[i].Speeds, err = in.speeds(c, p.List(c.VCPUs)); err != nil {
			return nil, fmt.Errorf("container %.80s: %w", c.Name, err)
		}
	}
	if p, err = p.With(all); err == nil {
		p.Tolerance = in.options.Tolerance
	}
	return p, err
}

func (in *Packing) speeds(c packing.FileContainer, l placement.List) ([]packing.Speed, error) {
	switch {
	case len(c.Speeds) > 0:
		in.From[c.Name] = "measured in each placement"
		return packing.Measured(c.Speeds, c.Baseline-1)
	case len(c.Probes) == 0:
		return nil, nil
	}
	path := in.path(c.Model)
	if in.models[path] == nil {
		m, err := Model(path)
		if err != nil {
			return nil, err
		}
		in.models[path] = &m
	}
	m := in.models[path]
	machineType := in.file.Machine.Type
	if machineType == "" {
		machineType = in.file.Machine.Shape
	}
	if machineType == "" {
		return nil, fmt.Errorf("model %s is of the machine type %.80q: if this machine is one, say so ('machine: {type: …}')", c.Model, m.Machine)
	}
	err := m.Fits(model.Use{Machine: machineType, List: l, Simulated: in.options.Simulated})
	switch {
	case errors.Is(err, model.ErrSimulated):
		return nil, fmt.Errorf("model %s: %w (--simulated-model)", c.Model, err)
	case err != nil:
		return nil, fmt.Errorf("model %s: %w", c.Model, err)
	}
	in.From[c.Name] = "predicted by " + c.Model
	switch m.Source {
	case model.Measured:
	case model.Simulator:
		in.From[c.Name] += ", which was trained in the simulator"
	default:
		in.From[c.Name] += fmt.Sprintf(", which was trained on workloads of source %.80q", m.Source)
	}
	return packing.Predicted(m, c.Probes, in.options.Confidence)
}
