// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"homenode/internal/action"
	"homenode/internal/agent/outbox"
	"homenode/internal/control"
	"homenode/internal/journal"
	"homenode/internal/kernel"
	names "homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/hotness"
	"homenode/internal/kernel/migrate"
	"homenode/internal/kernel/unix"
	"homenode/internal/machine"
	"homenode/internal/owner/cgroup"
	"homenode/internal/policy/mao"
	"homenode/internal/set"
	"homenode/internal/store"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// dryRunDir is where a dry run keeps its status, below the state directory.
const dryRunDir = "dry-run"

// Options are the options of a run.
type Options struct {
	Config Config
	DryRun bool
	Rounds uint64 // number of rounds after which Run stops; 0: it runs until the context ends
	Log    *slog.Logger
	// Load reads the configuration again, for Reload. It is nil if there is no
	// file to read.
	Load func() (Config, error)
	// Relog changes the level and format of Log. It is nil if they cannot be
	// changed.
	Relog func(LogConfig)
	// Play replaces this host as the source of windows. Nothing of this host is acted
	// upon then, and no hub hears of it. A simulated host, which is a control.Applier,
	// gets the steps.
	Play Reader
	// PlayToHub sends what is played to the configuration's hub all the same. Its certificate
	// must be that of a host that exists only here.
	PlayToHub bool
	// HubClock is what sending and orders go by; the zero value is the host's clock.
	HubClock outbox.Clock
	// Handed is what the program before this one handed over, in the same process; nil: it
	// was started anew.
	Handed []byte
	// Exec replaces this program and hands data over. It returns only if that failed. Nil:
	// this agent cannot be replaced.
	Exec func(data []byte) error
	// Next asks the program that Exec would start whether it would start with the
	// configuration that is there now. Nil: there is no file to read.
	Next func(ctx context.Context) (Check, error)
}

// applier is the journal, or a dry run in its place.
type applier interface {
	Apply(ctx context.Context, step action.Step) action.Outcome
}

// Reader is kernel.Reader, a recording, or a fake.
type Reader interface {
	Read(ctx context.Context) (window.Window, error)
	Machine() machine.Machine
	EventTable() string
	Close()
}

// Agent runs the loop. Only View, Health, Config, Reload, Exclude and Include are safe
// for concurrent use.
type Agent struct {
	o       Options
	reader  Reader
	owner   journal.Owner
	journal *journal.Journal // nil in a dry run
	apply   applier
	status  Status

	beside  *Beside // only in a dry run
	control control.Loop
	quiet   int  // consecutive windows without a step
	alarmed bool // the last decision leaves open whether a neighbour must be isolated

	policy   mao.State
	reasons  []action.Reason // of this round
	deciding time.Time       // when this round's decision began
	past     map[string][]Decision

	restoreAnew func(context.Context) ([]journal.Restored, error) // nil means restoreSettings

	files    files
	outbox   *outbox.Outbox   // nil: nothing is sent
	decided  []store.Decision // of this round, for the hub
	rests    string           // why nothing is offered to it
	offers   int              // windows that a dry run had for it
	offered  store.Batch      // what the last round offered it
	readers  int              // the group that may read what the agent writes; 0: root alone
	totals   Totals
	sum      summing       // only in a dry run
	counting time.Time     // when the log last said that nothing is counted
	tried    bool          // the reader was asked whether it would count
	near     []set.NodeSet // parallel to Config.Services
	latency  latencies
	hot      unix.Patience // for processes that are searched for hot pages
	labels   names.Labeller
	pulse    pulse
	reported map[string]bool // problems of the last window
	view     atomic.Pointer[View]
	wake     chan struct{} // a new configuration, an exclusion, or a handover waits
	leaving  atomic.Bool   // the next round's end hands over

	mu       sync.Mutex
	pending  *Config // the next round takes it
	started  Config  // the last configuration that was taken or is pending
	excluded map[string]time.Time
	reloads  struct {
		done, failed uint64
		last         *Reloaded
	}
}

// New prepares an agent. It takes the journal's lock, restores what a killed
// agent left, and opens the counters. If something it needs is missing, the
// error says what, where, and what to do.
func New(ctx context.Context, o Options) (*Agent, error) {
	a := &Agent{o: o, past: map[string][]Decision{}, wake: make(chan struct{}, 1)}
	if err := a.open(ctx); err != nil {
		a.close()
		return nil, err
	}
	a.status = Status{
		Schema: statusSchema, PID: os.Getpid(), DryRun: o.DryRun, Mode: a.o.Config.Mode, Started: time.Now().Round(0), Period: o.Config.Period,
		Machine: a.reader.Machine().Origin, EventTable: a.reader.EventTable(), Recovered: a.status.Recovered,
		Rounds: a.status.Rounds, Window: a.status.Window,
	}
	a.started = a.o.Config
	a.pulse.begin(time.Now(), o.Config.Period, a.journal != nil || o.DryRun || o.Play != nil || a.observing())
	a.tellLimits()
	a.tellUnread()
	a.openFiles()
	if err := a.openOutbox(); err != nil {
		a.close()
		return nil, err
	}
	a.readHistory()
	a.resolveNear()
	return a, nil
}

