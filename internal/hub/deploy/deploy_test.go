// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"homenode/internal/rollout"
	"homenode/internal/store"
	"homenode/internal/unit"
)

var noon = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

// fleet is a store of a service with a replica on each of its hosts. It shows what hosts that follow
// the folder's orders would show.
type fleet struct {
	hosts  int
	effect float64
	folder *Folder
	r      *rand.Rand
	err    error
	change func(row []any) []any // of Instances: host, workload, manager, latency, how, bound
	asked  int
}

func (f *fleet) Ask(_ context.Context, q store.Question) (store.Table, error) {
	t := store.Table{}
	if q.Topic == store.Gain {
		t.Columns = []store.Column{{Name: "saved_ratio"}, {Name: "saved_how"}, {Name: "local_ratio"}}
		t.Rows = [][]any{{0.2, "estimated", 0.4}}
		return t, f.err
	}
	if q.Topic == store.Nodes || q.Topic == store.Workloads {
		return roomy(q.Topic), f.err
	}
	f.asked++
	for _, name := range []string{"host", "workload", "owner", "latency_s", "latency_how", "bound_ratio"} {
		t.Columns = append(t.Columns, store.Column{Name: name})
	}
	day := 1 + 0.3*math.Sin(q.From.Sub(noon).Hours()/4)
	for i := range f.hosts {
		host := fmt.Sprint("host-", i)
		bound := false
		for _, o := range f.folder.Orders(host) {
			bound = bound || o.Service == q.Service && o.Approved
		}
		x := 0.01 * (1 + float64(i%7)/20) * (1 + 0.02*f.r.NormFloat64()) * day
		share := 0.0
		if bound {
			x, share = x*(1+f.effect), 1
		}
		row := []any{host, "/shop\xff", "kubelet", x, "measured", share}
		if f.change != nil {
			row = f.change(row)
		}
		if row != nil {
			t.Rows = append(t.Rows, row)
		}
	}
	return t, f.err
}

// roomy is a host with room for its one replica.
func roomy(topic store.Topic) store.Table {
	if topic == store.Nodes {
		return nodesTable([]any{int64(0), 16.0, 64e9}, []any{int64(1), 16.0, 64e9})
	}
	return loadsTable([]any{"shop", 2.0, "1000000 2000000", "0 0", ""})
}

// tried is a hub's part of a rollout, with a clock of its own.
type tried struct {
	*Runner
	fleet *fleet
	now   time.Time
	named bool
}

func try(t *testing.T, hosts int, effect float64) *tried {
	t.Helper()
	f, err := OpenFolder(filepath.Join(t.TempDir(), "rollouts"), true)
	if err != nil {
		t.Fatal(err)
	}
	x := &tried{fleet: &fleet{hosts: hosts, effect: effect, folder: f, r: rand.New(rand.NewPCG(1, 1))}, now: noon}
	x.Runner = &Runner{Folder: f, Store: x.fleet, Now: func() time.Time { return x.now }, Log: slog.New(slog.DiscardHandler), Named: func(string) (bool, error) { return x.named, nil }}
	return x
}

