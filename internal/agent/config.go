// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"homenode/internal/actuate"
	"homenode/internal/policy/mao"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// DefaultStateDir holds journal and status. It is on a tmpfs, as cgroup settings
// do not outlive a reboot either.
const DefaultStateDir = "/run/homenode"

// Config is the agent's configuration file.
type Config struct {
	Period time.Duration
	// CalmPeriod is the period once nothing was to be done for some windows.
	CalmPeriod time.Duration
	StateDir   string
	Cgroups    []string // globs of what is watched; none: every cgroup with processes
	Services   []Service
	// DirectOwners are owners whose cgroups are written directly all the same.
	DirectOwners []string
	UserOnly     bool // count events in user mode only
	// Profile is a file of 'homenode bench', of this machine; "": costs are estimates.
	// Who opens it puts what it holds into Actuate.
	Profile string
	MAO     mao.Config
	Actuate actuate.Config
}

// Service is a rule: workloads that match are replicas of it.
type Service struct {
	Name     string
	Match    string // glob over the cgroup path
	Approved bool   // binding it pays, says the offline side
	Target   unit.Opt[unit.Ratio]
}

// fileConfig is the file's form.
type fileConfig struct {
	Period       time.Duration `yaml:"period"`
	CalmPeriod   time.Duration `yaml:"calm_period"`
	StateDir     string        `yaml:"state_dir"`
	Cgroups      []string      `yaml:"cgroups"`
	ReservedCPUs string        `yaml:"reserved_cpus"`
	DirectOwners []string      `yaml:"direct_owners"`
	UserOnly     bool          `yaml:"count_user_only"`
	Profile      string        `yaml:"profile"`
	Services     []struct {
		Name     string   `yaml:"name"`
		Match    string   `yaml:"match"`
		Approved bool     `yaml:"approved"`
		Target   *float64 `yaml:"target_local_ratio"`
	} `yaml:"services"`
	MAO     mao.Config     `yaml:"mao"`
	Actuate actuate.Config `yaml:"actuate"`
}

// ReadConfig reads a configuration file.
func ReadConfig(file string) (Config, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return Config{}, fmt.Errorf("read configuration: %w", err)
	}
	return ParseConfig(data, file)
}

// ParseConfig refuses unknown and duplicate keys, with line and excerpt.
func ParseConfig(data []byte, file string) (Config, error) {
	f := fileConfig{Period: 10 * time.Second, StateDir: DefaultStateDir, MAO: mao.DefaultConfig(), Actuate: actuate.DefaultConfig()}
	if err := unmarshal(data, &f); err != nil {
		return Config{}, fmt.Errorf("parse %s: %s", file, strings.TrimSpace(yaml.FormatError(err, false, true)))
	}
	c, err := f.config()
	if err != nil {
		return Config{}, fmt.Errorf("parse %s: %w", file, err)
	}
	return c, nil
}

// unmarshal turns a panic of the YAML library (1.19.2 has one on a tag without a
// value) into an error.
func unmarshal(data []byte, f *fileConfig) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("not YAML: %v", r)
		}
	}()
	if strings.TrimSpace(string(data)) == "" {
		return nil
	}
	return yaml.UnmarshalWithOptions(data, f, yaml.Strict())
}

func (f fileConfig) config() (Config, error) {
	reserved, err := set.ParseCPUs(f.ReservedCPUs)
	if err != nil {
		return Config{}, fmt.Errorf("reserved_cpus: %w", err)
	}
	f.MAO.ReservedCPUs, f.Actuate.ReservedCPUs = reserved, reserved
	if f.CalmPeriod == 0 {
		f.CalmPeriod = 10 * f.Period
	}
	c := Config{
		Period: f.Period, CalmPeriod: f.CalmPeriod, StateDir: f.StateDir, Cgroups: f.Cgroups, DirectOwners: f.DirectOwners,
		UserOnly: f.UserOnly, Profile: f.Profile, MAO: f.MAO, Actuate: f.Actuate,
	}
	var errs []error
	if c.Period < 10*time.Millisecond || c.Period > time.Hour {
		errs = append(errs, fmt.Errorf("period is %v: want 10ms to 1h", c.Period))
	}
	if c.CalmPeriod < c.Period {
		errs = append(errs, fmt.Errorf("calm_period is %v: it must not be shorter than period, %v", c.CalmPeriod, c.Period))
	}
	for i, s := range f.Services {
		rule := Service{Name: s.Name, Match: s.Match, Approved: s.Approved}
		if s.Target != nil {
			rule.Target = unit.Some(unit.Ratio(*s.Target))
		}
		errs = append(errs, rule.check(i))
		c.Services = append(c.Services, rule)
	}
	for _, g := range c.Cgroups {
		if _, err := path.Match(g, "/"); err != nil || !strings.HasPrefix(g, "/") {
			errs = append(errs, fmt.Errorf("cgroups: %q is no pattern of a cgroup path: want e.g. /demo/*", g))
		}
	}
	return c, errors.Join(append(errs, c.MAO.Validate(), c.Actuate.Validate())...)
}

func (s Service) check(i int) error {
	if s.Name == "" || s.Match == "" {
		return fmt.Errorf("services[%d]: want name and match", i)
	}
	if _, err := path.Match(s.Match, "/"); err != nil {
		return fmt.Errorf("services[%d] %s: match %q is no pattern: %w", i, s.Name, s.Match, err)
	}
	if t, ok := s.Target.Get(); ok && !t.Valid() {
		return fmt.Errorf("services[%d] %s: target_local_ratio is %v: want 0 to 1", i, s.Name, float64(t))
	}
	return nil
}

// Name tells each workload its service: the first rule that matches wins.
func (c Config) Name(w *window.Window) {
	for i := range w.Workloads {
		wl := &w.Workloads[i]
		for _, s := range c.Services {
			if ok, _ := path.Match(s.Match, wl.ID); ok {
				wl.Service, wl.Approved, wl.Target = s.Name, s.Approved, s.Target
				break
			}
		}
	}
}
