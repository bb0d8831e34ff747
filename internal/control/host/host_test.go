// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"homenode/internal/action"
	"homenode/internal/actuate"
	"homenode/internal/agent"
	"homenode/internal/journal"
	"homenode/internal/kernel"
	"homenode/internal/machine"
	"homenode/internal/set"
	"homenode/internal/window"
	"homenode/internal/window/windowtest"
)

// toy is a host of windowtest to which the journal writes.
type toy struct {
	reads  int
	host   *windowtest.Host
	values map[journal.Setting]string
	gone   []string // cgroups
}

func newToy(t *testing.T, lines ...string) *toy {
	t.Helper()
	h := &windowtest.Host{}
	for _, line := range append([]string{"machine nodes=2 cpus=2 mem=1GiB"}, lines...) {
		if _, err := h.Line(line); err != nil {
			t.Fatal(err)
		}
	}
	return &toy{host: h, values: map[journal.Setting]string{}}
}

func (t *toy) Read(context.Context) (window.Window, error) {
	t.reads++
	w := t.host.Window()
	for i := range w.Workloads { // a move changes the host's data while a window is in use
		wl := &w.Workloads[i]
		wl.AnonByNode, wl.FileByNode = slices.Clone(wl.AnonByNode), slices.Clone(wl.FileByNode)
	}
	return w, nil
}

// remove ends a workload and removes its cgroup.
func (t *toy) remove(id string) {
	t.host.Remove(id)
	t.gone = append(t.gone, id)
}

func (t *toy) Machine() machine.Machine { return t.host.Machine }

func (t *toy) Close() {}

type toyOwner struct{ *toy }

func (o toyOwner) Plan(_ context.Context, s action.Step) ([]journal.Change, error) {
	if strings.HasPrefix(s.Workload, "/system.slice") {
		return nil, fmt.Errorf("act on %s: %w: owned by systemd", s.Workload, journal.ErrRefused)
	}
	if s.Kind == action.SetMems {
		return []journal.Change{{Setting: journal.Setting{Cgroup: s.Workload, File: "cpuset.mems"}, New: s.Nodes.String()}}, nil
	}
	return []journal.Change{{Setting: journal.Setting{Cgroup: s.Workload, File: "cpuset.cpus"}, New: s.CPUs.String()}}, nil
}

func (o toyOwner) Read(s journal.Setting) (journal.Current, error) {
	if slices.Contains(o.gone, s.Cgroup) {
		return journal.Current{}, fmt.Errorf("read %s: %w", s, kernel.ErrGone)
	}
	return journal.Current{Value: o.values[s], ID: 1}, nil
}

func (o toyOwner) Same(_ journal.Setting, a, b string) bool { return a == b }

func (o toyOwner) Write(_ journal.Permit, s journal.Setting, v string) error {
	o.values[s] = v
	l := o.host.Load(s.Cgroup)
	cpus, mems, ours := o.host.Machine.OnlineCPUs(), o.host.Machine.NodeIDs(), v != ""
	switch {
	case s.File == "cpuset.mems" && ours:
		mems, _ = set.ParseNodes(v)
		fallthrough
	case s.File == "cpuset.mems":
		l.Binding.Mems, l.Binding.OursMems = mems, ours
	default:
		if ours {
			cpus, _ = set.ParseCPUs(v)
		}
		l.Binding.CPUs, l.Binding.OursCPUs = cpus, ours
	}
	o.host.Spread(l)
	return nil
}

func (o toyOwner) Equivalent(journal.Setting, string) (string, error) { return "", nil }

func (o toyOwner) Move(_ context.Context, _ journal.Permit, s action.Step) action.Outcome {
	o.host.Apply([]action.Step{s})
	w := o.host.Window() // removes its outcome again
	o.host.Seq--
	return w.Outcomes[len(w.Outcomes)-1]
}

func testHost(t *testing.T, toy *toy) *Host {
	t.Helper()
	c, err := agent.ParseConfig(nil, "defaults")
	if err != nil {
		t.Fatal(err)
	}
	c.StateDir = t.TempDir()
	h := newHost(c, time.Second)
	h.reader, h.owner = toy, toyOwner{toy}
	return h
}

