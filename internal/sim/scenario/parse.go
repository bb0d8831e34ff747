// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"homenode/internal/actuate"
	"homenode/internal/machine"
	"homenode/internal/policy/mao"
	"homenode/internal/sim"
	"homenode/internal/sim/linux"
	"homenode/internal/yamlfile"
)

// Schema is the version of the file's form.
const Schema = 1

// maxFile bounds what a scenario may hold; the largest here has some KiB.
const maxFile = 1 << 20

// The library's time grows with the square of how deep things are nested: seconds at
// 20,000 levels. A scenario has eight.
const (
	mostOpen = 200 // [ and { that are not closed yet, also those inside quotes
	mostLine = 10_000
)

// sane refuses what the library would take for ever to refuse.
func sane(data []byte) error {
	if len(data) > maxFile {
		return fmt.Errorf("it has %d bytes: a scenario has at most %d", len(data), maxFile)
	}
	open, column := 0, 0
	for _, b := range data {
		column++
		switch b {
		case '\n', '\r':
			column = 0
		case '[', '{':
			open++
		case ']', '}':
			open = max(0, open-1)
		}
		if open > mostOpen || column > mostLine {
			return fmt.Errorf("it is nested deeper than %d, or has a line longer than %d bytes", mostOpen, mostLine)
		}
	}
	return nil
}

// The figures of a file that says nothing.
const (
	defaultPeriod = time.Minute
	defaultStep   = time.Second
)

// fileDoc is the file's form; Scenario is what the program uses.
type fileDoc struct {
	Schema    int            `yaml:"schema"`
	Name      string         `yaml:"name"`
	About     string         `yaml:"about"`
	Machine   Machine        `yaml:"machine"`
	Period    time.Duration  `yaml:"period"`
	Step      time.Duration  `yaml:"step"`
	Lasts     time.Duration  `yaml:"lasts"`
	Warmup    time.Duration  `yaml:"warmup"`
	Clock     time.Duration  `yaml:"clock"`
	Seeds     []uint64       `yaml:"seeds"`
	Linux     linux.Settings `yaml:"linux"`
	Arms      []armDoc       `yaml:"arms"`
	Against   string         `yaml:"against"`
	Workloads []workloadDoc  `yaml:"workloads"`
	MAO       mao.Config     `yaml:"mao"`
	Actuate   actuate.Config `yaml:"actuate"`
	Paper     []claimDoc     `yaml:"paper"`
}

// armDoc is an Arm whose MAO is read once the file's own is known: it is put over it.
type armDoc struct {
	Name          string `yaml:"name"`
	About         string `yaml:"about"`
	Policy        string `yaml:"policy"`
	NUMABalancing *bool  `yaml:"numa_balancing"`
	MAO           later  `yaml:"mao"`
}

// later is something to be read when there is something to read it over.
type later struct{ decode func(any) error }

func (l *later) UnmarshalYAML(decode func(any) error) error {
	l.decode = decode
	return nil
}

// workloadDoc is a spec over the figures of one that says nothing.
type workloadDoc sim.Spec

func (w *workloadDoc) UnmarshalYAML(decode func(any) error) error {
	s := sim.Spec{Replicas: 1, Demand: sim.DemandSpec{Wakes: -1}}
	err := decode(&s)
	for i := range s.Work.Regions {
		if r := &s.Work.Regions[i]; r.Parallelism == 0 {
			r.Parallelism = 1
		}
	}
	*w = workloadDoc(s)
	return err
}

// Parse reads a scenario (see sim/scenarios/two-services.yaml). Unknown and repeated
// keys are errors, and so is what cannot be. An error names the file and the line
// and shows it; then the Scenario is zero. Whether the machine's files are there,
// and workloads fit the machine, is for Load.
func Parse(data []byte, file string) (Scenario, error) {
	s, body, written, err := decode(data)
	if err != nil {
		return Scenario{}, yamlfile.Error(data, file, ErrMalformed, locate(body, err))
	}
	if err := allErrors(data, file, body, s.problems(written)); err != nil {
		return Scenario{}, err
	}
	return s, nil
}

