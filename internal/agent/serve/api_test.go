// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"homenode/internal/action"
	"homenode/internal/agent"
	"homenode/internal/agent/decisions"
	"homenode/internal/kernel/unix"
	"homenode/internal/migration"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
	"homenode/internal/window/windowtest"
)

// fake is an agent that does what the test tells it.
type fake struct {
	view     *agent.View
	config   agent.Config
	health   agent.Health
	reloaded error
	excluded map[string]time.Time
	full     bool
}

func (f *fake) View() (agent.View, bool) {
	if f.view == nil {
		return agent.View{}, false
	}
	return *f.view, true
}
func (f *fake) Health() agent.Health { return f.health }
func (f *fake) Config() agent.Config { return f.config }
func (f *fake) Reload() (agent.Reloaded, error) {
	return agent.Reloaded{Changed: []string{"services"}, Waits: []string{"api"}}, f.reloaded
}
func (f *fake) Exclude(id string, until time.Time) bool {
	f.excluded[id] = until
	return !f.full
}
func (f *fake) Include(id string) bool {
	_, ok := f.excluded[id]
	delete(f.excluded, id)
	return ok
}

// full is an agent whose answers all have content.
func full(t *testing.T) *fake {
	t.Helper()
	var h windowtest.Host
	h.Shape([]int{0, 2}, 2, unit.GiB)
	for _, id := range []string{"/demo/a", "/demo/b"} {
		if _, err := h.Line("workload " + id + " approved cpu=1 cpus=0-3 mems=0,2 anon=1MiB,1MiB"); err != nil {
			t.Fatal(err)
		}
	}
	w := h.Window()
	reason := action.Reason{Rule: "mao.bind", Workload: "/demo/a", Numbers: []action.Number{{Name: "n", Value: unit.Measured(1.0, "t"), Limit: unit.Some(2.0)}},
		Alternatives: []action.Alternative{{Nodes: set.FromNodes(2), Chosen: true}}}
	w.Outcomes = []action.Outcome{{Step: action.Step{Kind: action.SetCPUs, Workload: "/demo/a", CPUs: set.FromCPUs(1), Reason: reason}, Status: action.Done}}
	until := time.Unix(2000, 0).UTC()
	s := agent.Status{Schema: 1, Started: until, Window: w, Excluded: []agent.Excluded{{Workload: "/demo/b", Until: until}}, Reload: &agent.Reloaded{At: until, Changed: []string{"mao"}},
		Totals: agent.Totals{Decisions: map[string]uint64{"bind": 1}, Steps: map[string]uint64{"set-cpus done": 1}}}
	for _, wl := range w.Workloads {
		s.Workloads = append(s.Workloads, agent.WorkloadStatus{ID: wl.ID, Service: "demo", Features: window.FeaturesOf(wl, w.Length), Reason: reason, Nodes: set.FromNodes(2),
			Pays: unit.Some(migration.Verdict{}), Past: []agent.Decision{{At: until, Seq: 1, Action: "bind", Reason: reason}}})
	}
	path := filepath.Join(t.TempDir(), "d.jsonl")
	f, err := decisions.OpenFile(decisions.FileOptions{Path: path, Max: unit.MiB})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for i := range 5 {
		if err := decisions.Write(f, decisions.Entry{Schema: decisions.Schema, At: time.Unix(int64(1000+i), 0).UTC(), Kind: action.Bind, Workload: "/demo/a", Service: "demo", Reason: reason}); err != nil {
			t.Fatal(err)
		}
	}
	a := &fake{view: &agent.View{Status: s, MaxWorkloads: 10, Decisions: path}, health: agent.Health{Alive: true, Ready: true}, excluded: map[string]time.Time{}}
	a.config.Decisions.Path = path
	return a
}

var quietLog = slog.New(slog.DiscardHandler)

