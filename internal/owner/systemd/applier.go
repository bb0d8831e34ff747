// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"homenode/internal/action"
	"homenode/internal/journal"
	"homenode/internal/kernel"
	"homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/unix"
	"homenode/internal/owner"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// Config says how units are bound.
type Config struct {
	// Pages moves the pages of a cgroup's processes; nil: they stay.
	Pages Pages
	// MostElsewhere is how much memory may be on other nodes when a unit's nodes are set:
	// PID 1 waits until the kernel has moved it, about 1 ms per 1.5 MiB (MAO's 0.65
	// s/GB). 0: 64 MiB.
	MostElsewhere unit.Bytes
	// Limit of one request. PID 1 answers in some 100 µs, but not while it waits for a
	// write to a cgroup. 0: 5 s.
	Limit time.Duration
}

// Pages is cgroup.Applier, or a fake.
type Pages interface {
	MovePages(ctx context.Context, p journal.Permit, step action.Step) action.Outcome
}

// Applier is the journal.Owner of systemd's units.
type Applier struct {
	cfg     Config
	layout  cgroup.Layout
	bus     bus
	backoff owner.Backoff                     // PID 1's
	empty   func(path, property string) error // a drop-in
	seen    map[journal.Setting]uint64        // the ID that was read last: what is on record belongs to it
}

// New acts on the running kernel: it needs the token that only kernel.Live makes. It does
// not connect yet.
func New(live kernel.LiveToken, cfg Config) (*Applier, error) {
	if !live.Valid() {
		return nil, fmt.Errorf("act on units: only the running kernel can be acted upon (%w)", kernel.ErrNotSupported)
	}
	return newApplier(live.Root(), newLiveBus(live.Root()), cfg)
}

func newApplier(root kernel.Root, b bus, cfg Config) (*Applier, error) {
	layout, err := cgroup.Find(root)
	if err != nil {
		return nil, err
	}
	if cfg.MostElsewhere == 0 {
		cfg.MostElsewhere = owner.MostElsewhere
	}
	if cfg.Limit == 0 {
		cfg.Limit = owner.AnswerLimit
	}
	return &Applier{cfg: cfg, layout: layout, bus: b, empty: emptyDropIn, seen: map[journal.Setting]uint64{}}, nil
}

// Setting names a unit's property in the journal.
func Setting(unit, property string) journal.Setting {
	return journal.Named(journal.OfUnit, unit, property)
}

// Ended forgets a unit that no longer concerns us.
func (a *Applier) Ended(s journal.Setting) error {
	delete(a.seen, s)
	return nil
}

// Names reports whether a setting is a unit's.
func (a *Applier) Names(s journal.Setting) bool { return s.Kind() == journal.OfUnit }

// unitOf is the unit of a setting.
func unitOf(s journal.Setting) (string, error) {
	name := s.Name()
	if s.Kind() != journal.OfUnit || !isUnit(name) || s.File != CPUs && s.File != Mems {
		return "", fmt.Errorf("act on %s: it is no property of a unit: another owner puts it back", s)
	}
	return name, nil
}

// Plan lists the property that a step changes.
func (a *Applier) Plan(ctx context.Context, step action.Step) ([]journal.Change, error) {
	name, err := a.mayAct(ctx, step.Workload)
	if err != nil {
		return nil, err
	}
	var buf unix.Buffer
	parent, err := a.layout.ReadEffective(path.Dir(step.Workload), &buf)
	if err != nil {
		return nil, err
	}
	c := journal.Change{Setting: Setting(name, CPUs), New: step.CPUs.String()}
	switch step.Kind {
	case action.SetCPUs:
		err = owner.Fits(c.Setting, step.CPUs, parent.CPUs, "slice")
	case action.SetMems:
		c.Setting.File, c.New = Mems, step.Nodes.String()
		err = errors.Join(owner.Fits(c.Setting, step.Nodes, parent.Mems, "slice"),
			owner.RefuseSlowMove(a.layout, step, a.cfg.MostElsewhere, "PID 1"))
	default:
		err = fmt.Errorf("take step %s for %s: %w: no property of a unit does that", step.Kind, step.Workload, journal.ErrRefused)
	}
	if err != nil {
		return nil, err
	}
	return []journal.Change{c}, nil
}