func (x *tried) start(t *testing.T) {
	t.Helper()
	p, err := Propose(t.Context(), x.fleet, "shop", Options{}, x.now)
	if err == nil {
		err = x.Folder.Start(t.Context(), p.Rollout, Asked{At: x.now, By: "test", What: "start"}, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// run lets bins pass until the rollout has ended, each with a new program.
func (x *tried) run(t *testing.T, most int) Rollout {
	t.Helper()
	for range most {
		x.now = x.now.Add(10 * time.Minute)
		f, err := OpenFolder(x.Folder.dir, true)
		if err != nil {
			t.Fatal(err)
		}
		x.Folder, x.fleet.folder = f, f
		if err := x.Tick(t.Context()); err != nil {
			t.Fatal(err)
		}
		if x.get(t).State.Ended() {
			break
		}
	}
	return x.get(t)
}

func (x *tried) get(t *testing.T) Rollout {
	t.Helper()
	r, err := x.Folder.Get("shop")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// approved is how many hosts may bind the service.
func (x *tried) approved() (n int) {
	for i := range x.fleet.hosts {
		for _, o := range x.Folder.Orders(fmt.Sprint("host-", i)) {
			if o.Approved {
				n++
			}
		}
	}
	return n
}

func last(r Rollout) rollout.Code {
	if n := len(r.State.Events); n > 0 {
		return r.State.Events[n-1].Code
	}
	return ""
}

// A gain is completed on all hosts, harm and nothing at all are undone. A hub that is another
// program in each bin goes on where the last one was.
func TestWays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		effect   float64
		phase    rollout.Phase
		code     rollout.Code
		approved int
	}{{-0.15, rollout.Done, rollout.Complete, 40}, {0.15, rollout.RolledBack, rollout.Harm, 0}, {0, rollout.RolledBack, rollout.NoGain, 0}} {
		t.Run(string(c.code), func(t *testing.T) {
			t.Parallel()
			x := try(t, 40, c.effect)
			x.start(t)
			r := x.run(t, 1000)
			if r.State.Phase != c.phase || last(r) != c.code || x.approved() != c.approved {
				t.Errorf("effect %v: %s, %s, approved on %d hosts, want %s, %s, %d", c.effect, r.State.Phase, last(r), x.approved(), c.phase, c.code, c.approved)
			}
			if r.How != unit.HowMeasured {
				t.Errorf("effect %v: known as %v", c.effect, r.How)
			}
			for _, e := range r.State.Events {
				if text := r.Sentence(e); strings.HasPrefix(text, "rolled back: "+string(e.Code)) || text == "" {
					t.Errorf("%s is told as %q", e.Code, text)
				}
			}
		})
	}
}

// Only hosts of the stage are told to bind, all others are told not to.
func TestOrdersOfAStage(t *testing.T) {
	t.Parallel()
	x := try(t, 40, -0.15)
	x.start(t)
	if n := x.approved(); n != 0 {
		t.Errorf("before: approved on %d hosts", n)
	}
	if orders := x.Folder.Orders("another"); len(orders) != 1 || orders[0].Approved {
		t.Errorf("a host without replicas: %+v", orders)
	}
	r := x.run(t, 13) // a bin is read two minutes after its end
	if n := x.approved(); n != 4 || r.State.BoundCount() != 4 || last(r) != rollout.Starts {
		t.Errorf("approved on %d hosts, %d bound, %s", n, r.State.BoundCount(), last(r))
	}
	r = x.run(t, 2)
	if n, ok := r.Observed.Get(); !ok || n != 4 {
		t.Errorf("observed: %v", r.Observed)
	}
}

// What a rollout cannot go on with is undone.
func TestUndone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(*tried)
		code  rollout.Code
	}{
		"figures end": {func(x *tried) { x.fleet.change = func(row []any) []any { row[3] = nil; return row } }, rollout.Silence},
		"they are no numbers": {func(x *tried) {
			x.fleet.change = func(row []any) []any { row[3] = math.NaN(); return row }
		}, rollout.Silence},
		"the service is gone": {func(x *tried) { x.fleet.change = func([]any) []any { return nil } }, rollout.Silence},
		"another unit": {func(x *tried) {
			x.fleet.change = func(row []any) []any { row[3] = row[3].(float64) * 1000; return row }
		}, rollout.NewUnit},
		"the owner":          {func(x *tried) { x.ask("veto") }, rollout.Veto},
		"an operator":        {func(x *tried) { x.ask("rollback") }, rollout.Operator},
		"the file of orders": {func(x *tried) { x.named = true }, rollout.Operator},
		"the hub was away":   {func(x *tried) { x.now = x.now.Add(90 * time.Minute) }, rollout.Away},
		"the store was away": {func(x *tried) {
			x.fleet.err = errors.New("no answer")
			for range 8 {
				x.now = x.now.Add(10 * time.Minute)
				_ = x.Tick(context.Background())
			}
			x.fleet.err = nil
		}, rollout.Away},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := try(t, 40, -0.03)
			x.start(t)
			if r := x.run(t, 14); r.State.BoundCount() == 0 {
				t.Fatalf("nothing is bound: %s", last(r))
			}
			c.spoil(x)
			if r := x.run(t, 5); last(r) != c.code || x.approved() != 0 {
				t.Errorf("%s, approved on %d hosts, want %s", last(r), x.approved(), c.code)
			}
		})
	}
}

