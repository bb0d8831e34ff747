// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"context"
	"fmt"
	"path"
	"slices"

	"homenode/internal/action"
	"homenode/internal/journal"
	"homenode/internal/kernel"
	"homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/migrate"
	"homenode/internal/kernel/unix"
	"homenode/internal/migration"
	"homenode/internal/owner"
)

// Config sets what may be written.
type Config struct {
	// DirectOwners are owners whose cgroups are written directly all the same ("systemd",
	// "docker", …). They may overwrite that at any time.
	DirectOwners []string
	// Mover moves pages; without one MovePages is refused.
	Mover Mover
	// Hot finds which pages of processes are accessed; nil: unknown.
	Hot func(ctx context.Context, pids []int) (migrate.Hot, error)
}

// Mover is migrate.Mover, or a fake.
type Mover interface {
	Move(ctx context.Context, req migrate.Request) (migration.Result, error)
}

// Applier is the journal.Owner of unmanaged cgroups.
type Applier struct {
	cfg    Config
	layout cgroup.Layout
	write  func(path, value string) error
	maps   *owner.Maps
	lane   *lane
	seen   map[string]hotPages // by workload
	moves  int
}

// The files that Applier writes.
const (
	cpusFile    = cgroup.CPUsFile
	memsFile    = cgroup.MemsFile
	subtreeFile = "cgroup.subtree_control"

	controllerOn  = "+cpuset"
	controllerOff = "-cpuset"
)

// New acts on the running kernel. It needs the token that only kernel.Live makes: a
// recorded machine is never acted upon.
func New(live kernel.LiveToken, cfg Config) (*Applier, error) {
	if !live.Valid() {
		return nil, fmt.Errorf("act on cgroups: only the running kernel can be acted upon (%w)", kernel.ErrNotSupported)
	}
	layout, err := cgroup.Find(live.Root())
	if err == nil {
		err = layout.NeedCpuset()
	}
	if err != nil {
		return nil, err
	}
	return &Applier{cfg: cfg, layout: layout, write: unix.WriteFile, maps: owner.NewMaps(live.Root(), layout), lane: &theLane}, nil
}

// Plan lists the files that a step changes.
func (a *Applier) Plan(_ context.Context, step action.Step) ([]journal.Change, error) {
	if err := a.mayAct(step.Workload); err != nil {
		return nil, err
	}
	c, err := a.Fits(step)
	if err != nil {
		return nil, err
	}
	return append(a.enable(step.Workload), c), nil
}

// Fits returns the file of the workload's cgroup that a step sets, and its value. It
// fails where the cgroups above do not allow that. The owner of the cgroup does not
// matter.
func (a *Applier) Fits(step action.Step) (journal.Change, error) {
	var buf unix.Buffer
	parent, err := a.layout.ReadEffective(path.Dir(step.Workload), &buf)
	if err != nil {
		return journal.Change{}, err
	}
	set := journal.Setting{Cgroup: step.Workload, File: cpusFile}
	value := step.CPUs.String()
	switch step.Kind {
	case action.SetCPUs:
		err = owner.Fits(set, step.CPUs, parent.CPUs, "parent")
	case action.SetMems:
		set.File, value = memsFile, step.Nodes.String()
		err = owner.Fits(set, step.Nodes, parent.Mems, "parent")
	default:
		err = fmt.Errorf("take step %s for %s: %w: it sets nothing", step.Kind, step.Workload, journal.ErrRefused)
	}
	return journal.Change{Setting: set, New: value}, err
}

// mayAct refuses cgroups that have a manager, and reports one that is gone.
func (a *Applier) mayAct(id string) error {
	var buf unix.Buffer
	owner := a.layout.Owner(id, &buf)
	if owner != cgroup.NoOwner && !slices.Contains(a.cfg.DirectOwners, owner) {
		return fmt.Errorf("act on %s: %w: owned by %s, which would overwrite or be confused by a direct write: name it in direct_owners to allow that", id, journal.ErrRefused, owner)
	}
	if path.Clean("/"+id) != id || id == "/" {
		return fmt.Errorf("act on %q: %w: want the path of a cgroup below the root", id, journal.ErrRefused)
	}
	_, err := unix.Inode(a.layout.Path(a.layout.Cpuset, id, ""))
	return unix.Explain("act on", id, "", err)
}

// enable lists the ancestors, from the root down, where the cpuset controller
// has to be switched on for the cgroups below (v2).
func (a *Applier) enable(id string) []journal.Change {
	if !a.layout.Cpuset.V2 {
		return nil
	}
	var changes []journal.Change
	for at := path.Dir(id); ; at = path.Dir(at) {
		s := journal.Setting{Cgroup: at, File: subtreeFile}
		if cur, err := a.Read(s); err != nil || cur.Value != controllerOn {
			changes = append(changes, journal.Change{Setting: s, New: controllerOn})
		}
		if at == "/" {
			break
		}
	}
	slices.Reverse(changes)
	return changes
}

// Move moves pages of the workload's processes to the step's nodes, within its
// budget.
func (a *Applier) Move(ctx context.Context, p journal.Permit, step action.Step) action.Outcome {
	if err := a.mayAct(step.Workload); err != nil {
		return action.Outcome{Step: step, Status: statusOf(err), Detail: err.Error()}
	}
	return a.MovePages(ctx, p, step)
}

// MovePages is Move for a cgroup whose owner has been asked: moving pages changes none of
// the owner's settings.
func (a *Applier) MovePages(ctx context.Context, p journal.Permit, step action.Step) action.Outcome {
	out := action.Outcome{Step: step, Status: action.Refused}
	if a.cfg.Mover == nil || !p.Valid() {
		out.Detail = "move pages of " + step.Workload + ": no mover, or no permit of the journal"
		return out
	}
	var buf unix.Buffer
	pids, err := a.layout.PIDs(nil, step.Workload, &buf)
	if err != nil {
		out.Status, out.Detail = statusOf(err), err.Error()
		return out
	}
	req := migrate.Request{
		PIDs: pids, From: step.From, To: step.Nodes, Budget: step.Budget, Rate: step.Rate, MaxStall: step.MaxStall,
		// Pages that other processes use too are not moved for this workload.
		Cache: step.PageCache, LeaveForeign: true,
	}
	if first, ok := a.hotFirst(ctx, step, req); ok {
		a.move(ctx, first, &out)
		if out.Status != action.Done {
			return out
		}
		a.seen[step.Workload] = a.seen[step.Workload].done()
		if req.Budget -= out.Moved; req.Budget <= 0 {
			out.Status, out.HotHome = action.InProgress, true
			return out
		}
	}
	a.move(ctx, req, &out)
	out.HotHome = step.HotFirst
	return out
}

// move adds the result of a move to an outcome.
func (a *Applier) move(ctx context.Context, req migrate.Request, out *action.Outcome) {
	res, err := a.cfg.Mover.Move(ctx, req)
	out.Moved += res.Moved()
	out.Failed += res.Failed()
	out.CPUSeconds += res.CPU.Seconds()
	out.Status, out.Detail = action.Done, res.String()
	if !res.Complete {
		out.Status = action.InProgress
	}
	if err != nil {
		out.Status, out.Detail = statusOf(err), err.Error()
	}
}