func (l *Host) tick(t *testing.T) window.Window {
	t.Helper()
	l.next, l.soonest = time.Now(), time.Now()
	f, err := l.Next(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return f.Window
}

func bindTo(id string, node int) action.Action {
	return action.Action{Kind: action.Bind, Workload: id, Nodes: set.FromNodes(node)}
}

// A dry run says what will be set, and sets and opens nothing. What was applied
// stays when top ends, and the next homenode can restore it.
func TestTopBindsAsItSaid(t *testing.T) {
	ctx := context.Background()
	toy := newToy(t, "workload /a cpu=1 anon=100MiB,0 mems=0-1")
	l := testHost(t, toy)
	l.tick(t)
	lines, err := l.Plan(ctx, bindTo("/a", 1))
	want := []string{`/a cpuset.cpus = "2-3" (now "")`, "then its pages on nodes 0 (100 MiB) move to 1, at most 256 MiB/s",
		"its memory goes first: in-steps: 100 MiB to move at 32 MiB/s (estimated: no move was measured yet), 4 s expected, windows at least 50.0% local", `at last /a cpuset.mems = "1" (now "")`}
	if err != nil || !slices.Equal(lines, want) {
		t.Errorf("plan %q, %v", lines, err)
	}
	if left, _ := os.ReadDir(l.cfg.StateDir); len(left) > 0 || len(toy.values) > 0 {
		t.Errorf("a dry run left %v and set %v", left, toy.values)
	}
	if _, err := l.Plan(ctx, action.Action{Kind: action.Unbind, Workload: "/a"}); err == nil || !strings.Contains(err.Error(), "has set nothing for /a") {
		t.Errorf("unbind of what is not bound: %v", err)
	}
	if err := l.Apply(ctx, bindTo("/a", 1)); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		l.tick(t)
	}
	if cpus, mems := toy.values[journal.Setting{Cgroup: "/a", File: "cpuset.cpus"}], toy.values[journal.Setting{Cgroup: "/a", File: "cpuset.mems"}]; cpus != "2-3" || mems != "1" {
		t.Errorf("set %v", toy.values)
	}
	if _, err := l.Plan(ctx, bindTo("/a", 0)); err == nil || !strings.Contains(err.Error(), "unbind it first") {
		t.Errorf("bind elsewhere: %v", err)
	}
	if said := strings.Join(l.Close(), "\n"); !strings.Contains(said, "still bound: /a: 'homenode restore --state") {
		t.Errorf("said %q", said)
	}
	next := testHost(t, toy)
	next.cfg.StateDir, next.beside.Dir = l.cfg.StateDir, l.cfg.StateDir
	next.tick(t)
	if _, err := next.Plan(ctx, bindTo("/a", 1)); err == nil || !strings.Contains(err.Error(), "an earlier homenode bound it") {
		t.Errorf("the next top: %v", err)
	}
	unbind := action.Action{Kind: action.Unbind, Workload: "/a"}
	if lines, err := next.Plan(ctx, unbind); err != nil || len(lines) != 3 {
		t.Errorf("unbind: %q, %v", lines, err)
	}
	if err := next.Apply(ctx, unbind); err != nil {
		t.Fatal(err)
	}
	next.tick(t)
	next.tick(t)
	if said := next.Close(); len(said) > 0 || toy.values[journal.Setting{Cgroup: "/a", File: "cpuset.cpus"}] != "" {
		t.Errorf("after the unbind: %v, said %q", toy.values, said)
	}
}

func TestTopRefuses(t *testing.T) {
	ctx := context.Background()
	toy := newToy(t, "workload /system.slice/x cpu=1 anon=1MiB mems=0-1", "workload /b cpu=1 anon=1MiB mems=0")
	l := testHost(t, toy)
	l.tick(t)
	for id, want := range map[string]string{"/system.slice/x": "owned by systemd", "/b": "memory of nodes 0 only", "/c": "/c is gone"} {
		if lines, err := l.Plan(ctx, bindTo(id, 1)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, %v; want %q", id, lines, err, want)
		}
	}
	held, err := journal.Open(l.cfg.StateDir)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	want := fmt.Sprintf("another homenode (pid %d) is running and decides on this host", os.Getpid())
	if _, err := l.Plan(ctx, bindTo("/b", 0)); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("while an agent runs: %v", err)
	}
	if err := l.Apply(ctx, bindTo("/b", 0)); err == nil || !strings.Contains(err.Error(), want) || l.journal != nil {
		t.Errorf("while an agent runs: %v", err)
	}
}

// With a damaged journal nothing is bound by hand, and the person reads why.
func TestTopRefusesADamagedJournal(t *testing.T) {
	ctx := context.Background()
	toy := newToy(t, "workload /a cpu=1 anon=0,1MiB mems=0-1")
	l := testHost(t, toy)
	j, err := journal.Open(l.cfg.StateDir)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(j.Close(), os.Truncate(filepath.Join(l.cfg.StateDir, "log"), 0)); err != nil {
		t.Fatal(err)
	}
	l.tick(t)
	for range 2 { // the second time shows that the lock is free again
		if err := l.Apply(ctx, bindTo("/a", 1)); !errors.Is(err, journal.ErrDamaged) || !strings.Contains(err.Error(), "homenode restore --forget-damage") {
			t.Errorf("%v", err)
		}
	}
	if l.tick(t); len(toy.values) > 0 || l.journal != nil {
		t.Errorf("set %v", toy.values)
	}
	if pid, err := journal.Holder(l.cfg.StateDir); pid != "" || err != nil {
		t.Errorf("held by %q, %v", pid, err)
	}
}