func (x *tried) ask(what string) {
	if err := x.Folder.Ask(context.Background(), "shop", Asked{At: x.now, By: "test", What: what}); err != nil {
		panic(err)
	}
}

// An indicator that never changes measures nothing: nothing is bound.
func TestConstant(t *testing.T) {
	t.Parallel()
	x := try(t, 40, 0)
	x.fleet.change = func(row []any) []any { row[3] = 0.01; return row }
	x.start(t)
	if r := x.run(t, 20); last(r) != rollout.Constant || x.approved() != 0 || len(r.State.Events) != 1 {
		t.Errorf("%v", r.State.Events)
	}
}

// Bins that passed without a look are taken, and nothing is decided by them.
func TestShortAbsence(t *testing.T) {
	t.Parallel()
	x := try(t, 40, -0.15)
	x.start(t)
	before := x.run(t, 14)
	x.now = x.now.Add(30 * time.Minute)
	r := x.run(t, 1)
	if len(r.State.Seen) != len(before.State.Seen)+4 || r.State.Ended() || r.State.Looks > before.State.Looks+1 {
		t.Errorf("%d bins after %d, %d looks after %d, %s", len(r.State.Seen), len(before.State.Seen), r.State.Looks, before.State.Looks, last(r))
	}
	if r = x.run(t, 1000); r.State.Phase != rollout.Done {
		t.Errorf("%s", last(r))
	}
}

// Several hubs over one folder take each bin once.
func TestReplicasOfTheHub(t *testing.T) {
	t.Parallel()
	x := try(t, 12, -0.2)
	x.start(t)
	var hubs []*Runner
	for range 4 {
		f, err := OpenFolder(x.Folder.dir, true)
		if err != nil {
			t.Fatal(err)
		}
		hubs = append(hubs, &Runner{Folder: f, Store: &fleet{hosts: 12, folder: f, r: rand.New(rand.NewPCG(1, 1))}, Now: x.Now, Log: x.Log, Named: x.Named})
	}
	for range 30 {
		x.now = x.now.Add(10 * time.Minute)
		var all errgroup.Group
		for _, h := range hubs {
			all.Go(func() error { return h.Tick(t.Context()) })
		}
		if err := all.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	if r := x.get(t); len(r.State.Seen) != 29 {
		t.Errorf("%d bins, want 29: one was read twice, or not at all", len(r.State.Seen))
	}
}

func TestPlanRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		service string
		o       Options
		spoil   func(*fleet)
		want    string
	}{
		"no name":       {"", Options{}, nil, "name of a service"},
		"no text":       {"a\xff", Options{}, nil, "name of a service"},
		"few hosts":     {"shop", Options{}, func(f *fleet) { f.hosts = 5 }, "want 6 hosts"},
		"none":          {"shop", Options{}, func(f *fleet) { f.hosts = 0 }, "none of its instances"},
		"margin":        {"shop", Options{Margin: 2}, nil, "margin"},
		"no number":     {"shop", Options{Margin: math.NaN()}, nil, "margin"},
		"bin":           {"shop", Options{Bin: time.Second}, nil, "5m0s to 1h0m0s"},
		"no figures":    {"shop", Options{Indicator: IPC}, nil, "--indicator"},
		"bound already": {"shop", Options{}, func(f *fleet) { f.change = func(row []any) []any { row[5] = 0.1; return row } }, "nothing to compare with"},
		"store is away": {"shop", Options{}, func(f *fleet) { f.err = errors.New("no answer") }, "no answer"},
	} {
		x := try(t, 12, 0)
		if c.spoil != nil {
			c.spoil(x.fleet)
		}
		if _, err := Propose(t.Context(), x.fleet, c.service, c.o, noon); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, no %q", name, err, c.want)
		}
	}
}

