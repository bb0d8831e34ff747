// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"homenode/internal/action"
	"homenode/internal/agent"
	"homenode/internal/agent/outbox"
	"homenode/internal/hub"
	"homenode/internal/hub/ca"
	"homenode/internal/hub/deploy"
	"homenode/internal/machine"
	"homenode/internal/rollout"
	"homenode/internal/sim"
	"homenode/internal/sim/catalog"
	"homenode/internal/sim/linux"
	"homenode/internal/store"
	"homenode/internal/store/sqlite"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// The clock of hosts, hub and rollouts: it stands still until the test goes on.
type slowClock struct {
	mu    sync.Mutex
	now   time.Time
	moved chan struct{}
}

func (c *slowClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *slowClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	close(c.moved)
	c.moved = make(chan struct{})
}

func (c *slowClock) Sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) {
	for until := c.Now().Add(d); ; {
		c.mu.Lock()
		now, moved := c.now, c.moved
		c.mu.Unlock()
		if !now.Before(until) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-wake:
			return
		case <-moved:
		}
	}
}

const (
	minute = time.Minute
	// late is how many minutes the hub's windows may be behind: they go with the orders of a minute,
	// and a sender that sleeps while the clock moves on is a minute late.
	late = 4
	// obeyed is how many minutes a host may take to do what it is told: its orders come with the
	// answer to its windows, its next round acts, and the window after that shows it.
	obeyed  = late + 2
	gaining = "gains"
	hurting = "hurts"
)

// slower is what a service's latency becomes where it is bound.
var slower = map[string]float64{gaining: 0.88, hurting: 1.15}

// follower is a simulated host with an agent of its own. What a service says of its latency is made up,
// so that one gains and one does not; the rest is the simulator's.
type follower struct {
	name   string
	world  *sim.World
	rounds chan struct{} // one for each window that its agent may read
	random *rand.Rand

	mu    sync.Mutex
	bound map[string]bool // by service, as of the last window
	agent *agent.Agent
	done  chan error
}

func newFollower(i int, at time.Time) (*follower, error) {
	b, _ := catalog.MachineNamed(catalog.DualSkylake)
	m, y := b.Make()
	specs := catalog.ServiceMix(m, y, 7)[:2]
	for k, name := range []string{gaining, hurting} {
		specs[k].Name = name
	}
	w, err := sim.NewWorld(sim.Config{Machine: m, System: y, Linux: linux.DefaultSettings(), Specs: specs, Seed: uint64(i), Start: at, Step: minute})
	return &follower{name: fmt.Sprintf("host-%02d", i), world: w, rounds: make(chan struct{}, 1), random: rand.New(rand.NewPCG(uint64(i), 1)), bound: map[string]bool{}}, err
}

func (s *follower) Read(ctx context.Context) (window.Window, error) {
	select {
	case <-ctx.Done():
		return window.Window{}, ctx.Err()
	case <-s.rounds:
	}
	s.world.Run(minute)
	w := s.world.Window()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range w.Workloads {
		wl := &w.Workloads[i]
		name := strings.TrimPrefix(wl.ID, "/")
		s.bound[name] = wl.Binding.OursCPUs
		latency := 0.01 * (1 + 0.02*s.random.NormFloat64())
		if s.bound[name] {
			latency *= slower[name]
		}
		wl.Latency = unit.Modelled(latency, "made up")
	}
	return w, nil
}

// Apply acts on the simulated host.
func (s *follower) Apply(_ context.Context, steps []action.Step, _ func(action.Outcome)) {
	s.world.Apply(steps)
}

func (s *follower) Machine() machine.Machine { return s.world.Config.Machine }

func (*follower) EventTable() string { return "the simulator" }

func (*follower) Close() {}

func (s *follower) isBound(service string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bound[service]
}

