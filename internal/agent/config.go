// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"homenode/internal/actuate"
	"homenode/internal/kernel"
	"homenode/internal/kernel/unix"
	"homenode/internal/policy/mao"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
	"homenode/internal/yamlfile"
)

// DefaultStateDir holds journal and status. It is on a tmpfs because cgroup
// settings do not outlive a reboot either.
const DefaultStateDir = "/run/homenode"

// Config is the agent's configuration file.
type Config struct {
	Period time.Duration
	// CalmPeriod is the period after several windows without a step.
	CalmPeriod time.Duration
	StateDir   string
	Cgroups    []string // globs of the watched cgroups; none: every cgroup with processes
	Services   []Service
	// DirectOwners are owners whose cgroups are written directly in spite of
	// the owner.
	DirectOwners []string
	Runtimes     Runtimes
	UserOnly     bool // count events in user mode only
	// Events says how events are counted; Ticks: BPF counts in one of this many ticks
	// (kernel.Config).
	Events string
	Ticks  int
	Hints  kernel.HintMode // when the hint faults of threads are read
	// Profile is a file of 'homenode bench' from this machine. If it is "", costs are
	// estimates. Its content goes into Actuate.
	Profile string
	MAO     mao.Config
	Actuate actuate.Config
	Running
	// Text is the file as read, for recordings; "" without a file.
	Text string
}

// Service is a rule: all workloads that match it are replicas of the service.
type Service struct {
	Name     string
	Match    string // glob over the cgroup path
	Approved bool   // the offline analysis found that binding pays
	Target   unit.Opt[unit.Ratio]
	// Near are devices or nodes that the service should be close to: "eth0",
	// "nvme0n1", "0000:3b:00.0", "node 1". See Agent.near.
	Near []string
	// LatencyFile is the file in which the service reports its latency, in seconds;
	// "" if it reports none. {workload} in it stands for the last part of the
	// workload's path.
	LatencyFile string
}

// fileConfig is the form of the configuration in the file.
type fileConfig struct {
	Period       time.Duration `yaml:"period"`
	CalmPeriod   time.Duration `yaml:"calm_period"`
	StateDir     string        `yaml:"state_dir"`
	Cgroups      []string      `yaml:"cgroups"`
	ReservedCPUs string        `yaml:"reserved_cpus"`
	DirectOwners []string      `yaml:"direct_owners"`
	UserOnly     bool          `yaml:"count_user_only"`
	Docker       string        `yaml:"docker_socket"`
	DockerMemory string        `yaml:"docker_memory"`
	Containerd   string        `yaml:"containerd_socket"`
	Events       string        `yaml:"events"`
	Ticks        int           `yaml:"count_ticks"`
	Hints        string        `yaml:"hint_faults"`
	Profile      string        `yaml:"profile"`
	Services     []struct {
		Name     string   `yaml:"name"`
		Match    string   `yaml:"match"`
		Approved bool     `yaml:"approved"`
		Target   *float64 `yaml:"target_local_ratio"`
		Near     []string `yaml:"near"`
		Latency  string   `yaml:"latency_file"`
	} `yaml:"services"`
	MAO         mao.Config     `yaml:"mao"`
	Actuate     actuate.Config `yaml:"actuate"`
	FileRunning `yaml:",inline"`
}

// MaxConfig bounds a configuration file, bytes. It has room for some 5,000
// services.
const MaxConfig = 1 << 20

// ParseConfig refuses unknown and duplicate keys, with line and excerpt.
func ParseConfig(data []byte, file string) (Config, error) {
	return ParseLayers(Layer{file, data})
}

// Layer is one file of a configuration, or the settings of a command line.
type Layer struct {
	Name string // for error messages
	Text []byte
}

// ReadLayer reads a configuration file.
func ReadLayer(file string) (Layer, error) {
	data, err := unix.ReadAtMost(file, MaxConfig)
	if err != nil {
		return Layer{}, fmt.Errorf("read configuration: %w", err)
	}
	return Layer{file, data}, nil
}

