// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"fmt"

	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/yamlfile"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// maxShapeFile bounds what a shape file may hold; the largest here has 2 KiB.
const maxShapeFile = 64 << 10

// shapeDoc is the file's form; Shape is what the program uses.
type shapeDoc struct {
	Name  string `yaml:"name"`
	About string `yaml:"about"`
	Nodes []struct {
		CPUs   cpuText  `yaml:"cpus"`
		Memory sizeText `yaml:"memory"`
	} `yaml:"nodes"`
	Distances    [][]int    `yaml:"distances"`
	Housekeeping cpuText    `yaml:"housekeeping"`
	Model        modelDoc   `yaml:"model"`
	Links        []pairText `yaml:"links"`
	Threads      *int       `yaml:"threads"`
}

// modelDoc has a nil for every figure that keeps its default.
type modelDoc struct {
	MHz               *int        `yaml:"mhz"`
	TimeFactor        *int        `yaml:"time_factor"`
	L1                *sizeText   `yaml:"l1"`
	L2                *sizeText   `yaml:"l2"`
	LLC               *sizeText   `yaml:"llc"`
	L2Cycles          *int        `yaml:"l2_cycles"`
	LLCCycles         *int        `yaml:"llc_cycles"`
	DRAMCycles        map[int]int `yaml:"dram_cycles"`
	MCCycles          *int        `yaml:"memory_cycles_per_line"`
	LinkCycles        *int        `yaml:"link_cycles_per_line"`
	StreamParallelism *int        `yaml:"stream_parallelism"`
	TransferCycles    map[int]int `yaml:"transfer_cycles"`
	AtomicCycles      *int        `yaml:"atomic_cycles"`
	Coherence         *bool       `yaml:"coherence"`
}

// ParseShape reads a shape file (see lab/shapes/two.yaml). Unknown and repeated
// keys are errors; so is whatever Validate finds. An error names the file and
// the line and shows it; then the Shape is zero.
func ParseShape(data []byte, file string) (Shape, error) {
	doc, body, err := decodeShape(data)
	if err != nil {
		return Shape{}, shapeError(data, file, err)
	}
	s := doc.shape()
	var errs []error
	for _, p := range s.problems() {
		errs = append(errs, shapeError(data, file, yamlfile.At(body, p.path, p.text)))
	}
	if len(errs) > 0 {
		return Shape{}, errors.Join(errs...)
	}
	return s, nil
}

func decodeShape(data []byte) (doc shapeDoc, body ast.Node, err error) {
	if len(data) > maxShapeFile {
		return doc, nil, fmt.Errorf("it has %d bytes: a shape has at most %d", len(data), maxShapeFile)
	}
	err = yamlfile.Guard(func() (err error) {
		if body, err = yamlfile.Body(data); err == nil {
			err = yaml.NodeToValue(body, &doc, yaml.Strict())
		}
		return err
	})
	return doc, body, err
}

func (d shapeDoc) shape() Shape {
	s := Shape{Name: d.Name, About: d.About, Distances: d.Distances, Housekeeping: d.Housekeeping.CPUSet, Model: d.Model.model()}
	for _, n := range d.Nodes {
		s.Nodes = append(s.Nodes, ShapeNode{CPUs: n.CPUs.CPUSet, Memory: n.Memory.Bytes})
	}
	if d.Links != nil { // "links: []" means none, not the default
		s.Links = [][2]int{}
	}
	for _, l := range d.Links {
		s.Links = append(s.Links, l)
	}
	s.Threads = 1
	keep(&s.Threads, d.Threads)
	return s
}

// model puts what the file says over the defaults. dram_cycles replaces the
// whole default table, so that a file shows all latencies it uses.
func (d modelDoc) model() Model {
	m := DefaultModel()
	keep(&m.MHz, d.MHz)
	keep(&m.TimeFactor, d.TimeFactor)
	keepSize(&m.L1, d.L1)
	keepSize(&m.L2, d.L2)
	keepSize(&m.LLC, d.LLC)
	keep(&m.L2Cycles, d.L2Cycles)
	keep(&m.LLCCycles, d.LLCCycles)
	keep(&m.MCCycles, d.MCCycles)
	keep(&m.LinkCycles, d.LinkCycles)
	keep(&m.StreamParallelism, d.StreamParallelism)
	keep(&m.AtomicCycles, d.AtomicCycles)
	if d.Coherence != nil {
		m.Coherence = *d.Coherence
	}
	m.TransferCycles = d.TransferCycles
	if d.DRAMCycles != nil {
		m.DRAMCycles = d.DRAMCycles
	}
	return m
}

func keep(to *int, given *int) {
	if given != nil {
		*to = *given
	}
}

func keepSize(to *unit.Bytes, given *sizeText) {
	if given != nil {
		*to = given.Bytes
	}
}

// cpuText is a CPU list: 0-3, "0-1,8", 8, "".
type cpuText struct{ set.CPUSet }

func (c *cpuText) UnmarshalYAML(n ast.Node) (err error) {
	return scalar(n, func(text string) error {
		c.CPUSet, err = set.ParseCPUs(text)
		return err
	})
}

// sizeText is an amount of memory: 512MiB.
type sizeText struct{ unit.Bytes }

func (s *sizeText) UnmarshalYAML(n ast.Node) (err error) {
	return scalar(n, func(text string) error {
		s.Bytes, err = unit.ParseBytes(text)
		return err
	})
}

// scalar hands over a scalar's text, and puts the place on an error.
func scalar(n ast.Node, parse func(string) error) error {
	if n.Type() != ast.StringType && n.Type() != ast.IntegerType {
		return &yaml.SyntaxError{Message: `want a plain value such as 0-3, "0-1,8" or 512MiB`, Token: n.GetToken()}
	}
	if err := parse(n.GetToken().Value); err != nil {
		return &yaml.SyntaxError{Message: err.Error(), Token: n.GetToken()}
	}
	return nil
}

// pairText is a link: [0, 1].
type pairText [2]int

func (p *pairText) UnmarshalYAML(n ast.Node) error {
	var ids []int
	if err := yaml.NodeToValue(n, &ids); err != nil {
		return err
	}
	if len(ids) != 2 {
		return &yaml.SyntaxError{Message: fmt.Sprintf("a link joins two nodes, not %d: write [a, b]", len(ids)), Token: n.GetToken()}
	}
	*p = pairText(ids)
	return nil
}

func shapeError(data []byte, file string, err error) error {
	return yamlfile.Error(data, file, ErrMalformed, err)
}
