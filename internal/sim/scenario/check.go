// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"homenode/internal/machine"
	"homenode/internal/sim"
	"homenode/internal/sim/catalog"
	"homenode/internal/sim/runner"
	"homenode/internal/unit"
)

// Limits of a scenario: a larger value is a typing error, or would take for ever.
const (
	mostSeeds     = 1000
	mostArms      = 64
	mostRows      = 500_000 // per result: some 100 MB
	mostLasts     = 400 * 24 * time.Hour
	mostPeriods   = 1 << 22 // per run
	mostSteps     = 1 << 26
	mostWorkloads = 10_000 // replicas counted
	day           = 24 * time.Hour
)

// checker collects what is invalid, with its path in the file.
type checker struct{ all []problem }

func (c *checker) addError(path, format string, args ...any) {
	c.all = append(c.all, problem{path, fmt.Sprintf(format, args...)})
}

func (c *checker) lasts(path string, d, low, high time.Duration) {
	if d < low || d > high {
		c.addError(path, "it is %v: want %v to %v", d, low, high)
	}
}

// problems says what is invalid in a scenario, on any machine; written reports whether its
// file has a value at a path.
func (s Scenario) problems(written func(path string) bool) []problem {
	c := &checker{}
	if s.Schema < 1 || s.Schema > Schema {
		c.addError("schema", "it is %d: this homenode reads up to %d", s.Schema, Schema)
	}
	if why := badName(s.Name); why != "" {
		c.addError("name", "%s", why)
	}
	c.machine(s.Machine)
	c.times(s)
	if why := checkSeeds(s.Seeds); why != "" {
		c.addError("seeds", "%s", why)
	}
	if !(s.Linux.Busy >= 0 && s.Linux.Busy <= 1) {
		c.addError("linux.busy", "it is %v: want 0 to 1", s.Linux.Busy)
	}
	c.arms(s, written)
	c.rows(s)
	c.workloads(s)
	for _, part := range []struct {
		path string
		err  error
	}{{"mao", s.MAO.Validate()}, {"actuate", s.Actuate.Validate()}} {
		if part.err != nil {
			c.addError(part.path, "%s", strings.TrimPrefix(part.err.Error(), part.path+": "))
		}
	}
	c.paper(s)
	return c.all
}

func (c *checker) machine(m Machine) {
	given := slices.DeleteFunc([]string{m.Shape, m.Tree, m.Builtin}, func(s string) bool { return s == "" })
	switch {
	case len(given) == 0:
		c.addError("machine", "there is none: give shape, tree or builtin")
	case len(given) > 1:
		c.addError("machine", "shape, tree and builtin each are a machine: give one of them")
	case m.Builtin != "":
		if _, ok := catalog.MachineNamed(m.Builtin); !ok {
			c.addError("machine.builtin", "there is no %q: want one of %s", m.Builtin, quoted(catalog.Machines(), func(b catalog.Builtin) string { return b.Name }))
		}
	}
}

func (c *checker) times(s Scenario) {
	c.lasts("period", s.Period, 10*time.Millisecond, time.Hour)
	c.lasts("step", s.Step, 100*time.Microsecond, max(s.Period, time.Millisecond))
	c.lasts("lasts", s.Lasts, max(s.Period, time.Millisecond), mostLasts)
	c.lasts("clock", s.Clock, 0, day-1)
	if s.Warmup < 0 || s.Warmup > s.Lasts-s.Period {
		c.addError("warmup", "it is %v: it is a part of lasts, %v, and must leave a period", s.Warmup, s.Lasts)
	}
	if s.Period > 0 && s.Lasts/s.Period > mostPeriods {
		c.addError("period", "%v has more than %d of them", s.Lasts, mostPeriods)
	}
	if s.Step > 0 && s.Lasts/s.Step > mostSteps {
		c.addError("step", "%v has more than %d of them", s.Lasts, mostSteps)
	}
}

func checkSeeds(seeds []uint64) string {
	if len(seeds) == 0 || len(seeds) > mostSeeds {
		return fmt.Sprintf("there are %d: want 1 to %d", len(seeds), mostSeeds)
	}
	for i, s := range seeds {
		if slices.Contains(seeds[:i], s) {
			return fmt.Sprintf("%d is there twice: a second run would be the same", s)
		}
	}
	return ""
}

