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
	Mode   Mode
	Period time.Duration
	// CalmPeriod is the period after several windows without a step.
	CalmPeriod time.Duration
	StateDir   string
	// StateDirAsked says that the configuration names the folder. If it does not, users
	// other than root have one of their own.
	StateDirAsked bool
	Cgroups       []string // globs of the watched cgroups; none: every cgroup with processes
	Services      []Service
	// Excluded are globs of cgroups that are never bound, whatever else says.
	Excluded []string
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
	// Unread says which deployments of this host cannot be read.
	Unread []string
}

// Service is a rule: all workloads that match it are replicas of the service.
type Service struct {
	Name     string
	Match    string // glob over the cgroup path
	Approved bool   // the offline analysis found that binding pays, or trials on this host did
	Deployed bool   // 'homenode deploy' approved it, and the file did not
	Target   unit.Opt[unit.Ratio]
	// Near are devices or nodes that the service should be close to: "eth0",
	// "nvme0n1", "0000:3b:00.0", "node 1". See Agent.near.
	Near []string
	// LatencyFile is the file in which the service reports its latency, in seconds;
	// "" if it reports none. {workload} in it stands for the last part of the
	// workload's path.
	LatencyFile string
}

// Mode is what an agent may do.
type Mode string

// The modes.
const (
	ModeAct     Mode = "act"     // bind what is approved
	ModeObserve Mode = "observe" // watch and report; decide and change nothing
)

// fileConfig is the form of the configuration in the file. The comments of the keys are
// those of docs/reference/config.md and deploy/etc/agent.yaml, which are written from here.
type fileConfig struct {
	// What the agent may do: act (bind approved services), or observe (watch and report for
	// as long as you like; decide and change nothing; works without root).
	Mode Mode `yaml:"mode"`
	// Length of a window: how often the agent looks, 10ms to 1h. Shorter reacts sooner and costs more CPU time.
	Period time.Duration `yaml:"period"`
	// Period after several windows without a step. 0s: ten times period.
	CalmPeriod time.Duration `yaml:"calm_period"`
	// Folder of journal and status. Without root and unless it is set: ~/.local/state/homenode.
	StateDir string `yaml:"state_dir"`
	// Patterns of the cgroups that are watched, from the root of the hierarchy. A * does not match a slash.
	// None: every cgroup that has processes of its own.
	Cgroups []string `yaml:"cgroups"`
	// CPUs that no workload is bound to.
	ReservedCPUs string `yaml:"reserved_cpus"`
	// Managers whose cgroups are written directly in spite of them, such as kubelet or libvirt.
	DirectOwners []string `yaml:"direct_owners"`
	// Count events in user mode only, not in the kernel.
	UserOnly bool `yaml:"count_user_only"`
	// Docker's socket. Empty: /var/run/docker.sock.
	Docker string `yaml:"docker_socket"`
	// File with the original settings of Docker's containers, in case the machine crashes.
	DockerMemory string `yaml:"docker_memory"`
	// containerd's socket. Empty: /run/containerd/containerd.sock.
	Containerd string `yaml:"containerd_socket"`
	// How events are counted: auto (by BPF where that works, else by perf), perf, bpf or off.
	Events string `yaml:"events"`
	// BPF counts in one of this many ticks, 1 (always) to 1000.
	Ticks int `yaml:"count_ticks"`
	// When the NUMA hint faults of threads are read: auto (where nothing is counted), always or off.
	Hints string `yaml:"hint_faults"`
	// Profile of this machine, a file of 'homenode bench'. Without it, costs are estimates.
	Profile string `yaml:"profile"`
	// The rules by which cgroups are services. The first that matches counts.
	Services []fileService `yaml:"services"`
	// Patterns of the paths of cgroups that are never bound, whatever a service's rule or the hub's orders say.
	Excluded []string `yaml:"excluded"`
	// When workloads are bound and unbound.
	MAO mao.Config `yaml:"mao"`
	// What binding may cost, and how memory follows.
	Actuate     actuate.Config `yaml:"actuate"`
	FileRunning `yaml:",inline"`
}

