// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"homenode/internal/golden"
	"homenode/internal/hub/fleettest"
	"homenode/internal/hub/query"
	"homenode/internal/model/gain"
	"homenode/internal/render"
	"homenode/internal/schema"
	"homenode/internal/store"
)

var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

func fleet(hosts, each int) *fleettest.Fake {
	return &fleettest.Fake{Fleet: fleettest.Fleet{Hosts: hosts, Each: each, Until: noon, Length: 10 * time.Second}}
}

func healthOf() Health {
	return Health{Facts: []render.Fact{{Name: "store", Text: "sqlite"}, {Name: "batches taken", Text: "1,234"}},
		Refusals: []Refusal{{At: noon, Host: `<b>evil</b>`, From: "192.0.2.7:1234", What: "future", Why: "a window ends 3 h from now\x1b[2J", Count: 12}}}
}

func handlerOf(s query.Asker) http.Handler {
	return Handler(Options{Store: s, Now: func() time.Time { return noon }, Rollouts: madeUp(), Model: modelOf, Health: healthOf})
}

func modelOf() (*gain.Model, error) {
	return gain.Open("../../model/gain/testdata/gain.json", os.ReadFile)
}

func get(h http.Handler, target string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", target, nil))
	return w
}

// address is a page about names.
func address(path string, pairs ...string) string {
	v := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		v.Set(pairs[i], schema.Name(pairs[i+1]))
	}
	return path + "?" + v.Encode()
}

// pages are one of each.
func pages(f *fleettest.Fake) map[string]string {
	last := f.Hosts - 1
	return map[string]string{
		"services": "/", "sorted": "/?since=7d&sort=-traffic_bytes&offset=10", "filtered": "/?q=search", "service": address("/service", "service", f.Service(0)),
		"hosts": "/hosts", "host": address("/host", "host", f.Host(0)), "hostile": address("/host", "host", f.Host(last)),
		"workload": address("/workload", "host", f.Host(last), "workload", f.Workload(last, 0)),
		"events":   "/events", "unbound": "/events?kind=unbound", "health": "/health",
		"gains": "/gains", "few-gains": "/gains?q=search", "rollouts": "/rollouts", "rollout": "/rollout?service=search", "harm": address("/rollout", "service", `evil-<script>"'&`),
	}
}

// The pages are what people have looked at.
func TestPages(t *testing.T) {
	f := fleet(12, 6)
	h := handlerOf(f)
	for name, target := range pages(f) {
		got := get(h, target)
		if got.Code != http.StatusOK {
			t.Errorf("%s: %d", target, got.Code)
		}
		golden.Check(t, "testdata/"+name+".html", got.Body.String())
	}
}

// A page is well-formed, whatever the names, has no script or style of its own, leads only to
// this hub, and comes with a policy.
func TestPagesAreSafe(t *testing.T) {
	f := fleet(12, 6)
	h := handlerOf(f)
	all := pages(f)
	all["missing"], all["bad"], all["hostile bad"] = "/nothing", "/?sort=colour", address("/", "sort", `"><script>`)
	for name, target := range all {
		got := get(h, target)
		text := got.Body.String()
		if policy := got.Header().Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s: policy %q", name, policy)
		}
		if err := checkXML(text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if strings.Contains(text, "\x1b") || strings.Contains(text, "alert(1)<") || strings.Contains(text, "\xff") {
			t.Errorf("%s has a name as it came", name)
		}
	}
}

// checkXML walks a page: elements end, and addresses are of this hub.
func checkXML(text string) error {
	d := xml.NewDecoder(strings.NewReader(text))
	d.Strict, d.Entity = true, xml.HTMLEntity
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		e, isStart := token.(xml.StartElement)
		if !isStart {
			continue
		}
		for _, a := range e.Attr {
			local := a.Name.Local
			if (local == "href" || local == "src" || local == "action") && !strings.HasPrefix(a.Value, "/") && !strings.HasPrefix(a.Value, "#") || strings.HasPrefix(a.Value, "//") || local == "style" || strings.HasPrefix(local, "on") {
				return errors.New("attribute " + local + "=" + a.Value)
			}
			if e.Name.Local == "script" && local == "src" && a.Value != "/fleet.js" {
				return errors.New("script " + a.Value)
			}
		}
	}
}