func serverOf(t testing.TB, a Agent) *Server {
	t.Helper()
	s, err := NewServer(a, ServerOptions{Version: "test", Log: quietLog})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// ask sends a request as a peer; nil: over TCP.
func ask(s *Server, h http.Handler, p *unix.Peer, method, target string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	if p != nil {
		r = r.WithContext(context.WithValue(r.Context(), peerKey{}, *p))
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

var root, user = &unix.Peer{UID: 0}, &unix.Peer{UID: 1000, GID: 1000}

const idA = "%2Fdemo%2Fa"

func TestRoutes(t *testing.T) {
	a := full(t)
	s := serverOf(t, a)
	h := s.Handler()
	for i, c := range []struct {
		peer           *unix.Peer
		method, target string
		code           int
		want           string
	}{
		{user, "GET", "/v1/status", 200, `"schema":1`},
		{user, "GET", "/v1/workloads", 200, `"id":"/demo/b"`},
		{user, "GET", "/v1/workloads/" + idA + "/why", 200, `"earlier":[{`},
		{user, "GET", "/v1/workloads/a/why", 200, `"rule":"mao.bind"`},
		{user, "GET", "/v1/workloads/demo/why", 404, "could be any of"},
		{user, "GET", "/v1/workloads/" + strings.Repeat("x", 5000) + "/why", 404, "5000 bytes"},
		{user, "GET", "/v1/workloads/%00%ff/why", 404, "unknown workload"},
		{user, "GET", "/v1/workloads/..%2F..%2Fetc/why", 404, "unknown workload"},
		{user, "GET", "/v1/decisions?limit=2", 200, `"skipped":0`},
		{user, "GET", "/v1/decisions?since=1970-01-01T00:16:43Z", 200, `"1970-01-01T00:16:44Z"`},
		{user, "GET", "/v1/decisions?workload=/none", 200, `"decisions":[]`},
		{user, "GET", "/v1/decisions?limit=0", 400, "limit"},
		{user, "GET", "/v1/decisions?since=yesterday", 400, "yesterday"},
		{user, "GET", "/v1/decisions?%zz", 400, "malformed"},
		{user, "GET", "/v1/healthz", 200, `"alive":true`},
		{user, "GET", "/v1/readyz", 200, `"ready":true`},
		{user, "GET", "/metrics", 200, "homenode_ready 1"},
		{user, "GET", "/v1/openapi.json", 200, `"openapi":"3.1.0"`},
		{user, "GET", "/", 404, "openapi.json"},
		{user, "GET", "/v1/status/", 404, "no such path"},
		{user, "DELETE", "/v1/status", 405, "DELETE"},
		{user, "POST", "/v1/reload", 403, "write_group"},
		{user, "PUT", "/v1/workloads/a/exclusion?for=1h", 403, "write_group"},
		{nil, "POST", "/v1/reload", 403, "write_group"},
		{root, "POST", "/v1/reload", 200, `"waits_for_restart":["api"]`},
		{root, "PUT", "/v1/workloads/a/exclusion", 400, "1h30m"},
		{root, "PUT", "/v1/workloads/a/exclusion?for=9999h", 400, "744h"},
		{root, "PUT", "/v1/workloads/a/exclusion?for=1h", 200, `"workload":"/demo/a"`},
		{root, "DELETE", "/v1/workloads/" + idA + "/exclusion", 200, `"until":null`},
		{root, "DELETE", "/v1/workloads/" + idA + "/exclusion", 404, "not excluded"},
	} {
		if c.peer == user { // a user for each: costly answers to one are paced
			c.peer = &unix.Peer{UID: user.UID + uint32(i), GID: user.GID}
		}
		w := ask(s, h, c.peer, c.method, c.target)
		if w.Code != c.code || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s %.80s: %d %.300s, want %d with %q", c.method, c.target, w.Code, w.Body, c.code, c.want)
		}
		if media := w.Header().Get("Content-Type"); media != jsonMedia && !strings.HasSuffix(c.target, "metrics") {
			t.Errorf("%s %s: %s", c.method, c.target, media)
		}
	}
	a.reloaded = fmt.Errorf("%w: perod", agent.ErrConfig)
	if w := ask(s, h, root, "POST", "/v1/reload"); w.Code != 422 || !strings.Contains(w.Body.String(), "perod") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	a.full = true
	if w := ask(s, h, root, "PUT", "/v1/workloads/a/exclusion?for=1h"); w.Code != 507 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	a.reloaded = agent.ErrNoReload
	if w := ask(s, h, root, "POST", "/v1/reload"); w.Code != 409 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// Before the first round nothing is known, and health reports that with its code.
func TestRoutesBeforeTheFirstRound(t *testing.T) {
	s := serverOf(t, &fake{excluded: map[string]time.Time{}})
	h := s.Handler()
	for _, target := range []string{"/v1/status", "/v1/workloads", "/v1/workloads/a/why", "/v1/healthz", "/v1/readyz"} {
		if w := ask(s, h, root, "GET", target); w.Code != 503 {
			t.Errorf("%s: %d %s", target, w.Code, w.Body)
		}
	}
	if w := ask(s, h, root, "GET", "/v1/decisions"); w.Code != 404 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := ask(s, h, root, "GET", "/metrics"); w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// Over TCP there are metrics and health. No route there shows workloads' reasons or
// changes anything.
func TestPublic(t *testing.T) {
	s := serverOf(t, full(t))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Skipf("no TCP here: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.ServePublic(ctx, l) }()
	for target, code := range map[string]int{"/metrics": 200, "/v1/healthz": 200, "/v1/readyz": 200, "/v1/status": 404, "/v1/reload": 404, "/v1/decisions": 404} {
		method := "GET"
		if target == "/v1/reload" {
			method = "POST"
		}
		r, _ := http.NewRequest(method, "http://"+l.Addr().String()+target, nil)
		got, err := http.DefaultClient.Do(r)
		if err != nil || got.StatusCode != code {
			t.Errorf("%s: %v, %v", target, got, err)
			continue
		}
		got.Body.Close()
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// The socket: its mode, that a dead one is replaced, and the peer at the other end.
func TestSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "api.sock")
	var l net.Listener
	for range 2 { // the second finds what the first, killed, left
		var err error
		if l != nil {
			l.(*socket).UnixListener.Close()
		}
		if l, err = Listen(agent.APIConfig{Socket: path}); err != nil {
			t.Fatal(err)
		}
		if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", st, err)
		}
	}
	if _, err := Listen(agent.APIConfig{Socket: path, Group: "no-such-group-here"}); err == nil {
		t.Error("a group that is not there was taken")
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(agent.APIConfig{Socket: file}); err == nil {
		t.Error("a file was replaced")
	}
	s := serverOf(t, full(t))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	client := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", path) }}}
	r, err := client.Post("http://homenode/v1/reload", "", bytes.NewReader(make([]byte, 1<<20)))
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(r.Body)
	r.Body.Close()
	want := 403
	if os.Getuid() == 0 {
		want = 200
	}
	if r.StatusCode != want {
		t.Errorf("as uid %d: %d %s", os.Getuid(), r.StatusCode, text)
	}
	client.CloseIdleConnections()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestWriteGroup(t *testing.T) {
	a := full(t)
	a.config.API.WriteGroup = "no-such-group-here"
	if _, err := NewServer(a, ServerOptions{Log: quietLog}); err == nil || !strings.Contains(err.Error(), "write_group") {
		t.Errorf("%v", err)
	}
	a.config.API.WriteGroup = "root" // every system has it
	s := serverOf(t, a)
	for p, want := range map[*unix.Peer]bool{root: true, user: false, {UID: 7, GID: 0}: true, {UID: 7, GID: 7, Groups: []uint32{5, 0}}: true} {
		if s.write(*p) != want {
			t.Errorf("%+v may write: %v", p, !want)
		}
	}
}

// Every answer matches the document: each path is requested, and the JSON is checked
// against the schema.
func TestDocument(t *testing.T) {
	a := full(t)
	s := serverOf(t, a)
	var doc map[string]any
	if err := json.Unmarshal(ask(s, s.Handler(), root, "GET", "/v1/openapi.json").Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	compared, ids := 0, map[string]bool{}
	for pattern, methods := range doc["paths"].(map[string]any) {
		for method, op := range methods.(map[string]any) {
			id := op.(map[string]any)["operationId"].(string)
			if ids[id] {
				t.Errorf("%s twice", id)
			}
			ids[id] = true
			if method == "delete" {
				a.Exclude("/demo/a", time.Now())
			}
			target := strings.ReplaceAll(pattern, "{id}", idA)
			if strings.HasSuffix(target, "exclusion") {
				target += "?for=1h"
			}
			w := ask(s, s.Handler(), root, strings.ToUpper(method), target)
			compared += checkAnswer(t, doc, op.(map[string]any), id, w)
		}
	}
	if compared < 8 || len(ids) != len(routes()) {
		t.Errorf("%d answers were compared, %d operations", compared, len(ids))
	}
}

func checkAnswer(t *testing.T, doc, op map[string]any, id string, w *httptest.ResponseRecorder) int {
	t.Helper()
	answer, ok := op["responses"].(map[string]any)[fmt.Sprint(w.Code)].(map[string]any)
	if !ok || w.Code != 200 {
		t.Errorf("%s: %d %s", id, w.Code, w.Body)
		return 0
	}
	media, ok := answer["content"].(map[string]any)[w.Header().Get("Content-Type")].(map[string]any)
	if !ok {
		t.Errorf("%s: %s is not what the document says", id, w.Header().Get("Content-Type"))
		return 0
	}
	if w.Header().Get("Content-Type") != jsonMedia {
		return 0
	}
	var v any
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil {
		t.Errorf("%s: %v", id, err)
		return 0
	}
	for _, wrong := range holds(doc, media["schema"].(map[string]any), v, id) {
		t.Error(wrong)
	}
	return 1
}

// holds returns where a value does not match a schema. It supports as much of JSON Schema
// as the document uses.
func holds(doc, schema map[string]any, v any, at string) []string {
	if ref, ok := schema["$ref"].(string); ok {
		all := doc["components"].(map[string]any)["schemas"].(map[string]any)
		next, ok := all[strings.TrimPrefix(ref, "#/components/schemas/")].(map[string]any)
		if !ok {
			return []string{at + ": no schema " + ref}
		}
		return holds(doc, next, v, at)
	}
	if choices, ok := schema["anyOf"].([]any); ok {
		var wrong []string
		for _, s := range choices {
			w := holds(doc, s.(map[string]any), v, at)
			if len(w) == 0 {
				return nil
			}
			wrong = append(wrong, w...)
		}
		return wrong
	}
	return holdsType(doc, schema, v, at)
}

func holdsType(doc, schema map[string]any, v any, at string) (wrong []string) {
	kind, ok := schema["type"].(string)
	if !ok {
		return nil // anything
	}
	number, isNumber := v.(float64)
	_, isText := v.(string)
	_, isBool := v.(bool)
	list, isList := v.([]any)
	fields, isObject := v.(map[string]any)
	is := map[string]bool{"string": isText, "number": isNumber, "integer": isNumber && number == float64(int64(number)), "boolean": isBool, "array": isList, "object": isObject, "null": v == nil}
	if !is[kind] {
		return []string{fmt.Sprintf("%s: %v is no %s", at, v, kind)}
	}
	if enum, ok := schema["enum"].([]any); ok && !slices.Contains(enum, v) {
		return []string{fmt.Sprintf("%s: %v is none of %v", at, v, enum)}
	}
	for i, x := range list {
		wrong = append(wrong, holds(doc, schema["items"].(map[string]any), x, fmt.Sprintf("%s[%d]", at, i))...)
	}
	if !isObject {
		return wrong
	}
	known, _ := schema["properties"].(map[string]any)
	for _, name := range asList(schema["required"]) {
		if _, ok := fields[name.(string)]; !ok {
			wrong = append(wrong, fmt.Sprintf("%s: no %v", at, name))
		}
	}
	for name, x := range fields {
		switch s, ok := known[name].(map[string]any); {
		case ok:
			wrong = append(wrong, holds(doc, s, x, at+"."+name)...)
		case schema["additionalProperties"] == false:
			wrong = append(wrong, fmt.Sprintf("%s: %s is not in the document", at, name))
		default:
			if more, ok := schema["additionalProperties"].(map[string]any); ok {
				wrong = append(wrong, holds(doc, more, x, at+"."+name)...)
			}
		}
	}
	return wrong
}

func asList(v any) []any { l, _ := v.([]any); return l }

// No input makes a handler panic or answer with anything but JSON or metrics.
func FuzzHandlers(f *testing.F) {
	for _, s := range []string{"/v1/status", "/v1/workloads/%2Fa/why", "/v1/decisions?since=x&limit=9999999999999999999", "//v1//status", "/v1/workloads/a/exclusion?for=-1h", "/v1/%2e%2e/x", "*"} {
		f.Add("GET", s, "")
		f.Add("PUT", s, "for=1h")
	}
	a := &fake{view: &agent.View{Status: agent.Status{Workloads: []agent.WorkloadStatus{{ID: "/a", Service: "s"}}}}, excluded: map[string]time.Time{}}
	s := serverOf(f, a)
	h := s.Handler()
	f.Fuzz(func(t *testing.T, method, target, query string) {
		if query != "" {
			target += "?" + query
		}
		u, err := url.ParseRequestURI(target)
		if err != nil || method == "" || strings.ContainsAny(method, " \t\r\n/\x00") {
			return
		}
		r := &http.Request{Method: method, URL: u, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: http.NoBody, Host: "homenode", RequestURI: target}
		r = r.WithContext(context.WithValue(t.Context(), peerKey{}, *root))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code >= 500 && w.Code != 503 && w.Code != 500 {
			t.Errorf("%s %q: %d", method, target, w.Code)
		}
		if w.Header().Get("Content-Type") == jsonMedia && !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s %q: no JSON: %q", method, target, w.Body)
		}
		if len(a.excluded) > 1 {
			t.Errorf("%v", a.excluded)
		}
	})
}