// fileService is a rule of the file.
type fileService struct {
	// Name of the service, in all outputs. Required.
	Name string `yaml:"name"`
	// Pattern of the paths of its cgroups; all that match are its replicas. Required.
	Match string `yaml:"match"`
	// Whether the agent may bind it. Without it, it is watched only.
	Approved bool `yaml:"approved"`
	// Local access ratio to reach. Without it: mao.target.
	Target *float64 `yaml:"target_local_ratio"`
	// Devices or nodes that it should be close to: eth0, nvme0n1, 0000:3b:00.0, node 1.
	Near []string `yaml:"near"`
	// File in which it reports its latency, in seconds. {workload} stands for the last part of its path.
	Latency string `yaml:"latency_file"`
}

// MaxConfig bounds a configuration file, bytes. It has room for some 5,000
// services.
const MaxConfig = 1 << 20

func configRules() yamlfile.Rules {
	return yamlfile.Rules{Malformed: kernel.ErrMalformed, What: "a configuration", Most: MaxConfig, MayBeEmpty: true}
}

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

// ReadLayers are the file, if one is named, and --state. That is a layer of its own, because the
// state folder decides where other files are by default.
func ReadLayers(file, state string) (layers []Layer, err error) {
	if file != "" {
		layer, err := ReadLayer(file)
		if err != nil {
			return nil, err
		}
		layers = append(layers, layer)
	}
	if state != "" {
		layers = append(layers, Layer{Name: "--state", Text: fmt.Appendf(nil, "state_dir: %q", state)})
	}
	return layers, nil
}

// ReadConfig is the configuration of ReadLayers, with what was deployed on this host.
func ReadConfig(file, state string) (Config, error) {
	layers, err := ReadLayers(file, state)
	if err != nil {
		return Config{}, err
	}
	c, err := ParseLayers(layers...)
	if err != nil {
		return c, err
	}
	if file != "" {
		c.Text = string(layers[0].Text)
	}
	return c.withDeployed(), nil
}

// ParseLayers is ParseConfig for several layers. Each layer overrides only the settings
// that it names. The error joins all mistakes (yamlfile.Problems).
func ParseLayers(layers ...Layer) (Config, error) {
	f := defaultFile()
	name := "defaults"
	var docs []*yamlfile.Document
	var errs []error
	for i, l := range layers {
		if i == 0 || l.Name != "--state" { // the name of --state alone would not help: its value is hardly wrong
			name = l.Name
		}
		doc, err := yamlfile.Parse(l.Text, name, configRules())
		errs = append(errs, err)
		if doc != nil {
			errs = append(errs, doc.Decode(&f))
			docs = append(docs, doc)
		}
	}
	c, wrongs := f.config()
	for _, w := range wrongs {
		errs = append(errs, w.in(docs, name))
	}
	if err := errors.Join(errs...); err != nil {
		return Config{}, withoutFollowers(err)
	}
	c.StateDirAsked = slices.ContainsFunc(docs, func(d *yamlfile.Document) bool { return d.Wrote("state_dir") })
	if len(layers) == 1 {
		c.Text = string(layers[0].Text)
	}
	return c, nil
}

func defaultFile() fileConfig {
	return fileConfig{Mode: ModeAct, Period: 10 * time.Second, StateDir: DefaultStateDir, DockerMemory: DefaultDockerMemory, Events: kernel.EventsAuto,
		Ticks: kernel.DefaultTicks, Hints: "auto", MAO: mao.DefaultConfig(), Actuate: actuate.DefaultConfig(), FileRunning: defaultRunning()}
}