// All links of a page lead somewhere, and a page is the same when it is loaded again.
func TestLinksLead(t *testing.T) {
	f := fleet(12, 6)
	h := handlerOf(f)
	seen := map[string]bool{}
	queue := []string{"/"}
	for len(queue) > 0 && len(seen) < 400 {
		target := queue[0]
		queue = queue[1:]
		if seen[target] {
			continue
		}
		seen[target] = true
		got := get(h, target)
		if got.Code != http.StatusOK {
			t.Errorf("%s: %d", target, got.Code)
		}
		if again := get(h, target).Body.String(); again != got.Body.String() {
			t.Errorf("%s differs when it is loaded again", target)
		}
		d := xml.NewDecoder(got.Body)
		d.Entity = xml.HTMLEntity
		for {
			token, err := d.Token()
			if err != nil {
				break
			}
			if e, ok := token.(xml.StartElement); ok && e.Name.Local == "a" {
				for _, a := range e.Attr {
					if a.Name.Local == "href" && strings.HasPrefix(a.Value, "/") {
						queue = append(queue, a.Value)
					}
				}
			}
		}
	}
	if len(seen) < 100 {
		t.Errorf("only %d pages were found", len(seen))
	}
}

func TestRefusals(t *testing.T) {
	f := fleet(3, 2)
	h := handlerOf(f)
	for target, want := range map[string]int{
		"/nothing": 404, "/?sort=colour": 400, "/?since=soon": 400, "/?colour=red": 400, "/host": 400, "/service": 400, "/workload?host=a": 400, "/?offset=-1": 400, "/?%zz": 400,
		"/host?host=none": 200, "/?q=" + strings.Repeat("x", 300): 200, "/style.css": 200, "/fleet.js": 200,
	} {
		if got := get(h, target); got.Code != want {
			t.Errorf("%s: %d, want %d", target, got.Code, want)
		}
	}
	broken := Handler(Options{Store: f, Now: func() time.Time { return noon }, Model: func() (*gain.Model, error) { return nil, errors.New("the model is damaged\x1b") }})
	if got := get(broken, "/gains"); got.Code != http.StatusInternalServerError || !strings.Contains(got.Body.String(), "the model is damaged") || strings.Contains(got.Body.String(), "\x1b") {
		t.Errorf("%d: %s", got.Code, got.Body)
	}
	slow := Handler(Options{Store: stuck{}, Now: func() time.Time { return noon }, Timeout: time.Millisecond})
	if got := get(slow, "/"); got.Code != http.StatusGatewayTimeout || !strings.Contains(got.Body.String(), "choose a shorter time") {
		t.Errorf("%d: %s", got.Code, got.Body)
	}
}

// stuck does not answer.
type stuck struct{}

func (stuck) Ask(ctx context.Context, _ store.Question) (store.Table, error) {
	<-ctx.Done()
	return store.Table{}, ctx.Err()
}
func (stuck) SQL(context.Context, string, int) (store.Table, error) { return store.Table{}, nil }

// A page of 100,000 hosts with 20 workloads each is as small as one of a few, and asks as
// little.
func TestPagesAreBounded(t *testing.T) {
	f := fleet(100_000, 20)
	f.Services = 3000
	h := handlerOf(f)
	for name, target := range pages(f) {
		asked, rows := f.Asked.Load(), f.Rows.Load()
		got := get(h, target)
		asked, rows = f.Asked.Load()-asked, f.Rows.Load()-rows
		if size := got.Body.Len(); got.Code != http.StatusOK || size > 500_000 || asked > 5 || rows > 1000 {
			t.Errorf("%s: status %d, %d bytes, %d questions, %d rows", name, got.Code, size, asked, rows)
		} else {
			t.Logf("%s: %d bytes, %d questions, %d rows", name, size, asked, rows)
		}
	}
}
