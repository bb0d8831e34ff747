// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"

	"homenode/internal/action"
	"homenode/internal/actuate"
	"homenode/internal/control"
	"homenode/internal/journal"
	"homenode/internal/render/words"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// Plan is the dry run. It changes nothing and takes no lock.
func (h *Host) Plan(ctx context.Context, a action.Action) ([]string, error) {
	if err := h.lock(ctx); err != nil {
		return nil, err
	}
	defer h.mu.Unlock()
	if err := errors.Join(h.free(), h.open()); err != nil {
		return nil, err
	}
	if a.Kind == action.Unbind {
		return h.planUnbind(a.Workload)
	}
	return h.planBind(ctx, a)
}

// planUnbind lists a workload's settings that the journal would restore.
func (h *Host) planUnbind(id string) ([]string, error) {
	entries := h.beside.Entries()
	if h.journal != nil {
		entries = h.journal.Outstanding()
	}
	var lines []string
	for _, e := range entries {
		if e.Workload != id || e.Equivalent || e.Kind() == journal.OfCgroup && e.Cgroup != id {
			continue // another workload's, or a controller above it, which others may need
		}
		lines = append(lines, fmt.Sprintf("%s = %q again%s", e.Setting, e.Original, h.now(e.Setting, e.Original)))
	}
	if len(lines) == 0 {
		return nil, fmt.Errorf("homenode has set nothing for %s: there is nothing to put back", id)
	}
	return append(lines, "Its pages stay where they are."), nil
}

// planBind makes the loop plan the first steps, and asks the owner what each of them
// would set.
func (h *Host) planBind(ctx context.Context, a action.Action) ([]string, error) {
	wl, ok := h.last.Workload(a.Workload)
	if !ok {
		return nil, fmt.Errorf("%s is gone", a.Workload)
	}
	job, busy := h.loop.Jobs().Job(a.Workload)
	if err := refuseBound(a, wl, job, busy); err != nil {
		return nil, err
	}
	r := h.plan(a)
	for _, o := range r.Own {
		if o.Step.Workload == a.Workload {
			return nil, errors.New(words.Became(o))
		}
	}
	if busy {
		return nil, fmt.Errorf("it is being bound to nodes %v already", a.Nodes)
	}
	lines, err := h.planSteps(ctx, a.Workload, r)
	if err != nil {
		return nil, err
	}
	return append(lines, h.planMems(ctx, a, wl)...), nil
}

// refuseBound refuses a workload that is bound elsewhere. actuate could rebind it, but a
// person should see one change after another.
func refuseBound(a action.Action, wl window.Workload, job actuate.Job, busy bool) error {
	switch {
	case busy && job.Nodes != a.Nodes && job.Stage != actuate.StageDrifted && job.Stage != actuate.StageRestoring:
		return fmt.Errorf("it is bound to nodes %v: unbind it first", job.Nodes)
	case !busy && (wl.Binding.OursCPUs || wl.Binding.OursMems):
		return fmt.Errorf("an earlier homenode bound it to CPUs %v, memory of %v: unbind it first", wl.Binding.CPUs, wl.Binding.Mems)
	}
	return nil
}

// plan is the next round without its steps.
func (h *Host) plan(a action.Action) control.Round {
	w := h.last
	w.Outcomes = nil // the last round has used them
	h.arrange()
	return h.loop.Plan(w, []action.Action{a})
}

// planSteps describes a workload's steps of a round.
func (h *Host) planSteps(ctx context.Context, workload string, r control.Round) (lines []string, err error) {
	for _, s := range r.Steps {
		if s.Workload != workload {
			continue
		}
		more, err := h.planStep(ctx, s)
		if err != nil {
			return nil, err
		}
		lines = append(lines, more...)
	}
	j, _ := r.After.Job(workload)
	if j.Stage == actuate.StageAhead {
		more, err := h.planStep(ctx, action.Step{Kind: action.SetCPUs, Workload: j.Workload, CPUs: j.CPUs, Nodes: j.Nodes})
		if err != nil {
			return nil, err
		}
		lines = append(append(more, lines...), "its memory goes first: "+words.Sentence(j.Way.Reason(j.Workload, j.Nodes)))
	}
	if v, known := j.Pays.Get(); known && !j.Moving {
		lines = append(lines, "its pages stay for now: "+words.Sentence(v.Short()))
	}
	return lines, nil
}

func (h *Host) planStep(ctx context.Context, s action.Step) ([]string, error) {
	if s.Kind == action.MovePages {
		return []string{fmt.Sprintf("then its pages on nodes %v (%v) move to %v, at most %v/s%s", s.From, h.elsewhere(s), s.Nodes, h.cfg.Actuate.Rate, h.shared)}, nil
	}
	changes, err := h.owner.Plan(ctx, s)
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, c := range changes {
		lines = append(lines, fmt.Sprintf("%s = %q%s", c.Setting, c.New, h.now(c.Setting, c.New)))
	}
	return lines, nil
}

// elsewhere is the size of the pages that a move is about, without its budget.
func (h *Host) elsewhere(s action.Step) string {
	wl, _ := h.last.Workload(s.Workload)
	by, _ := wl.PagesByNode()
	var sum unit.Bytes
	for i, b := range by {
		if s.From.Has(h.last.Nodes[i].ID) {
			sum += b
		}
	}
	return sum.String()
}

// planMems describes the last step: the memory nodes, once little memory is
// elsewhere.
func (h *Host) planMems(ctx context.Context, a action.Action, wl window.Workload) []string {
	if wl.Binding.PinnedMems {
		return []string{"Its memory stays as it is: " + wl.Binding.PinnedWhy}
	}
	changes, err := h.owner.Plan(ctx, action.Step{Kind: action.SetMems, Workload: a.Workload, Nodes: a.Nodes})
	if err != nil {
		return []string{"Its memory nodes will not be set: " + err.Error()}
	}
	c := changes[len(changes)-1] // the earlier ones are the controllers, as for the CPUs
	return []string{fmt.Sprintf("at last %s = %q%s", c.Setting, c.New, h.now(c.Setting, c.New))}
}

// now says what a setting is before it becomes next.
func (h *Host) now(s journal.Setting, next string) string {
	cur, err := h.owner.Read(s)
	switch {
	case err != nil:
		return ""
	case h.owner.Same(s, cur.Value, next):
		return " (unchanged)"
	}
	return fmt.Sprintf(" (now %q)", cur.Value)
}