func (f fileConfig) config() (Config, wrongs) {
	var w wrongs
	reserved, err := set.ParseCPUs(f.ReservedCPUs)
	if err != nil {
		w.at("reserved_cpus", "%v", err)
	}
	f.MAO.ReservedCPUs, f.Actuate.ReservedCPUs = reserved, reserved
	if f.CalmPeriod == 0 {
		f.CalmPeriod = 10 * f.Period
	}
	c := Config{
		Mode: f.Mode, Period: f.Period, CalmPeriod: f.CalmPeriod, StateDir: f.StateDir, Cgroups: f.Cgroups, Excluded: f.Excluded, DirectOwners: f.DirectOwners,
		UserOnly: f.UserOnly, Events: f.Events, Ticks: f.Ticks, Profile: f.Profile, MAO: f.MAO, Actuate: f.Actuate,
	}
	c.Runtimes = Runtimes{DockerSocket: f.Docker, DockerMemory: f.DockerMemory, ContainerdSocket: f.Containerd}
	if c.Hints, err = kernel.ParseHintMode(f.Hints); err != nil {
		w.oneOf("hint_faults", f.Hints, "auto", "always", "off")
	}
	f.checkOwn(c, &w)
	for i, s := range f.Services {
		rule := Service{Name: s.Name, Match: s.Match, Approved: s.Approved, Near: s.Near, LatencyFile: s.Latency}
		if s.Target != nil {
			rule.Target = unit.Some(unit.Ratio(*s.Target))
		}
		rule.check(fmt.Sprintf("services[%d]", i), &w)
		c.Services = append(c.Services, rule)
	}
	c.Running = f.FileRunning.check(c, &w)
	w.of(c.MAO.Validate())
	w.of(c.Actuate.Validate())
	return c, w
}

func (f fileConfig) checkOwn(c Config, w *wrongs) {
	w.oneOf("mode", string(f.Mode), string(ModeAct), string(ModeObserve))
	w.oneOf("events", f.Events, kernel.EventsAuto, kernel.EventsPerf, kernel.EventsBPF, kernel.EventsOff)
	for _, file := range []struct{ key, path string }{{"docker_socket", f.Docker}, {"docker_memory", f.DockerMemory}, {"containerd_socket", f.Containerd}} {
		if file.path != "" && !path.IsAbs(file.path) {
			w.at(file.key, "it is %q: want an absolute path", file.path)
		}
	}
	if c.Period < 10*time.Millisecond || c.Period > time.Hour {
		w.at("period", "it is %v: want 10ms to 1h", c.Period)
	}
	if c.CalmPeriod < c.Period {
		w.at("calm_period", "it is %v: it must not be shorter than period, %v", c.CalmPeriod, c.Period)
	}
	if c.Ticks < 1 || c.Ticks > 1000 {
		w.at("count_ticks", "it is %d: want 1 (always) to 1000", c.Ticks)
	}
	checkPatterns("cgroups", c.Cgroups, w)
	checkPatterns("excluded", c.Excluded, w)
}

func checkPatterns(key string, all []string, w *wrongs) {
	for i, g := range all {
		if _, err := path.Match(g, "/"); err != nil || !strings.HasPrefix(g, "/") {
			w.at(fmt.Sprintf("%s[%d]", key, i), "%q is not a pattern of a cgroup path: want e.g. /demo/*%s", g, leading(g))
		}
	}
}

// leading suggests the slash that a pattern lacks.
func leading(pattern string) string {
	if pattern == "" || strings.HasPrefix(pattern, "/") {
		return ""
	}
	return fmt.Sprintf(": did you mean %q?", "/"+pattern)
}

func (s Service) check(key string, w *wrongs) {
	if s.Name == "" {
		w.at(key, "it has no name: add name: NAME")
	}
	if s.Match == "" {
		w.at(key, "it has no match: add match: PATTERN, such as /services/web-*")
	}
	if _, err := path.Match(s.Match, "/"); err != nil {
		w.at(key+".match", "%q is not a pattern: %v", s.Match, err)
	}
	if t, ok := s.Target.Get(); ok && !t.Valid() {
		w.at(key+".target_local_ratio", "it is %v: want 0 to 1", float64(t))
	}
	s.checkNear(key, w)
	s.checkLatency(key, w)
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
	if i := c.ruleIndex(id); i >= 0 {
		return c.Services[i], true
	}
	return Service{}, false
}

// serviceOf returns a workload's service, and whether binding it pays. It uses the
// configuration that the loop uses now; a reload changes it.
func (a *Agent) serviceOf(id string) (string, bool) {
	s, _ := a.o.Config.rule(id)
	approved, _ := a.ordered(id, s.Name, s.Approved, s.Target)
	return s.Name, approved
}

// Rename is Name for windows that another configuration has named.
func (c Config) Rename(w *window.Window) {
	for i := range w.Workloads {
		wl := &w.Workloads[i]
		wl.Service, wl.Approved, wl.Target = "", false, unit.None[unit.Ratio]()
	}
	c.Name(w)
}
