// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"homenode/internal/hub/deploy"
	"homenode/internal/hub/sensitivity"
	"homenode/internal/model/gain"
	"homenode/internal/store"
)

const modelFile = "../model/gain/testdata/gain.json"

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// small is a store of a few services on twelve hosts. Those named shop are what the model finds worth
// binding, db is what it knows too little of.
type small struct {
	model *gain.Model
	names []string
	wide  string // a service whose replicas fit on no node
	err   error
}

// worthy are features that the model finds worth binding.
var worthy = map[string]float64{gain.MSR: 0.6, gain.MBW: 2e9, gain.NPMR: 0.9}

func (s *small) Ask(_ context.Context, q store.Question) (store.Table, error) {
	if s.err != nil {
		return store.Table{}, s.err
	}
	t := store.Table{}
	columns := func(names ...string) {
		for _, n := range names {
			t.Columns = append(t.Columns, store.Column{Name: n})
		}
	}
	switch q.Topic {
	case store.Features:
		columns("service", "bound_ratio", "instances", "hosts")
		for _, f := range s.model.Features {
			columns(f.Name)
		}
		for _, name := range s.names {
			row := []any{name, 0.0, int64(12), int64(12)}
			for _, f := range s.model.Features {
				x, ok := worthy[f.Name]
				switch {
				case strings.HasPrefix(name, "db"):
					row = append(row, nil)
				case ok:
					row = append(row, x)
				default:
					row = append(row, f.Median)
				}
			}
			t.Rows = append(t.Rows, row)
		}
	case store.Instances:
		columns("host", "workload", "latency_s", "latency_how", "bound_ratio")
		for i := range 12 {
			t.Rows = append(t.Rows, []any{fmt.Sprint("host-", i), "/" + q.Service, 0.01, "measured", 0.0})
		}
	case store.Nodes:
		columns("node", "cpus", "memory_bytes")
		t.Rows = [][]any{{int64(0), 16.0, 64e9}, {int64(1), 16.0, 64e9}}
	case store.Workloads:
		columns("service", "cpus", "anon_by_node", "file_by_node", "bound")
		for _, name := range s.names {
			cpus := 2.0
			if name == s.wide {
				cpus = 20
			}
			t.Rows = append(t.Rows, []any{name, cpus, "1e9 1e9", "0 0", ""})
		}
	}
	return t, nil
}

// choosing is a chooser over a new folder.
func choosing(t *testing.T, rules Start, names ...string) (*Chooser, *small, *bytes.Buffer) {
	t.Helper()
	m, err := gain.Open(modelFile, os.ReadFile)
	if err != nil {
		t.Fatal(err)
	}
	f, err := deploy.OpenFolder(filepath.Join(t.TempDir(), "rollouts"), true)
	if err != nil {
		t.Fatal(err)
	}
	if rules.AtOnce == 0 {
		rules.AtOnce = 10
	}
	rules.Indicator = deploy.Latency
	s, log := &small{model: m, names: names}, &bytes.Buffer{}
	return &Chooser{Folder: f, Store: s, Model: func() (*gain.Model, error) { return m, nil }, Rules: rules, Now: func() time.Time { return noon },
		Named: func(string) (bool, error) { return false, nil }, Log: slog.New(slog.NewTextHandler(log, nil))}, s, log
}

func started(t *testing.T, c *Chooser) (names []string) {
	t.Helper()
	if err := c.Tick(t.Context()); err != nil {
		t.Fatal(err)
	}
	all, err := c.Folder.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		names = append(names, one.Service())
	}
	return names
}

