// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"homenode/internal/action"
	"homenode/internal/journal"
	"homenode/internal/kernel"
	"homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/unix"
)

// Manager acts for the workloads of one owner. It moves their pages itself (Move), by the
// mover it was made with.
type Manager interface {
	journal.Owner
	// Names reports whether a setting is one of the manager's.
	Names(s journal.Setting) bool
}

// RouterConfig lists the owners that can act.
type RouterConfig struct {
	// Direct are owners whose cgroups are written directly all the same.
	Direct []string
	// Cgroups writes cgroups.
	Cgroups journal.Owner
	// Managers by the owner of a workload's cgroup, as kernel/cgroup names it. An owner
	// that is not listed is left alone.
	Managers map[string]Manager
}

// Router is the journal.Owner of everything that has a cgroup.
type Router struct {
	cfg    RouterConfig
	layout cgroup.Layout
	maps   *Maps
}

// NewRouter acts on the running kernel: it needs the token that only kernel.Live makes.
func NewRouter(live kernel.LiveToken, cfg RouterConfig) (*Router, error) {
	if !live.Valid() {
		return nil, fmt.Errorf("act on workloads: only the running kernel can be acted upon (%w)", kernel.ErrNotSupported)
	}
	return newRouter(live.Root(), cfg)
}

func newRouter(root kernel.Root, cfg RouterConfig) (*Router, error) {
	layout, err := cgroup.Find(root)
	if err != nil {
		return nil, err
	}
	return &Router{cfg: cfg, layout: layout, maps: NewMaps(root, layout)}, nil
}

// of finds the owner that acts on a workload.
func (r *Router) of(workload string) (journal.Owner, error) {
	var buf unix.Buffer
	owner := r.layout.Owner(workload, &buf)
	if owner == cgroup.NoOwner || slices.Contains(r.cfg.Direct, owner) {
		return r.cfg.Cgroups, nil
	}
	if m, ok := r.cfg.Managers[owner]; ok && !cgroup.LeftAlone(owner) {
		return m, nil
	}
	return nil, fmt.Errorf("act on %s: %w: %s", workload, journal.ErrRefused, leftAlone(owner))
}

// leftAlone says why homenode does not act on an owner's workloads.
func leftAlone(owner string) string {
	const direct = "; it would overwrite a direct write or be confused by it: name it in direct_owners to allow that"
	switch owner {
	case cgroup.Kubelet:
		return "owned by kubelet, whose CPU and memory managers place its pods: it is observed and left alone" + direct
	case cgroup.Podman, cgroup.Libvirt, cgroup.CRIO:
		return "owned by " + owner + ", which homenode does not talk to: it is observed and left alone" + direct
	}
	return "owned by " + owner + ", which homenode cannot reach here" + direct
}

// next is the setting's owner, by its name; a setting of an unknown kind has none.
func (r *Router) next(s journal.Setting) journal.Next {
	if s.Kind() == journal.OfCgroup {
		return journal.Next{Behind: r.cfg.Cgroups}
	}
	for _, m := range r.cfg.Managers {
		if m.Names(s) {
			return journal.Next{Behind: m}
		}
	}
	return journal.Next{Why: "settings of this kind are unknown here: it stays on record"}
}

// Plan asks the workload's owner, and before its nodes are set its processes.
func (r *Router) Plan(ctx context.Context, step action.Step) ([]journal.Change, error) {
	owner, err := r.of(step.Workload)
	if err == nil && step.Kind == action.SetMems {
		err = r.maps.Answer(ctx, step.Workload)
	}
	if err != nil {
		return nil, err
	}
	return owner.Plan(ctx, step)
}

// Move asks the workload's owner.
func (r *Router) Move(ctx context.Context, p journal.Permit, step action.Step) action.Outcome {
	owner, err := r.of(step.Workload)
	if err != nil {
		return action.Outcome{Step: step, Status: action.Refused, Detail: err.Error()}
	}
	return owner.Move(ctx, p, step)
}

// Read asks the setting's owner.
func (r *Router) Read(s journal.Setting) (journal.Current, error) { return r.next(s).Read(s) }

// Same asks the setting's owner.
func (r *Router) Same(s journal.Setting, current, recorded string) bool {
	return r.next(s).Same(s, current, recorded)
}

// Write asks the setting's owner.
func (r *Router) Write(p journal.Permit, s journal.Setting, value string) error {
	return r.next(s).Write(p, s, value)
}

// Equivalent asks the setting's owner.
func (r *Router) Equivalent(s journal.Setting, original string) (string, error) {
	return r.next(s).Equivalent(s, original)
}

var _ journal.Link = (*Router)(nil)

// Overrules asks the setting's owner, if that owner supports it.
func (r *Router) Overrules(s journal.Setting, value string) string {
	return r.next(s).Overrules(s, value)
}

// Ended tells the setting's owner.
func (r *Router) Ended(s journal.Setting) error { return r.next(s).Ended(s) }

// Clock asks the setting's owner. Only threads inherit, and their owner stands before
// this one: no owner behind it has inherited settings.
func (r *Router) Clock(s journal.Setting) uint64 { return r.next(s).Clock(s) }

// Original asks the setting's owner.
func (r *Router) Original(s journal.Setting, value string) string {
	return r.next(s).Original(s, value)
}

// Inherited of a workload, from every owner.
func (r *Router) Inherited(f journal.Family) (all []journal.Inherited, err error) {
	for _, owner := range r.all() {
		inherited, bad := journal.Next{Behind: owner}.Inherited(f)
		all, err = append(all, inherited...), errors.Join(err, bad)
	}
	return all, err
}

// all returns the owners that act, always in the same order.
func (r *Router) all() []journal.Owner {
	all := []journal.Owner{r.cfg.Cgroups}
	for _, name := range slices.Sorted(maps.Keys(r.cfg.Managers)) {
		all = append(all, r.cfg.Managers[name])
	}
	return all
}

// Remembered asks every owner that remembers settings of earlier boots.
func (r *Router) Remembered() (all []journal.Entry, err error) {
	for _, owner := range r.all() {
		entries, bad := journal.Next{Behind: owner}.Remembered()
		all, err = append(all, entries...), errors.Join(err, bad)
	}
	return all, err
}