// A rollout is started once at a time, paused and resumed, and forgotten only when it has ended.
func TestRequests(t *testing.T) {
	t.Parallel()
	x := try(t, 40, -0.15)
	ask := func(what string) error {
		return x.Folder.Ask(t.Context(), "shop", Asked{At: x.now, By: "test", What: what})
	}
	if err := ask("pause"); !errors.Is(err, ErrNone) {
		t.Errorf("no rollout: %v", err)
	}
	x.start(t)
	p, err := Propose(t.Context(), x.fleet, "shop", Options{}, x.now)
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Folder.Start(t.Context(), p.Rollout, Asked{}, 0); err == nil || !strings.Contains(err.Error(), "under way") {
		t.Errorf("twice: %v", err)
	}
	x.run(t, 14)
	if err := ask("pause"); err != nil {
		t.Error(err)
	}
	if ask("pause") == nil || x.Folder.Forget(t.Context(), "shop") == nil {
		t.Error("paused twice, or forgotten on its way")
	}
	if r := x.run(t, 150); r.State.Ended() || r.State.Stage != 0 {
		t.Errorf("paused: %v", r.State)
	}
	if err := ask("resume"); err != nil {
		t.Error(err)
	}
	if r := x.run(t, 1000); r.State.Phase != rollout.Done {
		t.Errorf("resumed: %v", r.State)
	}
	if err := ask("veto"); err != nil || x.approved() != 0 {
		t.Errorf("after its end: %v, approved on %d hosts", err, x.approved())
	}
	if err := x.Folder.Start(t.Context(), p.Rollout, Asked{}, 0); err == nil || !strings.Contains(err.Error(), "forget") {
		t.Errorf("vetoed: %v", err)
	}
	if err := x.Folder.Forget(t.Context(), "shop"); err != nil || len(x.Folder.Orders("host-1")) != 0 {
		t.Errorf("forgotten: %v", err)
	}
	x.start(t)
	x.ask("rollback")
	x.start(t)
	if r := x.get(t); len(r.Earlier) != 1 || r.Earlier[0].Code != rollout.Operator || len(r.Asked) != 3 {
		t.Errorf("%+v, %+v", r.Earlier, r.Asked)
	}
}

// A file that is damaged, or of another version, is an error that names it. Its service has no order,
// and others go on.
func TestDamagedFiles(t *testing.T) {
	t.Parallel()
	x := try(t, 12, 0)
	x.start(t)
	file := filepath.Join(x.Folder.dir, "shop.json")
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"cut":             string(good[:len(good)/2]),
		"empty":           "",
		"newer":           strings.Replace(string(good), `{"schema":1`, `{"schema":2`, 1),
		"another service": strings.Replace(string(good), `"service":"shop"`, `"service":"shap"`, 1),
		"short":           strings.Replace(string(good), `"bound_at":[-1,`, `"bound_at":[`, 1),
		"beyond":          strings.Replace(string(good), `"stage":-1`, `"stage":7`, 1),
		"not before":      strings.Replace(string(good), `"stage":-1`, `"stage":3`, 1),
		"no phase":        strings.Replace(string(good), `"phase":"before"`, `"phase":"between"`, 1),
		"bound before":    strings.Replace(string(good), `"bound_at":[-1`, `"bound_at":[0`, 1),
		"bound later":     strings.Replace(string(good), `"bound_at":[-1`, `"bound_at":[900`, 1),
		"tries":           strings.Replace(string(good), `"try_count":0`, `"try_count":-5`, 1),
		"times":           strings.Replace(string(good), `"event_times":null`, `"event_times":["2026-11-28T12:00:00Z"]`, 1),
	} {
		if text == string(good) {
			t.Fatalf("%s: nothing was changed", name)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := OpenFolder(x.Folder.dir, true)
		if err != nil {
			t.Fatal(err)
		}
		if all, err := f.All(); err == nil || !strings.Contains(err.Error(), "shop.json") || len(all) != 0 || len(f.Orders("host-1")) != 0 {
			t.Errorf("%s: %d rollouts, %v", name, len(all), err)
		}
		if err := f.Ask(t.Context(), "shop", Asked{What: "rollback"}); err == nil {
			t.Errorf("%s: rolled back", name)
		}
	}
}

