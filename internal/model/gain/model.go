// SPDX-License-Identifier: Apache-2.0

package gain

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"homenode/internal/model"
	"homenode/internal/schema"
)

const (
	// Schema is the version of the manifest. A newer one is refused.
	Schema = 1
	kind   = "homenode-gain"
	label  = "gain_latency_ratio"
	// Where trials ran: in simulated worlds, as real programs on a modelled memory system, or on hardware.
	Simulator = model.Simulator
	Lab       = model.Lab
	Measured  = model.Measured
	// MaxBytes bounds each file: one of 109 trees has 150 kB.
	MaxBytes = 64 << 20
)

// ErrFile is wrapped where the files are no model, or not one for this program.
var ErrFile = errors.New("is no model of gains")

// Manifest says what a model is: gain.json.
type Manifest struct {
	Schema    int       `json:"schema"`
	Kind      string    `json:"kind"`
	MadeBy    string    `json:"made_by"`
	Source    string    `json:"source"` // of the trials: Simulator, Lab, Measured, or "mixed"
	Machines  []string  `json:"machines"`
	Seeds     []uint64  `json:"seeds"`
	Generator int       `json:"generator_version"`
	Command   string    `json:"command"` // makes the trials again
	Data      string    `json:"data_sha256"`
	Rows      int       `json:"rows"`
	Services  int       `json:"services"`
	Features  []Feature `json:"features"` // in the order of the boosters
	Label     string    `json:"label"`
	ClippedAt float64   `json:"clipped_at"`
	Booster   File      `json:"booster"`
	Scale     *File     `json:"scale"` // nil: intervals are as wide everywhere
	Interval  Interval  `json:"interval"`
	Scores    any       `json:"scores"` // as its card shows them
}

// Feature is what the trials had of it.
type Feature struct {
	Name   string    `json:"name"`
	Low    float64   `json:"low"` // 1 of 200 rows is below, and 1 of 200 above High
	High   float64   `json:"high"`
	Median float64   `json:"median"`
	Edges  []float64 `json:"edges"` // between tenths of the rows
}

// File is a booster beside the manifest.
type File struct {
	File   string  `json:"file"`
	SHA256 string  `json:"sha256"`
	Trees  int     `json:"trees"`
	Base   float64 `json:"base_score"`
	Floor  float64 `json:"floor,omitempty"` // of a scale
}

// Interval is around a prediction, times its scale. It is conformal: of services that the model
// has not seen, Confidence are inside.
type Interval struct {
	Confidence    float64 `json:"confidence"`
	Low           float64 `json:"low"`
	High          float64 `json:"high"`
	WidthScaled   float64 `json:"width_scaled"`
	WidthConstant float64 `json:"width_constant"`
}

// Names of features, as internal/sim/fleet's trials and the hub's 'features' have them.
const (
	MBW       = "mbw_bytes_per_s"
	MSR       = "msr_ratio"
	NPMR      = "npmr_ratio"
	RMBR      = "rmbr_ratio"
	CPU       = "cpu_cpus"
	IPC       = "ipc_instructions_per_cycle"
	MPKI      = "llc_misses_per_kilo_instruction"
	CPUOfNode = "cpu_of_node_ratio"
	Busy      = "server_busy_ratio"
	Idlest    = "idlest_node_busy_ratio"
)

var names = []string{MBW, MSR, NPMR, RMBR, CPU, IPC, MPKI, CPUOfNode, Busy, Idlest}

// Model predicts gains.
type Model struct {
	Manifest
	booster, scale *booster
}

// Open reads a model: the manifest, and the files that it names beside it. read is given a path.
func Open(manifest string, read func(path string) ([]byte, error)) (*Model, error) {
	data, err := read(manifest)
	if err != nil {
		return nil, err
	}
	wrong := func(err error) (*Model, error) { return nil, fmt.Errorf("%s %w: %w", manifest, ErrFile, err) }
	m := &Model{}
	if m.Manifest, err = schema.Decode[Manifest](data, "model of gains", Schema); err != nil {
		return wrong(err)
	}
	for _, f := range []struct {
		file *File
		to   **booster
	}{{&m.Manifest.Booster, &m.booster}, {m.Manifest.Scale, &m.scale}} {
		if f.file == nil {
			continue
		}
		data, err := read(filepath.Join(filepath.Dir(manifest), f.file.File))
		if err != nil {
			return nil, err
		}
		if *f.to, err = m.decode(f.file, data); err != nil {
			return wrong(fmt.Errorf("%s: %w", f.file.File, err))
		}
	}
	return m, nil
}

