// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"homenode/internal/kernel/membench"
	"homenode/internal/machine"
	"homenode/internal/profile"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// Errors that callers distinguish; always wrapped.
var (
	// ErrOtherProfile means that a measurement cannot continue a prior profile.
	ErrOtherProfile = errors.New("it cannot be continued")
	// ErrNothing means that there is not a single figure.
	ErrNothing = errors.New("nothing could be measured")

	errSave = errors.New("save profile")
)

// Prober does small measured pieces of work: it is kernel/membench's, or a test's.
type Prober interface {
	Run(context.Context, membench.Job) (membench.Result, error)
	Move(context.Context, membench.Move) (membench.Moved, error)
	// Free is the memory of a node that can be used without evicting anything.
	Free(node int) (unit.Bytes, error)
	Conditions() (membench.Conditions, error)
	Clock() membench.Clock
}

// Options say what to measure, and which part of the machine to use.
type Options struct {
	Machine machine.Machine
	Parts   []profile.Part // nil: all. They are measured in the order of profile.Parts
	Nodes   set.NodeSet    // of the profile; empty: all
	CPUs    set.CPUSet     // that may be used; empty: all online
	Memory  set.NodeSet    // nodes whose memory may be used; empty: all
	Budget  time.Duration  // by Now's clock; 0: none
	Repeats int            // of every piece; at least 1
	Seed    uint64         // of the order of repeats
	Now     func() time.Time
	// Save is called with everything so far, about once a second and after every block
	// of pieces. It must not change its argument. Its error ends the measurement.
	Save     func(profile.Profile) error
	Progress func(Progress)
	Version  string
	Command  string
}

// Progress is how far a measurement is.
type Progress struct {
	Part      profile.Part
	Done      int // runs of the part's pieces
	Total     int
	Elapsed   time.Duration
	Remaining time.Duration // an estimate, for all parts that are left
}

// bench is one running measurement.
type bench struct {
	prober  Prober
	o       Options
	m       machine.Machine
	profile profile.Profile
	parts   []profile.Part // left, the current one first
	repeats int            // of the current part
	start   time.Time
	before  float64 // seconds that the prior profile took
	cost    costs
	made    made
	until   time.Duration // when the current part has to end, by elapsed; with a budget
	watch   watch
	huge    bool // transparent huge pages can be asked for
	guest   bool // in a virtual machine: cache sizes are not reliable
	how     unit.Source
	some    bool               // something was measured
	saved   time.Time          // the time of the last save
	unsaved bool               // something was measured since the save
	free    map[int]unit.Bytes // of nodes, since the current part began
}

// Measure measures the machine part by part, continuing prior, which may be the zero
// Profile. It returns what it has also with an error: of ctx, of Save, or when prior
// cannot be continued.
func Measure(ctx context.Context, p Prober, o Options, prior profile.Profile) (profile.Profile, error) {
	b := &bench{prober: p, o: o, m: o.Machine, start: o.Now()}
	first, err := p.Conditions() // what could be read of them, and the error for the rest
	if err := b.begin(prior, first, err); err != nil {
		return prior, err
	}
	for len(b.parts) > 0 {
		if err := b.part(ctx, b.parts[0]); err != nil {
			return b.finished(), err
		}
		b.parts = b.parts[1:]
	}
	done := b.finished()
	if !b.some && len(done.Done) == 0 {
		return done, b.nothing()
	}
	return done, b.save()
}

