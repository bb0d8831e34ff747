// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"homenode/internal/actuate"
	"homenode/internal/machine"
	"homenode/internal/policy/mao"
	"homenode/internal/sim"
	"homenode/internal/sim/linux"
	"homenode/internal/yamlfile"
)

// Schema is the version of the file's form.
const Schema = 1

// maxFile bounds the size of a scenario; the largest one here has some KiB.
const maxFile = 1 << 20

// The defaults of a scenario.
const (
	defaultPeriod = time.Minute
	defaultStep   = time.Second
)

// fileDoc is the file's form where it differs from Scenario.
type fileDoc struct {
	Scenario  `yaml:",inline"`
	Workloads []workloadDoc `yaml:"workloads"`
	Paper     []claimDoc    `yaml:"paper"`
}

// workloadDoc is a spec with defaults.
type workloadDoc sim.Spec

// SetDefaults is called before a workload is decoded.
func (w *workloadDoc) SetDefaults() { *w = workloadDoc{Replicas: 1, Demand: sim.DemandSpec{Wakes: -1}} }

func (w workloadDoc) spec() sim.Spec {
	for i := range w.Work.Regions {
		if r := &w.Work.Regions[i]; r.Parallelism == 0 {
			r.Parallelism = 1
		}
	}
	return sim.Spec(w)
}

// Parse reads a scenario (see sim/scenarios/two-services.yaml). Unknown and repeated keys
// are errors, and so are invalid values. An error names the file and the line and shows it;
// then the Scenario is zero. Load checks that the machine's files are there, and that
// workloads fit the machine.
func Parse(data []byte, file string) (Scenario, error) {
	s, _, err := parse(data, file)
	return s, err
}

// parse also returns the document, which knows the lines.
func parse(data []byte, file string) (Scenario, *yamlfile.Document, error) {
	doc, err := yamlfile.Parse(data, file, yamlfile.Rules{Malformed: ErrMalformed, What: "a scenario", Most: maxFile})
	if err != nil {
		return Scenario{}, nil, err
	}
	s, err := decode(doc)
	if err != nil {
		return Scenario{}, nil, err
	}
	if err := allErrors(doc, s.problems(doc.Wrote)); err != nil {
		return Scenario{}, nil, err
	}
	return s, doc, nil
}

// problem is something invalid, with its path in the file: workloads[1].demand.rate.
type problem struct{ path, text string }

// mostShown bounds the problems in an error, as a longer list is not read.
const mostShown = 20

func allErrors(doc *yamlfile.Document, all []problem) error {
	var errs []error
	for i, p := range all {
		if i == mostShown {
			errs = append(errs, fmt.Errorf("and %d more", len(all)-i))
			break
		}
		errs = append(errs, doc.Wrong(p.path, p.text))
	}
	return errors.Join(errs...)
}

func decode(doc *yamlfile.Document) (Scenario, error) {
	f := fileDoc{Scenario: Scenario{
		Schema: Schema, Period: defaultPeriod, Linux: linux.DefaultSettings(), MAO: mao.DefaultConfig(), Actuate: actuate.DefaultConfig(),
	}}
	if err := doc.Decode(&f); err != nil {
		return Scenario{}, err
	}
	s := f.Scenario
	for i := range s.Arms {
		if err := s.Arms[i].complete(doc, fmt.Sprintf("arms[%d].mao", i), s.MAO); err != nil {
			return Scenario{}, err
		}
	}
	for _, w := range f.Workloads {
		s.Workloads = append(s.Workloads, w.spec())
	}
	for _, p := range f.Paper {
		s.Paper = append(s.Paper, p.claim())
	}
	if s.Step == 0 {
		s.Step = min(defaultStep, s.Period)
	}
	if s.Seeds == nil {
		s.Seeds = []uint64{1}
	}
	if s.Against == "" && len(s.Arms) > 0 {
		s.Against = s.Arms[0].Name
	}
	return s, nil
}

// complete applies the arm's own settings of MAO again, over those of the scenario, which
// may come later in the file.
func (a *Arm) complete(doc *yamlfile.Document, path string, of mao.Config) error {
	if a.Name == "" {
		a.Name = a.Policy
	}
	if a.MAO == nil {
		return nil
	}
	a.MAO = &of
	return doc.DecodeAt(path, a.MAO)
}

// arm finds an arm by its name.
func (s Scenario) arm(name string) (Arm, bool) {
	for _, a := range s.Arms {
		if a.Name == name {
			return a, true
		}
	}
	return Arm{}, false
}

// Keep removes all but the arm of that name, and all but these seeds if there are any.
func (s Scenario) Keep(arm string, seeds []uint64) (Scenario, error) {
	if len(seeds) > 0 {
		s.Seeds = seeds
	}
	if arm != "" {
		a, ok := s.arm(arm)
		if !ok {
			return Scenario{}, fmt.Errorf("no arm %q: %s has %s", arm, s.Name, quoted(s.Arms, func(a Arm) string { return a.Name }))
		}
		s.Arms, s.Against = []Arm{a}, arm
	}
	if err := checkSeeds(s.Seeds); err != "" {
		return Scenario{}, errors.New(err)
	}
	if why := tooMany(s); why != "" {
		return Scenario{}, errors.New(why)
	}
	return s, nil
}

func quoted[T any](all []T, name func(T) string) string {
	text := ""
	for i, v := range all {
		if i > 0 {
			text += ", "
		}
		text += strconv.Quote(name(v))
	}
	if text == "" {
		return "none"
	}
	return text
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// ErrMalformed is wrapped by every error of Parse and Load that is the file's fault.
var ErrMalformed = machine.ErrMalformed
