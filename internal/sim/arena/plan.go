// SPDX-License-Identifier: Apache-2.0

package arena

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"homenode/internal/policy/brm"
	"homenode/internal/policy/mao"
	"homenode/internal/policy/numad"
	"homenode/internal/policy/vmmap"
	"homenode/internal/sim"
	"homenode/internal/sim/runner"
	"homenode/internal/sim/threadworld"
)

// World is what a cell runs in: *threadworld.World, *sim.World, or a toy. A world that also
// has the method Threads, as threadworld.World has, reports single threads.
type World interface {
	runner.World
	Truth() []sim.Truth
}

// PeriodOf is how often a policy reads a window and acts, where a plan does not say: BRM's
// is 10 to 100 ms (Rao: 10 ms), numad's and MAO's are seconds. Shorter periods find changes
// sooner and cost CPU time, which is not simulated. 0: it never acts.
func PeriodOf(policy string) time.Duration {
	switch name, _ := Kind(policy); name {
	case runner.BRM:
		return 50 * time.Millisecond
	case runner.None, runner.NUMABalancing, runner.Interleave:
		return 0
	case runner.Hand, runner.SMIPC, runner.SMMPI:
		return time.Second
	}
	return 5 * time.Second // numad -i 5, MAO
}

// Kind splits a plan's policy into arm's name and the suffix that distinguishes it from the
// same policy with other options.
func Kind(policy string) (name, suffix string) {
	name, suffix, _ = strings.Cut(policy, ":")
	return name, suffix
}

// DefaultOptions are the defaults of all policies.
func DefaultOptions(m *Machine, specs []sim.Spec) runner.Options {
	return runner.Options{
		MAO: mao.DefaultConfig(), Numad: numad.DefaultConfig(), BRM: brm.DefaultConfig(), Animal: vmmap.DefaultConfig(),
		System: m.System, Specs: specs,
	}
}

// period is how often a policy acts in a mix. A policy that never acts gets a period, too,
// so that it has windows.
func (p *Plan) period(policy string, x *Mix) (d time.Duration, acts bool) {
	d, ok := p.Periods[policy]
	if !ok {
		d = PeriodOf(policy)
	}
	if d <= 0 {
		return x.Period, false
	}
	return d, true
}

func (p *Plan) world(c sim.Config) (World, error) {
	if p.World != nil {
		return p.World(c)
	}
	return threadworld.NewWorld(c)
}

func (p *Plan) about(policy string) string {
	if about, ok := p.Abouts[policy]; ok {
		return about
	}
	name, _ := Kind(policy)
	for _, k := range runner.Policies() {
		if k.Name == name {
			return k.About
		}
	}
	return ""
}

// check says what is invalid in a plan, before hours are spent on it.
func (p *Plan) check() error {
	var errs []error
	say := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if len(p.Machines) == 0 || len(p.Mixes) == 0 || len(p.Policies) == 0 || len(p.Seeds) == 0 {
		say("it has %d machines, %d mixes, %d policies and %d seeds: want 1 or more of each", len(p.Machines), len(p.Mixes), len(p.Policies), len(p.Seeds))
	}
	if !slices.Contains(p.Policies, p.Against) {
		say("policies are compared with %q, which is none of them", p.Against)
	}
	for i, policy := range p.Policies {
		if name, _ := Kind(policy); !runner.Known(name) {
			say("there is no policy %q", name)
		}
		if slices.Contains(p.Policies[:i], policy) {
			say("policy %q is there twice", policy)
		}
	}
	for i := range p.Mixes {
		if err := p.Mixes[i].check(); err != nil {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("plan %s: %w", p.Name, err)
	}
	return nil
}

func (x *Mix) check() error {
	if x.Specs == nil {
		return fmt.Errorf("mix %s has no workloads", x.Name)
	}
	if x.Period <= 0 || x.Step < 0 || x.Warmup < 0 || x.Lasts < x.Warmup+x.Period {
		return fmt.Errorf("mix %s lasts %v with a warm-up of %v, periods of %v and steps of %v: want a period or more after the warm-up", x.Name, x.Lasts, x.Warmup, x.Period, x.Step)
	}
	return nil
}