// run runs its agent until the context ends.
func (s *follower) run(ctx context.Context, dir string, clock *slowClock, more string) error {
	c, err := agent.ParseConfig(fmt.Appendf(nil, "period: 1m\ncalm_period: 1m\nservices:\n  - {name: %s, match: /%[1]s}\n  - {name: %s, match: /%[2]s}\n%s", gaining, hurting, more), "")
	if err != nil {
		return err
	}
	c.StateDir, c.Hub = filepath.Join(dir, s.name), outboxOf(dir, s.name, filepath.Join(dir, s.name, "spool"))
	s.agent, err = agent.New(ctx, agent.Options{Config: c, Log: slog.New(slog.DiscardHandler), Play: s, PlayToHub: true, HubClock: outbox.Clock{Now: clock.Now, Sleep: clock.Sleep}})
	if err != nil {
		return err
	}
	s.done = make(chan error, 1)
	go func() { s.done <- s.agent.Run(ctx) }()
	return nil
}

// fleet is a hub with its rollouts, and servers.
type fleet struct {
	t       *testing.T
	clock   *slowClock
	servers []*follower
	folder  *deploy.Folder
	store   store.Store
	runner  deploy.Runner
	minutes uint64
	late    map[string]int // minutes for which a host has been bound without an order: host and service
	ever    map[string]map[string]bool
}

// inOrder are the names of a fleet's hosts, in the order in which a rollout binds them.
func inOrder(hosts int) (names []string) {
	p := rollout.Usual("x", nil)
	for i := range hosts {
		p.Replicas = append(p.Replicas, rollout.Replica{Host: fmt.Sprintf("host-%02d", i), Workload: "/x"})
	}
	for _, i := range p.Order() {
		names = append(names, p.Replicas[i].Host)
	}
	return names
}

// newFleet starts a hub and its servers. One of the first that a rollout binds excludes a service, one
// that comes later only watches.
func newFleet(t *testing.T, hosts int) *fleet {
	f := &fleet{t: t, clock: &slowClock{now: time.Now().Truncate(time.Hour), moved: make(chan struct{})}, late: map[string]int{}, ever: map[string]map[string]bool{gaining: {}, hurting: {}}}
	dir := prepare(t, "sqlite: DIR/status.db")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	authority, err := ca.Open(filepath.Join(dir, "ca"), true)
	must(err)
	f.store, err = sqlite.Open(t.Context(), filepath.Join(dir, "status.db"))
	must(err)
	t.Cleanup(func() { _ = f.store.Close() })
	f.folder, err = deploy.OpenFolder(filepath.Join(dir, "rollouts"), true)
	must(err)
	h := hub.New(f.store, hub.Options{Authority: authority, Names: []string{"127.0.0.1"}, Rollouts: ordersOf(f.folder), Now: f.clock.Now})
	t.Cleanup(h.Close)
	f.runner = deploy.Runner{Folder: f.folder, Store: f.store, Named: h.Named, Away: h.ValidFor, Now: f.clock.Now, Log: slog.New(slog.DiscardHandler)}
	listener, err := net.Listen("tcp", address(dir))
	must(err)
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- h.Run(ctx, listener, nil, nil, store.Usual) }()
	t.Cleanup(func() { stop(); must(<-served) })
	for i := range hosts {
		s, err := newFollower(i, f.clock.Now())
		must(err)
		pair, err := authority.Pair(s.name)
		must(errors.Join(err, os.WriteFile(filepath.Join(dir, s.name+".pem"), pair, 0o600)))
		more := map[string]string{inOrder(hosts)[0]: "excluded: [/" + gaining + "]\n", inOrder(hosts)[4]: "mode: observe\n"}[s.name]
		agents, end := context.WithCancel(t.Context())
		must(s.run(agents, dir, f.clock, more))
		t.Cleanup(func() { end(); must(<-s.done) })
		f.servers = append(f.servers, s)
	}
	return f
}

// pass is one minute of all hosts and of the hub.
func (f *fleet) pass() {
	f.t.Helper()
	f.clock.advance(minute)
	f.minutes++
	for _, s := range f.servers {
		s.rounds <- struct{}{}
	}
	for end := time.Now().Add(time.Minute); !f.heard(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			f.t.Fatalf("minute %d: the hub does not hear of all hosts", f.minutes)
		}
	}
	if err := f.runner.Tick(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
	f.obey()
}