func (c *checker) arms(s Scenario, written func(path string) bool) {
	if len(s.Arms) == 0 {
		c.addError("arms", "there is none: give at least one, such as - policy: none")
	}
	if len(s.Arms) > mostArms {
		c.addError("arms", "there are %d: want at most %d", len(s.Arms), mostArms)
		return
	}
	seen := map[string]bool{}
	for i, a := range s.Arms {
		path := fmt.Sprintf("arms[%d]", i)
		if !runner.Known(a.Policy) {
			c.addError(path+".policy", "there is no %q: want one of %s", a.Policy, quoted(runner.Policies(), func(k runner.Kind) string { return k.Name }))
			continue
		}
		if why := badName(a.Name); why != "" {
			c.addError(path+".name", "%s", why)
		}
		if seen[a.Name] {
			c.addError(path+".name", "%q is there twice: give one of them another name", a.Name)
		}
		seen[a.Name] = true
		if a.MAO != nil {
			if err := a.MAO.Validate(); err != nil {
				c.addError(path+".mao", "%s", strings.TrimPrefix(err.Error(), "mao: "))
			}
		}
		c.contradictions(path, s, a, written)
	}
	if len(s.Arms) > 0 && !seen[s.Against] {
		c.addError("against", "there is no arm %q", s.Against)
	}
}

// contradictions are settings of an arm that its policy overrides or ignores.
func (c *checker) contradictions(path string, s Scenario, a Arm, written func(path string) bool) {
	if a.Policy == runner.NUMABalancing && a.NUMABalancing != nil && !*a.NUMABalancing {
		c.addError(path+".numa_balancing", "it is false, but its policy is %s: name policy none, or leave it out", a.Policy)
	}
	strategy, ok := runner.StrategyOf(a.Policy)
	if !ok {
		if a.MAO != nil {
			c.addError(path+".mao", "its policy is %s, which has no use for it", a.Policy)
		}
		return
	}
	own, where := s.MAO.Strategy, "mao.strategy"
	if p := path + "." + where; written(p) {
		own, where = a.MAO.Strategy, p
	}
	if written(where) && own != strategy {
		c.addError(where, "it is %v, but arm %q has policy %s, whose strategy is %v: leave it out", own, a.Name, a.Policy, strategy)
	}
}

// rows keeps a result small enough to be read again.
func (c *checker) rows(s Scenario) {
	if len(c.all) > 0 {
		return
	}
	if why := tooMany(s); why != "" {
		c.addError("seeds", "%s", why)
	}
}

// tooMany says that a result would be too large; "": it would not.
func tooMany(s Scenario) string {
	rows := min(MaxSamples, int(s.Lasts/s.Period))
	for _, w := range s.Workloads {
		rows += min(mostWorkloads, max(1, w.Replicas)) + 1 // its service
	}
	if all := float64(len(s.Arms)) * float64(len(s.Seeds)) * float64(rows); all > mostRows {
		return fmt.Sprintf("%d arms × %d seeds × %d rows (workloads, services, samples) are %.0f: a result has at most %d", len(s.Arms), len(s.Seeds), rows, all, mostRows)
	}
	return ""
}

// badName says why a name is invalid: it becomes part of a cgroup's and a file's name.
func badName(name string) string {
	if name == "" {
		return "it is empty: give a name"
	}
	if len(name) > 100 || name[0] == '-' || name[0] == '.' || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") != "" {
		return fmt.Sprintf("%.100q is none: want letters, digits, -, _ and .", name)
	}
	return ""
}

// workloads checks what is invalid on any machine; what depends on the machine is checked
// by Load.
func (c *checker) workloads(s Scenario) {
	if len(s.Workloads) == 0 {
		c.addError("workloads", "there is none: give at least one")
	}
	total := 0
	specs := slices.Clone(s.Workloads)
	for i := range specs {
		total += max(1, specs[i].Replicas)
		specs[i].Start = sim.StartSpec{}
	}
	if total > mostWorkloads {
		c.addError("workloads", "there are %d with their replicas: want at most %d", total, mostWorkloads)
		return
	}
	c.all = append(c.all, specProblems(specs, someMachine)...)
}

// someMachine has more memory than any workload needs.
var someMachine = machine.Machine{Nodes: []machine.Node{{Memory: unit.Some[unit.Bytes](1 << 61)}}}

func specProblems(specs []sim.Spec, m machine.Machine) []problem {
	var all []problem
	for _, p := range sim.ValidateAll(specs, m) {
		all = append(all, problem{fmt.Sprintf("workloads[%d].%s", p.Spec, p.Field), p.Text})
	}
	return all
}

func (c *checker) paper(s Scenario) {
	known := func(arm string) bool { _, ok := s.arm(arm); return ok }
	for i, p := range s.Paper {
		path := fmt.Sprintf("paper[%d].", i)
		for _, wrong := range p.problems(known) {
			c.addError(path+wrong.path, "%s", wrong.text)
		}
		if p.Service != "" && !slices.ContainsFunc(s.Workloads, func(w sim.Spec) bool { return serviceOf(w) == p.Service }) {
			c.addError(path+"service", "there is no service %.100q", p.Service)
		}
	}
}

func serviceOf(w sim.Spec) string {
	if w.Service == "" {
		return w.Name
	}
	return w.Service
}
