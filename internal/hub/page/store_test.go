// SPDX-License-Identifier: Apache-2.0

package page

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"homenode/internal/hub/fleettest"
	"homenode/internal/hub/query"
	"homenode/internal/store"
	"homenode/internal/store/sqlite"
)

// filled is a real store with a fleet in it.
func filled(t *testing.T, f fleettest.Fleet, windows int) store.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "status.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	for h := range f.Hosts {
		if n, err := s.Add(t.Context(), []store.Batch{f.Batch(h, windows)}); err != nil || n != 1 {
			t.Fatalf("%d batches were new: %v", n, err)
		}
	}
	return s
}

// The fake has the columns of the store, so what was looked at with the one holds with the
// other; and every page of a real store has what the fleet has.
func TestRealStore(t *testing.T) {
	f := fleet(24, 20)
	f.Until = noon.Add(-time.Minute)
	s := filled(t, f.Fleet, 6)
	topics := 0
	for _, topic := range store.Topics {
		q := store.Question{Topic: topic, From: noon.Add(-24 * time.Hour), Until: noon}
		switch topic {
		case store.Instances:
			q.Service = f.Service(0)
		case store.Workloads, store.Nodes:
			q.Host = f.Host(0)
		case store.History:
			q.Service = f.Service(0)
		}
		real, err := s.Ask(t.Context(), q)
		if err != nil {
			t.Error(err)
			continue
		}
		made, err := f.Ask(t.Context(), q)
		if err != nil {
			t.Error(err)
			continue
		}
		topics++
		units := map[string]string{}
		for _, c := range real.Columns {
			units[c.Name] = c.Unit
		}
		for _, c := range made.Columns {
			if unit, ok := units[c.Name]; !ok || unit != c.Unit {
				t.Errorf("%s: the fake's column %s %q; the store has %q, %v", topic, c.Name, c.Unit, unit, ok)
			}
		}
		if len(real.Rows) == 0 {
			t.Errorf("%s: no rows", topic)
		}
	}
	if topics != len(store.Topics) {
		t.Errorf("%d topics were compared", topics)
	}
	h := handlerOf(s)
	for name, want := range map[string]string{
		"services": "catalogue", "sorted": "gain", "filtered": "search-index", "service": "/kubepods.slice/search-index-", "hosts": "24 hosts by distance", "host": "node 1",
		"hostile": "evil-", "workload": "Local access ratio", "events": "Node 1 has room", "unbound": "Its node was busy", "health": "192.0.2.7",
	} {
		target := pages(f)[name]
		if name == "sorted" { // from the first row on
			target = "/?since=7d&sort=-saved_cpu_s"
		}
		if name == "workload" {
			target = address("/workload", "host", f.Host(0), "workload", f.Workload(0, 0))
		}
		got := get(h, target)
		if got.Code != http.StatusOK || !strings.Contains(got.Body.String(), want) || strings.Contains(got.Body.String(), "alert(1)<") {
			t.Errorf("%s: %d, no %q in %.3000s", target, got.Code, want, got.Body)
		}
		if err := checkXML(got.Body.String()); err != nil {
			t.Errorf("%s: %v", target, err)
		}
	}
}

// The dashboard's questions are answered by the API with the columns that its panels show.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile("../../../deploy/grafana/fleet.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct {
				URL     string
				Columns []struct{ Selector string }
			}
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	f := fleettest.Fleet{Hosts: 6, Each: 20, Until: noon.Add(-time.Minute), Length: 10 * time.Second}
	api := query.Handler(query.Options{Store: filled(t, f, 2), Now: func() time.Time { return noon }})
	variables := strings.NewReplacer("${__from:date:iso}", "2026-11-24T12:00:00.000Z", "${__to:date:iso}", "2026-11-25T12:00:00.000Z",
		"${service:percentencode}", url.QueryEscape(f.Service(0)), "${host:percentencode}", url.QueryEscape(f.Host(5)))
	targets := 0
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			targets++
			w := httptest.NewRecorder()
			api.ServeHTTP(w, httptest.NewRequest("GET", variables.Replace(target.URL), nil))
			var a query.Answer
			if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil || w.Code != http.StatusOK || len(a.Rows) == 0 {
				t.Errorf("%s: %s: %d %.300s", p.Title, target.URL, w.Code, w.Body)
				continue
			}
			for _, c := range target.Columns {
				if _, ok := a.Rows[0][c.Selector]; !ok {
					t.Errorf("%s: %s has no column %s", p.Title, target.URL, c.Selector)
				}
			}
		}
	}
	if targets < 7 {
		t.Errorf("%d questions were asked", targets)
	}
}
