// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"homenode/internal/action"
	"homenode/internal/actuate"
	"homenode/internal/agent"
	"homenode/internal/journal"
	"homenode/internal/kernel"
	"homenode/internal/kernel/migrate"
	"homenode/internal/machine"
	"homenode/internal/owner/cgroup"
	"homenode/internal/render/words"
	"homenode/internal/tui"
	"homenode/internal/window"
)

// Reader is kernel.Reader, or a fake.
type Reader interface {
	Read(ctx context.Context) (window.Window, error)
	Machine() machine.Machine
	Close()
}

// Live is this host for the screen: its windows, and the way to act on it. It
// acts as the agent does: wishes become steps by actuate, and the journal stands
// before each. It takes the journal only when something is to be applied, and
// keeps it until it ends.
type Live struct {
	cfg    agent.Config
	period time.Duration

	wake chan struct{} // holds one; Apply: there is a wish

	mu       sync.Mutex // Next runs beside Plan and Apply, and close beside all of them
	closed   bool
	reader   Reader
	next     time.Time // when to read
	soonest  time.Time // when to read if somebody waits for it
	reads    int
	last     window.Window
	journal  *journal.Journal
	entries  []journal.Entry // without a journal of our own: what another's says
	owner    journal.Owner
	shared   string // what of shared pages cannot be done
	moving   *background
	jobs     actuate.State
	wishes   []action.Action
	outcomes []action.Outcome
}

// Open reads the running kernel; it takes no journal until Apply.
func Open(c agent.Config, period time.Duration) (*Live, error) {
	l := &Live{cfg: c, period: period, wake: make(chan struct{}, 1)}
	reader, err := kernel.NewReader(kernel.Config{Roots: c.Cgroups, UserOnly: c.UserOnly, Ours: l.ours})
	if err != nil {
		return nil, err
	}
	l.reader = reader
	return l, nil
}

// ours is asked while a window is read.
func (l *Live) ours(id, file, value string) bool {
	if l.journal != nil {
		return l.journal.Ours(id, file, value)
	}
	return OursOf(l.entries)(id, file, value)
}

// OursOf says of settings whether they are a homenode's, of whose journal the entries are.
func OursOf(entries []journal.Entry) func(id, file, value string) bool {
	return func(id, file, value string) bool {
		return slices.ContainsFunc(entries, func(e journal.Entry) bool {
			return e.Cgroup == id && e.File == file && e.Has(value)
		})
	}
}

// soon is the shortest window that still has rates worth showing.
const soon = time.Second

// errClosed is what is said to who comes after close.
var errClosed = errors.New("homenode top has ended")

// lock takes the mutex for somebody who may have come too late: the context can
// have ended, and all have been closed, while he waited. It is held only without
// an error.
func (l *Live) lock(ctx context.Context) error {
	l.mu.Lock()
	err := ctx.Err()
	if err == nil && l.closed {
		err = errClosed
	}
	if err != nil {
		l.mu.Unlock()
	}
	return err
}

// wait ends when a window is to be read: when the period is over, or soon where a
// wish waits for it.
func (l *Live) wait(ctx context.Context) error {
	for {
		if err := l.lock(ctx); err != nil {
			return err
		}
		next := l.next
		if len(l.wishes) > 0 {
			next = l.soonest
		}
		l.mu.Unlock()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-l.wake:
		case <-time.After(time.Until(next)):
			return nil
		}
	}
}