// A file that cannot be read for now keeps the orders that were known, and is read again when it can be.
func TestFileThatCannotBeReadNow(t *testing.T) {
	t.Parallel()
	x := try(t, 40, -0.15)
	x.start(t)
	x.run(t, 13)
	file := filepath.Join(x.Folder.dir, "shop.json")
	aside := file + ".aside"
	if err := errors.Join(os.Rename(file, aside), os.Mkdir(file, 0o700)); err != nil {
		t.Fatal(err)
	}
	if _, err := x.Folder.All(); err == nil || x.approved() != 4 {
		t.Errorf("a folder in its place: %v, approved on %d hosts", err, x.approved())
	}
	if err := errors.Join(os.Remove(file), os.Rename(aside, file)); err != nil {
		t.Fatal(err)
	}
	if all, err := x.Folder.All(); err != nil || len(all) != 1 {
		t.Errorf("%d rollouts, %v", len(all), err)
	}
}

// What the hub's user puts in the place of the lock is not followed, nor given away.
func TestLockIsNoLink(t *testing.T) {
	t.Parallel()
	x := try(t, 12, 0)
	other := filepath.Join(t.TempDir(), "other")
	if err := errors.Join(os.WriteFile(other, nil, 0o600), os.Symlink(other, filepath.Join(x.Folder.dir, ".lock"))); err != nil {
		t.Fatal(err)
	}
	if err := x.Folder.Ask(t.Context(), "shop", Asked{What: "pause"}); err == nil || errors.Is(err, ErrNone) {
		t.Errorf("a link as lock: %v", err)
	}
}

// Hosts that do not bind what they were told to hold a rollout, and end it.
func TestHostsThatDoNotBind(t *testing.T) {
	t.Parallel()
	x := try(t, 40, 0)
	x.fleet.change = func(row []any) []any { row[5] = 0.0; return row }
	x.start(t)
	r := x.run(t, 20)
	if n, ok := r.Observed.Get(); !ok || n != 0 || !r.State.Held || r.State.Stage != 0 {
		t.Errorf("observed %v, held %t, stage %d", r.Observed, r.State.Held, r.State.Stage)
	}
	if r = x.run(t, 1000); last(r) != rollout.NotBound {
		t.Errorf("%s", last(r))
	}
}

// Where the file of orders cannot be read, hosts get none: nothing is decided, and a rollout ends once
// orders have ended at the hosts.
func TestOrdersThatCannotBeRead(t *testing.T) {
	t.Parallel()
	x := try(t, 40, -0.15)
	x.start(t)
	before := x.run(t, 14)
	x.Named = func(string) (bool, error) { return false, errors.New("malformed") }
	for range 8 {
		x.now = x.now.Add(10 * time.Minute)
		if x.Tick(t.Context()) == nil {
			t.Error("no error")
		}
	}
	if r := x.get(t); len(r.State.Seen) != len(before.State.Seen) {
		t.Errorf("%d bins after %d", len(r.State.Seen), len(before.State.Seen))
	}
	x.Named = func(string) (bool, error) { return false, nil }
	if r := x.run(t, 1); last(r) != rollout.Away {
		t.Errorf("%s", last(r))
	}
}

// Times hold whatever the bins: a washout is ten minutes, silence half an hour, a stage a day.
func TestTimesOfBins(t *testing.T) {
	t.Parallel()
	for _, bin := range []time.Duration{5 * time.Minute, 7 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour} {
		x := try(t, 12, 0)
		p, err := Propose(t.Context(), x.fleet, "shop", Options{Bin: bin}, noon)
		if err != nil {
			t.Fatal(err)
		}
		plan := p.Rollout.State.Plan
		for name, c := range map[string]struct {
			bins int
			want time.Duration
		}{"washout": {plan.Washout, 10 * time.Minute}, "silence": {plan.Silent, 30 * time.Minute}, "before": {plan.Before, 2 * time.Hour}, "stage": {plan.Longest, 24 * time.Hour}} {
			if took := time.Duration(c.bins) * bin; took < c.want || took > c.want+max(bin, 3*bin-c.want, 4*bin-c.want) {
				t.Errorf("bins of %v: %s takes %v, want %v", bin, name, took, c.want)
			}
		}
	}
}

// What a program left that ended while it wrote is removed by the next that writes.
func TestLeftBehind(t *testing.T) {
	t.Parallel()
	x := try(t, 12, 0)
	left := filepath.Join(x.Folder.dir, ".new-123")
	if err := os.WriteFile(left, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	x.start(t)
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}