// heard says that all agents have done their round, and that the hub has all windows but the late ones.
func (f *fleet) heard() bool {
	f.t.Helper()
	for _, s := range f.servers {
		if v, ok := s.agent.View(); !ok || v.Status.Rounds < f.minutes {
			return false
		}
	}
	if f.minutes < 6 {
		return true
	}
	t, err := f.store.SQL(f.t.Context(), "SELECT r.host, max(b.at) FROM batches b JOIN runs r ON r.id = b.run GROUP BY r.host", 1000)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, row := range t.Rows {
		if at, _ := row[1].(int64); at < f.clock.Now().Add(-late*minute).UnixMilli() {
			return false
		}
	}
	return len(t.Rows) == len(f.servers)
}

// obey: a host binds a service only while it is told to.
func (f *fleet) obey() {
	f.t.Helper()
	for service, ever := range f.ever {
		r, err := f.folder.Get(service)
		told := map[string]bool{}
		if err == nil {
			for i, on := range r.State.Bound() {
				told[r.State.Plan.Replicas[i].Host] = on || r.State.Phase == rollout.Done
			}
		}
		for _, s := range f.servers {
			key := s.name + " " + service
			if !s.isBound(service) || told[s.name] {
				f.late[key] = 0
			} else if f.late[key]++; f.late[key] > obeyed {
				f.t.Fatalf("minute %d: %s has %s bound, and was told not to %d minutes ago", f.minutes, s.name, service, f.late[key])
			}
			ever[s.name] = ever[s.name] || s.isBound(service)
		}
	}
}

func (f *fleet) count(service string) (n int) {
	for _, s := range f.servers {
		if s.isBound(service) {
			n++
		}
	}
	return n
}

func (f *fleet) start(service string) {
	f.t.Helper()
	p, err := deploy.Propose(f.t.Context(), f.store, service, deploy.Options{Bin: 5 * minute}, f.clock.Now())
	if err == nil {
		err = f.folder.Start(f.t.Context(), p.Rollout, deploy.Asked{At: f.clock.Now(), By: "the test", What: "start"}, 0)
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// Real agents over a real wire follow two rollouts: one service is bound on all hosts but those that
// keep it from it themselves, the other is undone on the few that had it.
func TestAgentsFollowRollouts(t *testing.T) {
	const hosts = 9
	f := newFleet(t, hosts)
	for range 130 { // a rollout looks back for two hours
		f.pass()
	}
	if f.count(gaining)+f.count(hurting) > 0 {
		t.Fatal("something is bound that was never approved")
	}
	f.start(gaining)
	f.start(hurting)
	ended := func(service string) bool {
		r, err := f.folder.Get(service)
		if err != nil {
			t.Fatal(err)
		}
		return r.State.Ended()
	}
	most := 0
	for i := 0; !ended(gaining) || !ended(hurting); i++ {
		if most = max(most, f.count(hurting)); i > 12*60 {
			r, _ := f.folder.Get(gaining)
			t.Fatalf("no end after a day: %s", r.Words())
		}
		f.pass()
	}
	for range obeyed {
		f.pass()
	}
	gained, _ := f.folder.Get(gaining)
	hurt, _ := f.folder.Get(hurting)
	t.Logf("%d minutes; %s: %s; %s: %s; at most %d hosts had it", f.minutes, gaining, gained.Words(), hurting, hurt.Words(), most)
	if gained.State.Phase != rollout.Done || f.count(gaining) != hosts-2 || f.ever[gaining][inOrder(hosts)[0]] || f.ever[gaining][inOrder(hosts)[4]] {
		t.Errorf("%s is bound on %d of %d hosts: %s", gaining, f.count(gaining), hosts, gained.Words())
	}
	if events := gained.State.Events; len(events) < 2 || events[1].Code != rollout.Replaces {
		t.Errorf("a host of the first two excludes %s, and none took its place: %+v", gaining, events)
	}
	if hurt.State.Phase != rollout.RolledBack || f.count(hurting) != 0 || most == 0 || most > hosts/2 {
		t.Errorf("%s is bound on %d hosts and was on %d: %s", hurting, f.count(hurting), most, hurt.Words())
	}
}