// mostShown are problems that are told; nobody reads more, and each is looked up.
const mostShown = 20

func allErrors(data []byte, file string, body ast.Node, all []problem) error {
	var errs []error
	for i, p := range all {
		if i == mostShown {
			errs = append(errs, fmt.Errorf("and %d more", len(all)-i))
			break
		}
		errs = append(errs, yamlfile.Error(data, file, ErrMalformed, yamlfile.At(body, p.path, p.text)))
	}
	return errors.Join(errs...)
}

func decode(data []byte) (s Scenario, body ast.Node, written map[string]bool, err error) {
	err = yamlfile.Guard(func() (err error) {
		s, body, written, err = read(data)
		return err
	})
	return s, body, written, err
}

func read(data []byte) (s Scenario, body ast.Node, written map[string]bool, err error) {
	body, all, err := bodyOf(data)
	if err != nil {
		return s, body, nil, err
	}
	doc := fileDoc{
		Schema: Schema, Period: defaultPeriod, Linux: linux.DefaultSettings(), MAO: mao.DefaultConfig(), Actuate: actuate.DefaultConfig(),
	}
	if written, err = kindsOf(body, all, &doc); err != nil {
		return s, body, nil, err
	}
	if err := yaml.NodeToValue(body, &doc, yaml.Strict()); err != nil {
		return s, body, nil, err
	}
	s, err = doc.scenario()
	return s, body, written, err
}

// kindsOf also returns the paths of what is written in the file.
func kindsOf(body ast.Node, all names, doc *fileDoc) (map[string]bool, error) {
	k := &kinds{names: all, written: map[string]bool{}}
	k.check("", reflect.TypeOf(*doc), body)
	return k.written, k.err
}

func bodyOf(data []byte) (ast.Node, names, error) {
	if err := sane(data); err != nil {
		return nil, names{}, err
	}
	body, err := yamlfile.Body(data)
	if err != nil {
		return nil, names{}, err
	}
	all, err := namesOf(body)
	return body, all, err
}

func (d fileDoc) scenario() (Scenario, error) {
	s := Scenario{
		Schema: d.Schema, Name: d.Name, About: d.About, Machine: d.Machine, Period: d.Period, Step: d.Step, Lasts: d.Lasts, Warmup: d.Warmup,
		Clock: d.Clock, Seeds: d.Seeds, Linux: d.Linux, Against: d.Against, MAO: d.MAO, Actuate: d.Actuate,
	}
	for _, a := range d.Arms {
		one := Arm{Name: a.Name, About: a.About, Policy: a.Policy, NUMABalancing: a.NUMABalancing}
		if one.Name == "" {
			one.Name = a.Policy
		}
		if a.MAO.decode != nil {
			c := d.MAO
			if err := a.MAO.decode(&c); err != nil {
				return Scenario{}, err
			}
			one.MAO = &c
		}
		s.Arms = append(s.Arms, one)
	}
	for _, w := range d.Workloads {
		s.Workloads = append(s.Workloads, sim.Spec(w))
	}
	for _, p := range d.Paper {
		s.Paper = append(s.Paper, p.claim())
	}
	if s.Step == 0 {
		s.Step = min(defaultStep, s.Period)
	}
	if d.Seeds == nil {
		s.Seeds = []uint64{1}
	}
	if s.Against == "" && len(s.Arms) > 0 {
		s.Against = s.Arms[0].Name
	}
	return s, nil
}

// arm finds one by its name.
func (s Scenario) arm(name string) (Arm, bool) {
	for _, a := range s.Arms {
		if a.Name == name {
			return a, true
		}
	}
	return Arm{}, false
}

// Keep leaves only the arm of that name, and these seeds if there are any.
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