// ParseLayers is ParseConfig for several layers. Each layer overrides only the settings
// that it names.
func ParseLayers(layers ...Layer) (Config, error) {
	f := fileConfig{Period: 10 * time.Second, StateDir: DefaultStateDir, DockerMemory: DefaultDockerMemory, Events: kernel.EventsAuto, Ticks: kernel.DefaultTicks, MAO: mao.DefaultConfig(), Actuate: actuate.DefaultConfig(), FileRunning: defaultRunning()}
	name := "defaults"
	for i, l := range layers {
		if i == 0 || l.Name != "--state" { // the name of --state alone would not help: its value is hardly wrong
			name = l.Name
		}
		doc, err := yamlfile.Parse(l.Text, name, yamlfile.Rules{Malformed: kernel.ErrMalformed, What: "a configuration", Most: MaxConfig, MayBeEmpty: true})
		if err != nil {
			return Config{}, err
		}
		if err := doc.Decode(&f); err != nil {
			return Config{}, err
		}
	}
	c, err := f.config()
	if err != nil {
		return Config{}, fmt.Errorf("parse %s: %w", name, err)
	}
	if len(layers) == 1 {
		c.Text = string(layers[0].Text)
	}
	return c, nil
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
		UserOnly: f.UserOnly, Events: f.Events, Ticks: f.Ticks, Profile: f.Profile, MAO: f.MAO, Actuate: f.Actuate,
	}
	c.Runtimes = Runtimes{DockerSocket: f.Docker, DockerMemory: f.DockerMemory, ContainerdSocket: f.Containerd}
	var errs []error
	for key, file := range map[string]string{"docker_socket": f.Docker, "docker_memory": f.DockerMemory, "containerd_socket": f.Containerd} {
		if file != "" && !path.IsAbs(file) {
			errs = append(errs, fmt.Errorf("%s is %q: want an absolute path", key, file))
		}
	}
	if c.Period < 10*time.Millisecond || c.Period > time.Hour {
		errs = append(errs, fmt.Errorf("period is %v: want 10ms to 1h", c.Period))
	}
	if !slices.Contains([]string{kernel.EventsAuto, kernel.EventsPerf, kernel.EventsBPF, kernel.EventsOff}, c.Events) {
		errs = append(errs, fmt.Errorf("events is %q: want auto, perf, bpf or off", c.Events))
	}
	if c.Hints, err = kernel.ParseHintMode(f.Hints); err != nil {
		errs = append(errs, fmt.Errorf("hint_faults is %q: want auto, always or off", f.Hints))
	}
	if c.Ticks < 1 || c.Ticks > 1000 {
		errs = append(errs, fmt.Errorf("count_ticks is %d: want 1 (always) to 1000", c.Ticks))
	}
	if c.CalmPeriod < c.Period {
		errs = append(errs, fmt.Errorf("calm_period is %v: it must not be shorter than period, %v", c.CalmPeriod, c.Period))
	}
	for i, s := range f.Services {
		rule := Service{Name: s.Name, Match: s.Match, Approved: s.Approved, Near: s.Near, LatencyFile: s.Latency}
		if s.Target != nil {
			rule.Target = unit.Some(unit.Ratio(*s.Target))
		}
		errs = append(errs, rule.check(i))
		c.Services = append(c.Services, rule)
	}
	for _, g := range c.Cgroups {
		if _, err := path.Match(g, "/"); err != nil || !strings.HasPrefix(g, "/") {
			errs = append(errs, fmt.Errorf("cgroups: %q is not a pattern of a cgroup path: want e.g. /demo/*", g))
		}
	}
	var wrong error
	if c.Running, wrong = f.FileRunning.check(c); wrong != nil {
		errs = append(errs, wrong)
	}
	return c, errors.Join(append(errs, c.MAO.Validate(), c.Actuate.Validate())...)
}

func (s Service) check(i int) error {
	if s.Name == "" || s.Match == "" {
		return fmt.Errorf("services[%d]: want name and match", i)
	}
	if _, err := path.Match(s.Match, "/"); err != nil {
		return fmt.Errorf("services[%d] %s: match %q is not a pattern: %w", i, s.Name, s.Match, err)
	}
	if t, ok := s.Target.Get(); ok && !t.Valid() {
		return fmt.Errorf("services[%d] %s: target_local_ratio is %v: want 0 to 1", i, s.Name, float64(t))
	}
	return errors.Join(s.checkNear(i), s.checkLatency(i))
}

func (s Service) matches(id string) bool {
	ok, _ := path.Match(s.Match, id)
	return ok
}

// Name gives each workload the service of the first rule that matches.
func (c Config) Name(w *window.Window) {
	for i := range w.Workloads {
		wl := &w.Workloads[i]
		if s, ok := c.rule(wl.ID); ok {
			wl.Service, wl.Approved, wl.Target = s.Name, s.Approved, s.Target
		}
	}
}

func (c Config) rule(id string) (Service, bool) {
	for _, s := range c.Services {
		if s.matches(id) {
			return s, true
		}
	}
	return Service{}, false
}

// serviceOf returns a workload's service, and whether binding it pays. It uses the
// configuration that the loop uses now; a reload changes it.
func (a *Agent) serviceOf(id string) (string, bool) {
	s, _ := a.o.Config.rule(id)
	return s.Name, s.Approved
}

// Rename is Name for windows that another configuration has named.
func (c Config) Rename(w *window.Window) {
	for i := range w.Workloads {
		wl := &w.Workloads[i]
		wl.Service, wl.Approved, wl.Target = "", false, unit.None[unit.Ratio]()
	}
	c.Name(w)
}