// A hub starts what is on its list, is worth it and fits, no more at once than it may, and nothing
// that was rolled out before.
func TestChooser(t *testing.T) {
	c, _, log := choosing(t, Start{Services: []string{"shop-*", "db"}, AtOnce: 2, Least: 0.01}, "shop-a", "shop-b", "shop-c", "other", "db")
	if r, err := c.Ask(t.Context()); err != nil || r.Services[0].Verdict != sensitivity.Worth || r.Services[4].Verdict != sensitivity.Unknown {
		t.Fatalf("the model does not say what this test needs: %+v, %v", r.Services, err)
	}
	if got := started(t, c); !slices.Equal(got, []string{"shop-a", "shop-b"}) {
		t.Fatalf("started %q", got)
	}
	one, err := c.Folder.Get("shop-a")
	if err != nil || one.Asked[0].By != "the hub" || !strings.Contains(one.Asked[0].Why, "the model expects a gain of") || !strings.Contains(one.Asked[0].Why, "12 of 12 replicas") {
		t.Errorf("%+v, %v", one.Asked, err)
	}
	if got := started(t, c); len(got) != 2 {
		t.Errorf("two are under way, and it has %q", got)
	}
	for what, service := range map[string]string{"rollback": "shop-a", "veto": "shop-b"} {
		if err := c.Folder.Ask(t.Context(), service, deploy.Asked{At: noon, By: "ada", What: what}); err != nil {
			t.Fatal(err)
		}
	}
	if got := started(t, c); !slices.Equal(got, []string{"shop-a", "shop-b", "shop-c"}) {
		t.Errorf("after two have ended it has %q", got)
	}
	if one, _ := c.Folder.Get("shop-a"); !one.State.Ended() {
		t.Error("what was rolled back is tried again")
	}
	if n := strings.Count(log.String(), "rollout started"); n != 3 {
		t.Errorf("%d starts are logged:\n%s", n, log)
	}
}

// What stands against a start is said once, and nothing is started.
func TestChooserRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		rules  Start
		change func(*Chooser, *small)
		want   string
	}{
		"dry run":       {Start{DryRun: true}, func(*Chooser, *small) {}, "dry run, it would be started"},
		"does not fit":  {Start{}, func(_ *Chooser, s *small) { s.wide = "shop" }, "0 of 12 replicas would fit"},
		"by an order":   {Start{}, func(c *Chooser, _ *small) { c.Named = func(string) (bool, error) { return true, nil } }, "the file of orders names it"},
		"another list":  {Start{Services: []string{"web"}}, func(*Chooser, *small) {}, ""},
		"asks too much": {Start{Least: 0.9}, func(*Chooser, *small) {}, ""},
	} {
		if c.rules.Services == nil {
			c.rules.Services = []string{"shop"}
		}
		x, s, log := choosing(t, c.rules, "shop")
		c.change(x, s)
		for range 3 {
			if got := started(t, x); len(got) != 0 {
				t.Errorf("%s: started %q", name, got)
			}
		}
		if n := strings.Count(log.String(), "\n"); !strings.Contains(log.String(), c.want) || n > 1 || (n == 0) != (c.want == "") {
			t.Errorf("%s: %q is logged", name, log)
		}
	}
}

// Without its store, its model, the orders or a readable folder nothing is started.
func TestChooserErrors(t *testing.T) {
	broken := errors.New("away")
	for name, change := range map[string]func(*Chooser, *small){
		"store":  func(_ *Chooser, s *small) { s.err = broken },
		"model":  func(c *Chooser, _ *small) { c.Model = func() (*gain.Model, error) { return nil, broken } },
		"orders": func(c *Chooser, _ *small) { c.Named = func(string) (bool, error) { return false, broken } },
	} {
		c, s, _ := choosing(t, Start{Services: []string{"*"}}, "shop")
		change(c, s)
		if err := c.Tick(t.Context()); !errors.Is(err, broken) {
			t.Errorf("%s: %v", name, err)
		}
		if all, err := c.Folder.All(); err != nil || len(all) > 0 {
			t.Errorf("%s: %d rollouts, %v", name, len(all), err)
		}
	}
}

// A model that was replaced is read anew; one that is damaged is refused until it is whole.
func TestModelFile(t *testing.T) {
	dir := t.TempDir()
	copyModel := func() {
		for _, name := range []string{"gain.json", "gain.ubj", "gain.scale.ubj"} {
			data, err := os.ReadFile(filepath.Join(filepath.Dir(modelFile), name))
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, name), data, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	f := ModelFile{Manifest: filepath.Join(dir, "gain.json")}
	if _, err := f.Get(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("none: %v", err)
	}
	copyModel()
	first, err := f.Get()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := f.Get(); err != nil || again != first {
		t.Errorf("read again without a change, %v", err)
	}
	if err := os.WriteFile(f.Manifest, []byte(`{"schema": 9}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Get(); err == nil {
		t.Error("a newer manifest is taken")
	}
	copyModel()
	if m, err := f.Get(); err != nil || m == nil {
		t.Error(err)
	}
}
