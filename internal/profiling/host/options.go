// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"homenode/internal/agent"
	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/kernel/unix"
	"homenode/internal/lab/model"
	"homenode/internal/machine"
	"homenode/internal/placement"
	"homenode/internal/policy/mao"
	"homenode/internal/profiling"
	"homenode/internal/render"
	"homenode/internal/set"
	"homenode/internal/source"
	"homenode/internal/unit"
)

// Options are what profile and place are asked for.
type Options struct {
	Workload string
	Command  []string
	VCPUs    int
	// Machine is the type of this machine, as a model names it; "": MachineType.
	Machine     string
	Links       string // file of bandwidths between nodes
	Profile     string // of this machine: bandwidths and the cost of moving
	MetricText  string
	Metric      profiling.Metric
	Warm, For   time.Duration
	Timeout     time.Duration
	Repeats     int
	Seed        uint64
	Rate        unit.Bytes
	DryRun      bool
	NoSpin      bool // the workload's threads block when they wait
	Application string
	Kind        string
	Rows, Saved string // files: of the rows, of the state
	Model       string
	Simulated   bool
	Goal        float64
	GoalOf      int    // number of a placement; 0: the fastest
	State       string // folder of the journal
	// Of an experiment: the nodes to bind to ("": where the agent would), the share by which the
	// workload may be slower, the address of a Prometheus, and the file of its token.
	Nodes           string
	MostLoss        float64
	Prometheus      string
	PrometheusToken string

	DirectOwners []string
	// Of a deployment, from the agent's configuration: MAO chooses the nodes (nil: its defaults), Near are
	// the devices of the service, nothing is bound to Reserved CPUs, and Runtimes are asked for their
	// containers.
	MAO      *mao.Config
	Near     []string
	Reserved set.CPUSet
	Runtimes agent.Runtimes

	Version     string // of the program, and CommandLine what makes the rows again
	CommandLine string

	resumes bool   // a saved state is continued
	keeps   bool   // the saved state of what has ended, until its caller has it on record
	token   string // of the Prometheus
}

// unfinished ends the name of a saved state that has none.
const unfinished = ".unfinished"

// prepare names the file of the state, reads the metric, and refuses one that does not mean work.
func (o *Options) prepare() (err error) {
	if o.Saved == "" && o.Rows != "" {
		o.Saved = o.Rows + unfinished
	}
	o.Metric.Server = o.Prometheus
	if o.Metric, err = withFlags(o.MetricText, o.Metric); err != nil {
		return err
	}
	if o.token, err = readToken(o.PrometheusToken, o.Prometheus); err != nil {
		return err
	}
	if o.Metric.Kind == profiling.IPC && !o.NoSpin {
		return errors.New("--metric ipc counts spinning as work: name another metric, or say that its threads block when they wait: --no-spinning")
	}
	return o.Metric.CheckLookBack(o.Warm, o.For)
}

// check refuses what does not go together in a profile.
func (o *Options) check() error {
	if err := o.prepare(); err != nil {
		return err
	}
	switch {
	case (o.Workload == "") == (len(o.Command) == 0):
		return errors.New("give a command after --, or --workload: one of them")
	case o.VCPUs < 1:
		return errors.New("--vcpus is missing: give the number of threads that run at once")
	case o.Timeout < 0:
		return fmt.Errorf("--timeout %v: it cannot be negative", o.Timeout)
	case o.Workload != "" && o.Model == "" && o.Saved == "" && !o.DryRun:
		return errors.New("--rows is missing: name a file for the rows, or one for what is measured with --saved: it also has where the workload's memory was")
	case o.Links != "" && o.Profile != "":
		return errors.New("--links and --profile both have bandwidths between nodes: give one of them")
	}
	return nil
}