// Next waits until a period is over, or somebody wished for something, and reads
// that window. Rates need two reads: the second comes sooner.
func (l *Live) Next(ctx context.Context) (tui.Frame, error) {
	if err := l.wait(ctx); err != nil {
		return tui.Frame{}, err
	}
	if err := l.awaitMoves(ctx); err != nil {
		return tui.Frame{}, err
	}
	if err := l.lock(ctx); err != nil {
		return tui.Frame{}, err
	}
	defer l.mu.Unlock()
	now := time.Now()
	l.next, l.soonest = now.Add(l.period), now.Add(min(l.period, soon))
	if l.reads++; l.reads == 1 {
		l.next = l.soonest
	}
	if l.journal == nil {
		l.entries, _ = Peek(l.cfg.StateDir) // unreadable: then nothing is known to be ours
	}
	w, err := l.reader.Read(ctx)
	if err != nil {
		return tui.Frame{}, err
	}
	l.cfg.Name(&w)
	l.tellMoves()
	w.Outcomes, l.outcomes = l.outcomes, nil
	l.last = w
	if l.journal != nil {
		l.act(ctx)
	}
	return tui.Frame{Machine: l.reader.Machine(), Window: w}, nil
}

// Peek reads what a running homenode has in its journal.
func Peek(dir string) ([]journal.Entry, error) {
	boot, err := kernel.BootID(kernel.At("/"))
	if err != nil {
		return nil, err
	}
	entries, err := journal.Peek(dir, boot)
	if errors.Is(err, journal.ErrDamaged) { // 'homenode restore' says so
		err = nil
	}
	return entries, err
}

// act takes this window's steps; after one that was not done, the workload's
// further steps wait for the next window. Moves, which come last, have until then.
func (l *Live) act(ctx context.Context) {
	var steps, moves []action.Step
	l.jobs, steps, l.outcomes = actuate.Step(l.reader.Machine(), l.actuateConfig(), l.jobs, l.wishes, l.last)
	l.wishes = nil
	apply := l.journal.Wrap(l.owner)
	stopped := map[string]bool{}
	for _, s := range steps {
		if stopped[s.Workload] || ctx.Err() != nil {
			continue
		}
		if s.Kind == action.MovePages {
			moves = append(moves, s)
			continue
		}
		o := apply.Apply(ctx, s)
		stopped[s.Workload] = o.Status != action.Done && o.Status != action.InProgress
		l.outcomes = append(l.outcomes, o)
	}
	l.startMoves(ctx, apply, moves, l.next)
}

// actuateConfig has a move take no longer than a period.
func (l *Live) actuateConfig() actuate.Config {
	c := l.cfg.Actuate
	c.Turn = l.period
	return c
}

// open makes the owner, who plans and writes.
func (l *Live) open() error {
	if l.owner != nil {
		return nil
	}
	powers, err := kernel.ReadPowers(kernel.Live().Root())
	if err != nil {
		return err
	}
	if !powers.Nice() { // asking for them would fail each call
		l.shared = ", without those that several processes map (that needs CAP_SYS_NICE)"
	}
	mover, err := migrate.NewMover(kernel.Live(), migrate.Config{Shared: powers.Nice()})
	if err != nil {
		return err
	}
	owner, err := agent.OwnersWith(cgroup.Config{DirectOwners: l.cfg.DirectOwners, Mover: mover}, l.cfg.Runtimes)
	if err != nil {
		return err
	}
	l.owner = owner
	return nil
}

// free says whether another homenode decides here.
func (l *Live) free() error {
	if l.journal != nil {
		return nil
	}
	pid, err := journal.Holder(l.cfg.StateDir)
	if err == nil && pid != "" {
		err = heldBy(pid)
	}
	return err
}

func heldBy(pid string) error {
	return fmt.Errorf("another homenode (pid %s) is running and decides here: stop it, or leave the binding to it", pid)
}

// Plan is the dry run. It changes nothing and takes no lock.
func (l *Live) Plan(ctx context.Context, a action.Action) ([]string, error) {
	if err := l.lock(ctx); err != nil {
		return nil, err
	}
	defer l.mu.Unlock()
	if err := errors.Join(l.free(), l.open()); err != nil {
		return nil, err
	}
	if a.Kind == action.Unbind {
		return l.planUnbind(a.Workload)
	}
	return l.planBind(ctx, a)
}