func (m *Model) decode(f *File, data []byte) (*booster, error) {
	if got := fmt.Sprintf("%x", sha256.Sum256(data)); got != f.SHA256 {
		return nil, fmt.Errorf("SHA-256 %.12s…, the manifest has %.12s…: copy all files of one model", got, f.SHA256)
	}
	b, err := decodeBooster(data, len(m.Features))
	if err == nil && (len(b.trees) != f.Trees || float64(b.base) != f.Base) {
		err = fmt.Errorf("%d trees that begin at %v: the manifest has %d and %v", len(b.trees), b.base, f.Trees, f.Base)
	}
	return b, err
}

// Validate says what cannot be.
func (m Manifest) Validate() error {
	switch {
	case m.Schema < 1:
		return fmt.Errorf("schema %d: want at least 1", m.Schema)
	case m.Kind != kind:
		return fmt.Errorf("kind %.40q: want %q", m.Kind, kind)
	case m.Label != label:
		return fmt.Errorf("label %.40q: want %q: it was trained on other events", m.Label, label)
	case m.Source == "" || len(m.Machines) == 0:
		return errors.New("want source and machines")
	case m.Rows < 1 || m.Services < 2:
		return fmt.Errorf("%d rows of %d services: want rows of two services or more", m.Rows, m.Services)
	case len(m.Features) == 0 || len(m.Features) > len(names):
		return fmt.Errorf("%d features: want 1 to %d", len(m.Features), len(names))
	}
	for i, f := range m.Features {
		if !slices.Contains(names, f.Name) || slices.ContainsFunc(m.Features[:i], func(g Feature) bool { return g.Name == f.Name }) {
			return fmt.Errorf("features[%d] is %.40q: want different ones of %s", i, f.Name, strings.Join(names, ", "))
		}
		if err := f.validate(); err != nil {
			return fmt.Errorf("features[%d], %s: %w", i, f.Name, err)
		}
	}
	if err := m.Booster.validate(false); err != nil {
		return fmt.Errorf("booster: %w", err)
	}
	if m.Scale != nil {
		if err := m.Scale.validate(true); err != nil {
			return fmt.Errorf("scale: %w", err)
		}
	}
	i := m.Interval
	if !(i.Confidence > 0 && i.Confidence < 1) || !(i.Low <= 0 && i.Low > -1e6) || !(i.High >= 0 && i.High < 1e6) {
		return fmt.Errorf("interval %v to %v of confidence %v: want numbers below and above 0, and a confidence between 0 and 1", i.Low, i.High, i.Confidence)
	}
	return nil
}

func (f Feature) validate() error {
	if len(f.Edges) != tenths-1 || !slices.IsSorted(f.Edges) || !(f.Low <= f.High) {
		return fmt.Errorf("%d edges, low %v, high %v: want %d edges, ascending, and low below high", len(f.Edges), f.Low, f.High, tenths-1)
	}
	for _, v := range append([]float64{f.Low, f.High, f.Median}, f.Edges...) {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("%v: want numbers", v)
		}
	}
	return nil
}

func (f File) validate(scale bool) error {
	switch {
	case f.File == "" || f.File != filepath.Base(f.File) || f.File == "." || f.File == "..":
		return fmt.Errorf("file %.80q: want the name of a file beside the manifest", f.File)
	case len(f.SHA256) != 2*sha256.Size:
		return fmt.Errorf("sha256 %.80q: want %d hexadecimal digits", f.SHA256, 2*sha256.Size)
	case scale && !(f.Floor > 0 && f.Floor < 1e6):
		return fmt.Errorf("floor %v: want more than 0", f.Floor)
	}
	return nil
}