func withFlags(text string, m profiling.Metric) (profiling.Metric, error) {
	parsed, err := profiling.ParseMetric(text)
	if err == nil && parsed.Kind == profiling.URL {
		err = checkURL(parsed.Arg)
	}
	if err == nil && parsed.Kind == profiling.PromQL {
		err = checkServer(m.Server)
	}
	parsed.Pattern, parsed.Counter, parsed.LowerIsBetter, parsed.Server = m.Pattern, m.Counter, m.LowerIsBetter, m.Server
	return parsed, err
}

// place is the machine with its important placements, and the job.
func (o *Options) place() (m machine.Machine, l placement.List, j profiling.Job, err error) {
	if m, _, err = source.Live(); err != nil {
		return m, l, j, err
	}
	if o.Machine == "" {
		o.Machine = profiling.MachineType(source.LiveCPUModel(), len(m.Nodes), m.OnlineCPUs().Len())
	}
	po := placement.Options{VCPUs: o.VCPUs}
	if po.Links, err = source.Bandwidths(o.Links, o.Profile, m, source.LiveCPUModel()); err == nil {
		l, err = placement.Important(m, po)
	}
	if err == nil && len(l.Placements) < 2 {
		err = fmt.Errorf("%d vCPUs have 1 important placement on this machine: nothing differs", o.VCPUs)
	}
	if err != nil {
		return m, l, j, exit.BadInput(err)
	}
	j = profiling.Job{
		Machine: o.Machine, Source: sourceHere(), Workload: o.Workload, Command: o.Command, VCPUs: o.VCPUs, Links: l.Links, Metric: o.Metric,
		Warm: o.Warm, For: o.For, Repeats: o.Repeats, Seed: o.Seed, Placements: profiling.CandidatesOf(l),
	}
	return m, l, j, exit.BadInput(j.Check())
}

// sourceHere tells the lab from hardware.
func sourceHere() string {
	if _, err := model.Open("/sys"); err == nil || errors.Is(err, fs.ErrPermission) {
		return profiling.Lab
	}
	return profiling.Measured
}

// readState reads the saved state, if there is one.
func (o *Options) readState() (s profiling.State, there bool, err error) {
	if o.Saved == "" {
		return s, false, nil
	}
	data, err := unix.ReadAtMost(o.Saved, profiling.MaxState)
	if errors.Is(err, fs.ErrNotExist) {
		return s, false, cli.CanReplace("--saved", o.Saved)
	}
	if err != nil {
		return s, false, fmt.Errorf("read --saved: %w", err)
	}
	if s, err = profiling.DecodeState(data); err != nil {
		return s, false, fmt.Errorf("%s: %w: name another file with --saved", o.Saved, err)
	}
	return s, true, nil
}

// openState reads a saved state of this job, or starts one.
func (o *Options) openState(j profiling.Job) (s profiling.State, err error) {
	s = profiling.State{Schema: profiling.StateSchema, Job: j, Samples: []profiling.Sample{}}
	old, there, err := o.readState()
	if err != nil || !there {
		return s, err
	}
	if !old.Job.Same(j) {
		return s, fmt.Errorf("%s has another profile, of %s: name another file with --saved, or remove it", o.Saved, subjectOf(old.Job))
	}
	o.resumes = true
	return old, nil
}

func subjectOf(j profiling.Job) string {
	if j.Workload != "" && j.VCPUs == 0 {
		return "workload " + j.Workload
	}
	if j.Workload != "" {
		return fmt.Sprintf("workload %s with %s", j.Workload, render.Count(j.VCPUs, "vCPU"))
	}
	return fmt.Sprintf("%q with %s", j.Command, render.Count(j.VCPUs, "vCPU"))
}

// application names what is measured, for the rows.
func (o *Options) application() string {
	switch {
	case o.Application != "":
		return o.Application
	case o.Workload != "":
		return filepath.Base(o.Workload)
	}
	return filepath.Base(o.Command[0])
}

// forget removes the state of a finished profile.
func (o *Options) forget() error {
	if o.keeps {
		return nil
	}
	if err := os.Remove(o.Saved); o.Saved != "" && err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