func (a *Agent) open(ctx context.Context) error {
	if a.o.Play != nil {
		a.reader, a.apply, a.labels.Off = a.o.Play, asIfDone{}, true
		to := a.o.Config.Hub.Address
		a.o.Config = playConfig(a.o.Config)
		if a.o.PlayToHub {
			a.o.Config.Hub.Address = to
		}
		return os.MkdirAll(a.o.Config.StateDir, 0o755)
	}
	if !a.observing() {
		if err := a.openOwner(); err != nil {
			return err
		}
	}
	c := a.o.Config
	rc := kernel.Config{Roots: c.Cgroups, UserOnly: c.UserOnly, Events: c.Events, Ticks: c.Ticks, Hints: c.Hints, Watched: a.watched}
	rc.Resctrl.Service = a.serviceOf
	handed := a.readHanded()
	rc.Seq = handed.seq()
	openApplier := a.openJournal
	if a.o.DryRun {
		openApplier = a.openDryRun
	} else if a.observing() {
		openApplier = a.openObserver
	}
	if err := openApplier(ctx, &rc, handed); err != nil {
		return err
	}
	reader, err := kernel.NewReader(rc)
	if err != nil {
		return err
	}
	a.reader = reader
	return nil
}

// tellUnread logs which deployments of this host approve nothing, since they cannot be read.
func (a *Agent) tellUnread() {
	for _, problem := range a.o.Config.Unread {
		a.o.Log.Error("deployments", "error", problem)
	}
}

func (a *Agent) openOwner() error {
	mover, shared, err := NewMover()
	if err != nil {
		return err
	}
	if !shared {
		a.o.Log.Warn("pages that several processes map stay where they are: that needs CAP_SYS_NICE")
	}
	a.owner, err = OwnersWith(cgroup.Config{DirectOwners: a.o.Config.DirectOwners, Mover: mover, Hot: a.hotPages}, a.o.Config.Runtimes)
	if err != nil {
		return err
	}
	if kernel.ReadOnlyCgroups(kernel.Live().Root()) {
		a.o.Log.Warn("cgroups are mounted read-only: only what systemd, Docker or containerd manage can be bound")
	}
	return nil
}

// openDryRun keeps a dry run apart from an agent that may run on the same host: the
// dry run must not overwrite that agent's status.
func (a *Agent) openDryRun(_ context.Context, rc *kernel.Config, handed *handover) error {
	a.beside = &Beside{Dir: a.o.Config.StateDir}
	if err := a.beside.Look(); err != nil {
		return err
	}
	a.o.Config.StateDir = filepath.Join(a.o.Config.StateDir, dryRunDir)
	if err := os.MkdirAll(a.o.Config.StateDir, 0o755); err != nil {
		return fmt.Errorf("make state directory: %w", err)
	}
	a.o.Config = dryConfig(a.o.Config, a.o.Config.StateDir)
	a.apply, rc.Ours = journal.DryRun{Owner: a.owner}, a.beside.Ours
	a.takeOver(handed)
	return nil
}

// openJournal takes the journal's lock and restores what an earlier homenode left, unless
// this is the same process with another program.
func (a *Agent) openJournal(ctx context.Context, rc *kernel.Config, handed *handover) error {
	j, err := journal.Open(a.o.Config.StateDir)
	if err != nil {
		return err
	}
	a.journal = j
	if why := handed.refuse(j, a.o.Config); why != "" {
		a.o.Log.Warn("what the program before handed over is not used: what it set is put back", "why", why)
		handed = nil
	}
	if handed != nil {
		a.takeOver(handed)
	} else if err := a.recover(ctx); err != nil {
		return err
	}
	a.apply = j.Wrap(a.owner)
	rc.Ours, rc.Resctrl.Live = j.Ours, kernel.Live() // the lock is held, so resctrl groups may be created
	return nil
}

// watched says whether a workload's events are counted first if not all workloads can be
// counted: those that are bound or may be bound. The reader calls it within a round.
func (a *Agent) watched(id string) bool {
	_, approved := a.serviceOf(id)
	_, bound := a.control.Jobs().Job(id)
	return approved || bound
}

// hotGrain is the size of a transparent huge page. Half a second finds a few
// thousand places. With this grain they cover most of a working set of a few
// GB.
const hotGrain = 2 * unit.MiB

// hotPages finds out which pages are accessed. It looks for a quarter of the
// period, and at most half a second, because moving waits for it. It uses only PMU
// samples: all other ways take longer, or change what the kernel itself acts on.
func (a *Agent) hotPages(ctx context.Context, pids []int) (migrate.Hot, error) {
	look := hotness.Config{For: min(a.o.Config.Period/4, 500*time.Millisecond), Sources: []string{hotness.Samples}, Grain: hotGrain}
	pages, err := a.findHot(ctx, pids, look)
	if err != nil {
		a.o.Log.Debug("hot pages are unknown: pages move in the order of their addresses", "error", err)
		return nil, err
	}
	a.o.Log.Info("hot pages move first", "processes", len(pids), "bytes", pages.Heat().Bytes)
	return pages, nil
}

// findHot gives up when a process whose memory map is locked does not answer.
func (a *Agent) findHot(ctx context.Context, pids []int, look hotness.Config) (hotness.Pages, error) {
	over := time.NewTimer(look.For + hotLimit)
	defer over.Stop()
	var pages hotness.Pages
	var failed error
	if _, err := a.hot.Do(pids, over.C, func() { pages, failed = hotness.Find(ctx, kernel.Live(), pids, look) }); err != nil {
		return hotness.Pages{}, fmt.Errorf("find hot pages: %w", err) // it may still write the others
	}
	return pages, failed
}

// hotLimit is how long opening samples and reading the processes' mappings may take beside
// the look itself. Longer holds up the round; shorter gives up on a busy host, where pages
// then move in any order.
const hotLimit = 2 * time.Second

func (a *Agent) close() {
	a.closeFiles()
	a.closeOutbox()
	if a.reader != nil {
		a.reader.Close()
	}
	if a.journal != nil {
		_ = a.journal.Close() // every record was fsynced when it was written
	}
}

// DryRun says that the agent decides and reports, and changes nothing.
func (a *Agent) DryRun() bool { return a.o.DryRun }

// Close releases what New opened. Call it if Run will not be called.
func (a *Agent) Close() { a.close() }