// mayAct refuses everything but a whole unit that runs now.
func (a *Applier) mayAct(ctx context.Context, id string) (string, error) {
	name, err := UnitOf(id)
	if err != nil {
		return "", err
	}
	if !a.layout.Cpuset.V2 {
		return "", fmt.Errorf("act on unit %s: %w: cpuset is on cgroup v1 here, and systemd sets %s on v2 only", name, journal.ErrRefused, CPUs)
	}
	if below := a.below(id); below != "" {
		return "", fmt.Errorf("act on unit %s: %w: processes of %s, below it, would be bound with it", name, journal.ErrRefused, below)
	}
	u, err := a.load(ctx, "ask for", name)
	switch {
	case err != nil:
		return "", err
	case u.Cgroup == "":
		return "", fmt.Errorf("act on unit %s: it runs nothing now (%w)", name, kernel.ErrGone)
	case u.Cgroup != id:
		return "", fmt.Errorf("act on unit %s: %w: its cgroup is %s, not %s", name, journal.ErrRefused, u.Cgroup, id)
	}
	return name, nil
}

// below finds a child cgroup of a unit's that has processes, "" if there is none.
// Processes further below count, too (cgroup.procs does not list them, PIDs does).
func (a *Applier) below(id string) string {
	var buf unix.Buffer
	for _, child := range a.layout.Children(a.layout.Cpuset, id) {
		if pids, err := a.layout.PIDs(nil, child, &buf); err == nil && len(pids) > 0 {
			return child
		}
	}
	return ""
}

// load asks for a unit. A unit that systemd does not find is gone.
func (a *Applier) load(ctx context.Context, verb, name string) (unitState, error) {
	if a.backoff.Lasts() {
		return unitState{}, explain(verb, "unit "+name, context.DeadlineExceeded)
	}
	ctx, cancel := context.WithTimeout(ctx, a.cfg.Limit)
	defer cancel()
	u, err := a.bus.Unit(ctx, name)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) && err != nil {
		a.backoff.Begin()
	}
	if err != nil {
		return u, explain(verb, "unit "+name, err)
	}
	if u.Load == "not-found" {
		return u, fmt.Errorf("%s unit %s: systemd knows no such unit (%w)", verb, name, kernel.ErrGone)
	}
	return u, nil
}

// Move moves pages of the unit's processes: that writes no setting of systemd.
func (a *Applier) Move(ctx context.Context, p journal.Permit, step action.Step) action.Outcome {
	out := action.Outcome{Step: step, Status: action.Refused}
	if a.cfg.Pages == nil {
		out.Detail = "move pages of " + step.Workload + ": no mover"
		return out
	}
	if _, err := UnitOf(step.Workload); err != nil {
		out.Detail = err.Error()
		return out
	}
	return a.cfg.Pages.MovePages(ctx, p, step)
}

// Overrules returns what a unit's cgroup has if it differs from the property: another
// process wrote to it directly, and systemd will write again at any time.
func (a *Applier) Overrules(s journal.Setting, value string) string {
	name, err := unitOf(s)
	if err != nil || value == "" {
		return ""
	}
	u, err := a.load(context.Background(), "ask for", name)
	if err != nil {
		return ""
	}
	return a.notInForce(u, s.File, value)
}

func (a *Applier) notInForce(u unitState, property, value string) string {
	if u.Cgroup == "" {
		return ""
	}
	file := cgroup.CPUsFile
	if property == Mems {
		file = cgroup.MemsFile
	}
	var buf unix.Buffer
	data, err := buf.ReadFile(a.layout.Path(a.layout.Cpuset, u.Cgroup, file))
	text := strings.TrimSpace(string(data))
	if err == nil && !same(property, text, value) && !(a.restrictsNothing(property, value) && a.restrictsNothing(property, text)) {
		return fmt.Sprintf("%s of its cgroup is %q: another process wrote to it", file, text)
	}
	return ""
}

// same compares the sets of two lists.
func same(property, a, b string) bool {
	if property == Mems {
		return set.SameNodes(a, b)
	}
	return set.SameCPUs(a, b)
}