// planUnbind says what of a workload's settings the journal would put back.
func (l *Live) planUnbind(id string) ([]string, error) {
	entries := l.entries
	if l.journal != nil {
		entries = l.journal.Outstanding()
	}
	var lines []string
	for _, e := range entries {
		if e.Cgroup != id || e.Equivalent {
			continue
		}
		lines = append(lines, fmt.Sprintf("%s = %q again%s", e.Setting, e.Original, l.now(e.Setting, e.Original)))
	}
	if len(lines) == 0 {
		return nil, fmt.Errorf("homenode has set nothing of %s: there is nothing to put back", id)
	}
	return append(lines, "Its pages stay where they are."), nil
}

// planBind lets actuate take the first step on paper, and asks the owner what
// each step would set.
func (l *Live) planBind(ctx context.Context, a action.Action) ([]string, error) {
	wl, ok := l.last.Workload(a.Workload)
	job, busy := l.jobs.Job(a.Workload)
	switch {
	case !ok:
		return nil, fmt.Errorf("%s is gone", a.Workload)
	case busy && job.Nodes != a.Nodes && job.Stage != actuate.StageDrifted && job.Stage != actuate.StageRestoring:
		// actuate could take it there; who watches sees one thing after the other.
		return nil, fmt.Errorf("it is bound to nodes %v: unbind it first", job.Nodes)
	case !busy && (wl.Binding.OursCPUs || wl.Binding.OursMems):
		return nil, fmt.Errorf("an earlier homenode bound it to CPUs %v, memory of %v: unbind it first", wl.Binding.CPUs, wl.Binding.Mems)
	}
	w := l.last
	w.Outcomes = nil
	next, steps, told := actuate.Step(l.reader.Machine(), l.actuateConfig(), l.jobs, []action.Action{a}, w)
	for _, o := range told {
		if o.Step.Workload == a.Workload {
			return nil, errors.New(words.Became(o))
		}
	}
	if busy {
		return nil, fmt.Errorf("it is on its way to nodes %v already", a.Nodes)
	}
	var lines []string
	for _, s := range steps {
		if s.Workload != a.Workload {
			continue
		}
		more, err := l.planStep(ctx, s)
		if err != nil {
			return nil, err
		}
		lines = append(lines, more...)
	}
	j, _ := next.Job(a.Workload)
	if j.Stage == actuate.StageAhead {
		more, err := l.planStep(ctx, action.Step{Kind: action.SetCPUs, Workload: j.Workload, CPUs: j.CPUs, Nodes: j.Nodes})
		if err != nil {
			return nil, err
		}
		lines = append(append(more, lines...), "its memory goes first: "+words.Sentence(j.Way.Reason(j.Workload, j.Nodes)))
	}
	if !j.Moving && j.Pays.Known() {
		v, _ := j.Pays.Get()
		lines = append(lines, "its pages stay for now: "+words.Sentence(v.Short()))
	}
	return append(lines, l.planMems(ctx, a, wl)...), nil
}

func (l *Live) planStep(ctx context.Context, s action.Step) ([]string, error) {
	if s.Kind == action.MovePages {
		return []string{fmt.Sprintf("then its pages on nodes %v (%v) move to %v, at most %v/s%s", s.From, l.elsewhere(s), s.Nodes, l.cfg.Actuate.Rate, l.shared)}, nil
	}
	changes, err := l.owner.Plan(ctx, s)
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, c := range changes {
		lines = append(lines, fmt.Sprintf("%s = %q%s", c.Setting, c.New, l.now(c.Setting, c.New)))
	}
	return lines, nil
}

// elsewhere is what of a workload's pages a move is about, without its budget.
func (l *Live) elsewhere(s action.Step) string {
	wl, _ := l.last.Workload(s.Workload)
	by, _ := wl.PagesByNode()
	sum := s.Budget - s.Budget
	for i, b := range by {
		if s.From.Has(l.last.Nodes[i].ID) {
			sum += b
		}
	}
	return sum.String()
}