// An action does not wait for the end of a long period.
func TestTopWish(t *testing.T) {
	ctx := context.Background()
	toy := newToy(t, "workload /a cpu=1 anon=0,100MiB mems=0-1")
	l := testHost(t, toy)
	l.tick(t)
	l.period, l.next = time.Hour, time.Now().Add(time.Hour)
	read := make(chan error, 1)
	go func() {
		_, err := l.Next(ctx)
		read <- err
	}()
	time.Sleep(10 * time.Millisecond) // Next mostly waits by then; the test holds either way
	if err := l.Apply(ctx, bindTo("/a", 1)); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-read:
		if err != nil || toy.values[journal.Setting{Cgroup: "/a", File: "cpuset.cpus"}] != "2-3" {
			t.Errorf("%v, set %v", err, toy.values)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the action waits for the next period")
	}
	l.Close()
}

// slowOwner's moves continue until they are stopped.
type slowOwner struct {
	toyOwner
	began chan string
	moved int // number of moves that ended
}

func (o *slowOwner) Move(ctx context.Context, _ journal.Permit, s action.Step) action.Outcome {
	o.began <- s.Workload
	<-ctx.Done()
	o.moved++
	return action.Outcome{Step: s, Status: action.InProgress, Moved: 4096}
}

// While pages move, the screen continues: the window is shown, and dry runs and actions
// are accepted. An action ends the move, and so does the end; both wait until the move
// has ended.
func TestTopWhilePagesMove(t *testing.T) {
	ctx := context.Background()
	toy := newToy(t, "workload /a cpu=1 anon=40MiB,60MiB mems=0-1", "workload /b cpu=1 anon=40MiB,60MiB mems=0-1")
	l := testHost(t, toy)
	slow := &slowOwner{toyOwner: toyOwner{toy}, began: make(chan string, 9)}
	l.owner, l.period = slow, time.Hour
	l.tick(t)
	for _, id := range []string{"/a", "/b"} {
		if err := l.Apply(ctx, bindTo(id, 1)); err != nil {
			t.Fatal(err)
		}
	}
	l.tick(t)
	if id := <-slow.began; id != "/a" {
		t.Errorf("%s moves first", id)
	}
	if _, err := l.Plan(ctx, bindTo("/b", 0)); err == nil || !strings.Contains(err.Error(), "unbind it first") {
		t.Errorf("plan: %v", err)
	}
	if err := l.Apply(ctx, action.Action{Kind: action.Unbind, Workload: "/b"}); err != nil {
		t.Fatal(err)
	}
	w := l.tick(t)
	if slow.moved != 1 || !slices.ContainsFunc(w.Outcomes, func(o action.Outcome) bool { return o.Moved == 4096 && o.Step.Workload == "/a" }) {
		t.Errorf("%d moves ended, outcomes %v", slow.moved, w.Outcomes)
	}
	if cpus := toy.values[journal.Setting{Cgroup: "/b", File: "cpuset.cpus"}]; cpus != "" {
		t.Errorf("/b is still bound to %s", cpus)
	}
	if id := <-slow.began; id != "/a" {
		t.Errorf("%s moves on", id)
	}
	if said := strings.Join(l.Close(), "\n"); slow.moved != 2 || !strings.Contains(said, "still bound: /a") {
		t.Errorf("%d moves ended, said %q", slow.moved, said)
	}
}

// What was asked for and not begun, or begun and not ended, is listed at the
// end.
func TestTopUnfinished(t *testing.T) {
	ctx := context.Background()
	toy := newToy(t, "workload /a cpu=1 anon=40MiB,60MiB mems=0-1", "workload /b cpu=1 anon=1MiB mems=0-1")
	l := testHost(t, toy)
	l.tick(t)
	if err := l.Apply(ctx, bindTo("/a", 1)); err != nil {
		t.Fatal(err)
	}
	l.tick(t)
	if err := l.Apply(ctx, bindTo("/b", 1)); err != nil {
		t.Fatal(err)
	}
	said := strings.Join(l.Close(), "\n")
	for _, want := range []string{"/a: its CPUs are set, its pages had not begun to move", "bind /b to nodes 1: not begun", "still bound: /a: "} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in %q", want, said)
		}
	}
	for _, c := range []struct {
		stage actuate.Stage
		bound bool
		want  string
	}{
		{actuate.StageCPUs, false, "not set"},
		{actuate.StageAhead, false, "its pages were moving first"},
		{actuate.StageRestoring, true, "not all"},
		{actuate.StageRestoring, false, ""},
		{actuate.StageBound, true, ""},
	} {
		if got := left(c.stage, c.bound); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s, bound %v: %q", c.stage, c.bound, got)
		}
	}
}