// begin takes over the figures of prior, if it is of this machine, program and clock.
func (b *bench) begin(prior profile.Profile, c membench.Conditions, unread error) error {
	clock := b.prober.Clock()
	b.huge, b.guest, b.how = c.HugeAllowed.Or(false), c.Hypervisor != "" || clock.How() == unit.HowModelled, clock.How()
	b.cost, b.made = newCosts(), made{}
	b.o.Repeats = max(1, b.o.Repeats)
	print := profile.FingerprintOf(b.m, c.CPUModel)
	cpus, nodes := b.allowed(), b.asked(b.m.NodeIDs()).Minus(b.m.NodesWithMemory().Minus(b.memory()))
	if prior.Schema != 0 {
		err := sameRun(prior, print, b.o.Version, b.how)
		if err == nil {
			err = sameUse(prior, cpus, nodes)
		}
		if err != nil {
			return err
		}
	}
	b.profile = prior
	b.before = prior.Seconds
	b.profile.Schema, b.profile.Machine, b.profile.Origin = profile.Schema, print, b.m.Origin
	b.profile.Version, b.profile.Command, b.profile.Date = b.o.Version, b.o.Command, b.start
	b.profile.How, b.profile.Clock = b.how, clock.Name()
	b.profile.UsedCPUs, b.profile.UsedNodes = cpus, nodes
	b.parts = b.wanted()
	b.watch = watch{first: c, unread: unread, prior: priorCaveats(prior)}
	return nil
}

func sameRun(prior profile.Profile, now profile.Fingerprint, version string, how unit.Source) error {
	switch why := prior.Machine.Differs(now); {
	case why != "":
		return fmt.Errorf("the profile is of another machine: %s: %w", why, ErrOtherProfile)
	case prior.Version != version:
		return fmt.Errorf("the profile is of homenode %s, this is %s: %w", prior.Version, version, ErrOtherProfile)
	case prior.How != how:
		return fmt.Errorf("the profile's times are %v, now they would be %v: %w", prior.How, how, ErrOtherProfile)
	}
	return nil
}

// sameUse requires the same restriction: a bandwidth of two CPUs and one of all do not
// belong in one matrix.
func sameUse(prior profile.Profile, cpus set.CPUSet, nodes set.NodeSet) error {
	switch {
	case !prior.UsedCPUs.IsEmpty() && !prior.UsedCPUs.Equal(cpus):
		return fmt.Errorf("the profile was measured with CPUs %s, now it would be with %s: %w", prior.UsedCPUs, cpus, ErrOtherProfile)
	case !prior.UsedNodes.IsEmpty() && !prior.UsedNodes.Equal(nodes):
		return fmt.Errorf("the profile is of nodes %s, now it would be of %s: %w", prior.UsedNodes, nodes, ErrOtherProfile)
	}
	return nil
}

// wanted is the requested parts that are not done, in order.
func (b *bench) wanted() []profile.Part {
	asked := b.o.Parts
	if asked == nil {
		asked = profile.Parts()
	}
	var left []profile.Part
	for _, part := range profile.Parts() {
		if slices.Contains(asked, part) && !slices.Contains(b.profile.Done, part) {
			left = append(left, part)
		}
	}
	return left
}

// planners make a part's pieces from what is known so far. They only plan: a part that
// is still to come is planned, too, for an estimate.
func planners() map[profile.Part]func(*bench) plan {
	return map[profile.Part]func(*bench) plan{
		profile.Caches: planCaches, profile.Latency: planLatency, profile.Bandwidth: planBandwidth, profile.Mixes: planMixes,
		profile.Loaded: planLoaded, profile.CacheSharing: planSharing, profile.CoreToCore: planCore,
		profile.Migrating: planMigration, profile.Policies: planPolicies, profile.Rao: planRao,
	}
}

func (b *bench) plan(part profile.Part) plan { return planners()[part](b) }

// finished is the profile with the facts about the whole: time and caveats.
func (b *bench) finished() profile.Profile {
	p := b.profile
	p.Seconds = b.before + b.elapsed().Seconds()
	p.Caveats = b.caveats()
	return p
}

func (b *bench) elapsed() time.Duration { return b.o.Now().Sub(b.start) }

func (b *bench) save() error {
	b.saved, b.unsaved = b.o.Now(), false
	if b.o.Save == nil {
		return nil
	}
	if err := b.o.Save(b.finished()); err != nil {
		return fmt.Errorf("%w: %w", errSave, err)
	}
	return nil
}

func (b *bench) nothing() error {
	if len(b.profile.Skipped) > 0 {
		s := b.profile.Skipped[0]
		what := string(s.Part)
		if s.What != "" {
			what += ", " + s.What
		}
		return fmt.Errorf("%w: %s: %s", ErrNothing, what, s.Why)
	}
	return ErrNothing
}