// planMems says what comes last: the memory nodes, once little is left elsewhere.
func (l *Live) planMems(ctx context.Context, a action.Action, wl window.Workload) []string {
	if wl.Binding.PinnedMems {
		return []string{"Its memory stays as it is: " + wl.Binding.PinnedWhy}
	}
	changes, err := l.owner.Plan(ctx, action.Step{Kind: action.SetMems, Workload: a.Workload, Nodes: a.Nodes})
	if err != nil {
		return []string{"Its memory nodes will not be set: " + err.Error()}
	}
	c := changes[len(changes)-1] // those before it are the controllers, as for the CPUs
	return []string{fmt.Sprintf("at last %s = %q%s", c.Setting, c.New, l.now(c.Setting, c.New))}
}

// now says what a setting is before it becomes next.
func (l *Live) now(s journal.Setting, next string) string {
	cur, err := l.owner.Read(s)
	switch {
	case err != nil:
		return ""
	case l.owner.Same(s, cur.Value, next):
		return " (as it is)"
	}
	return fmt.Sprintf(" (now %q)", cur.Value)
}

// Apply takes the journal, if it has not yet, and leaves the wish for the next
// window, which then comes soon.
func (l *Live) Apply(ctx context.Context, a action.Action) error {
	if err := l.lock(ctx); err != nil {
		return err
	}
	defer l.mu.Unlock()
	if err := l.open(); err != nil {
		return err
	}
	if l.journal == nil {
		if err := l.free(); err != nil {
			return err
		}
		j, err := journal.Open(l.cfg.StateDir)
		if err != nil {
			return err
		}
		l.journal = j
	}
	l.wishes = append(l.wishes, a)
	select {
	case l.wake <- struct{}{}:
	default: // it is awake already
	}
	return nil
}

// close lets go of everything and says what stays.
func (l *Live) Close() []string {
	l.mu.Lock()
	was, moves := l.closed, l.moving
	l.closed = true // from here on no moves begin
	l.mu.Unlock()
	if was {
		return nil
	}
	if moves != nil { // they need the journal
		moves.cancel()
		<-moves.done
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reader.Close()
	if l.journal == nil {
		return nil
	}
	var names []string
	for _, e := range l.journal.Outstanding() {
		if !slices.Contains(names, e.Workload) {
			names = append(names, e.Workload)
		}
	}
	slices.Sort(names)
	lines := l.unfinished(names)
	if len(names) > 0 {
		restore := "homenode restore"
		if l.cfg.StateDir != agent.DefaultStateDir {
			restore += " --state " + l.cfg.StateDir
		}
		lines = append(lines, fmt.Sprintf("still bound: %s: '%s' puts them back", strings.Join(names, ", "), restore))
	}
	if err := errors.Join(l.journal.Compact(), l.journal.Close()); err != nil {
		lines = append(lines, err.Error())
	}
	return lines
}

// unfinished says what was begun and did not come to its end, and what was not even
// begun. Something is still set of those that are bound.
func (l *Live) unfinished(bound []string) []string {
	var lines []string
	for _, j := range l.jobs.Jobs {
		if how := left(j.Stage, slices.Contains(bound, j.Workload)); how != "" {
			lines = append(lines, j.Workload+": "+how)
		}
	}
	for _, a := range l.wishes {
		lines = append(lines, fmt.Sprintf("%v: not begun, nothing was changed for it", a))
	}
	return lines
}

// left is where a job was left; "" where it had come to its end.
func left(s actuate.Stage, bound bool) string {
	switch {
	case s == actuate.StageAhead:
		return "its pages were moving first, and its CPUs are not set"
	case s == actuate.StageCPUs && bound:
		return "its CPUs are set, its pages had not begun to move and its memory nodes are not set"
	case s == actuate.StageCPUs:
		return "its CPUs were asked for and are not set"
	case s == actuate.StagePages || s == actuate.StageMems:
		return "its CPUs are set, its pages had not all moved and its memory nodes are not set"
	case s == actuate.StageRestoring && bound:
		return "not all that it had before was put back"
	}
	return ""
}