// Once it has ended, nothing is read, planned or applied, whichever call was
// under way.
func TestTopAfterItsEnd(t *testing.T) {
	toy := newToy(t, "workload /a cpu=1 anon=100MiB,0 mems=0-1")
	l := testHost(t, toy)
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for range 64 { // the period is over too: select may take either case
		if _, err := l.Next(ended); err == nil {
			t.Fatal("it read a window after it was told to end")
		}
	}
	if err := l.Apply(ended, bindTo("/a", 1)); err == nil || l.journal != nil {
		t.Errorf("after the end: %v", err)
	}
	l.tick(t)
	l.Close()
	ctx := context.Background()
	l.next = time.Time{}
	_, err := l.Next(ctx)
	_, planned := l.Plan(ctx, bindTo("/a", 1))
	if applied := l.Apply(ctx, bindTo("/a", 1)); err == nil || planned == nil || applied == nil {
		t.Errorf("closed: %v, %v, %v", err, planned, applied)
	}
	if left, _ := os.ReadDir(l.cfg.StateDir); len(left) > 0 || toy.reads != 1 {
		t.Errorf("it left %v after %d reads", left, toy.reads)
	}
}

// unitOwner makes a manager set what is asked for, as systemd does for a unit.
type unitOwner struct{ toyOwner }

var cpusOfUnit = journal.Named(journal.OfUnit, "x.service", "AllowedCPUs")

func (o unitOwner) Plan(_ context.Context, s action.Step) ([]journal.Change, error) {
	return []journal.Change{{Setting: cpusOfUnit, New: s.CPUs.String()}}, nil
}

func (o unitOwner) Write(_ journal.Permit, s journal.Setting, v string) error {
	o.values[s] = v
	return nil
}

// A setting that another homenode asked a manager for is homenode's, not another
// program's limit, and an unbind says that it is restored.
func TestSetThroughAManagerIsOurs(t *testing.T) {
	const id = "/system.slice/x.service"
	ctx := context.Background()
	toy := newToy(t, "workload "+id+" cpu=1 anon=0,1MiB mems=0-1")
	first := testHost(t, toy)
	first.owner = unitOwner{toyOwner{toy}}
	first.tick(t)
	if err := first.Apply(ctx, bindTo(id, 1)); err != nil {
		t.Fatal(err)
	}
	first.tick(t)
	if !first.ours(id, "cpuset.cpus", "2-3") {
		t.Error("not its own")
	}
	first.Close()
	next := testHost(t, toy)
	next.cfg.StateDir, next.beside.Dir, next.owner = first.cfg.StateDir, first.cfg.StateDir, unitOwner{toyOwner{toy}}
	next.tick(t)
	if !next.ours(id, "cpuset.cpus", "2-3\n") || next.ours(id, "cpuset.cpus", "0-1") || next.ours("/b", "cpuset.cpus", "2-3") {
		t.Error("the first one's setting is taken for another program's")
	}
	lines, err := next.Plan(ctx, action.Action{Kind: action.Unbind, Workload: id})
	if err != nil || len(lines) != 2 || !strings.Contains(lines[0], `unit x.service AllowedCPUs = "" again`) {
		t.Errorf("%q, %v", lines, err)
	}
}

// A workload that ends while it is bound leaves no record: nothing of it is restored, and it
// is not listed as bound.
func TestTopForgetsTheGone(t *testing.T) {
	toy := newToy(t, "workload /a cpu=1 anon=0,1MiB mems=0-1", "workload /b cpu=1 anon=0,1MiB mems=0-1")
	l := testHost(t, toy)
	l.tick(t)
	for _, id := range []string{"/a", "/b"} {
		if err := l.Apply(context.Background(), bindTo(id, 1)); err != nil {
			t.Fatal(err)
		}
	}
	l.tick(t)
	toy.remove("/a")
	l.tick(t)
	if said := strings.Join(l.Close(), "\n"); !strings.Contains(said, "still bound: /b: ") || strings.Contains(said, "/a") {
		t.Errorf("said %q", said)
	}
}
