// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"homenode/internal/cli/clitest"
	"homenode/internal/exit"
	"homenode/internal/hub"
	"homenode/internal/hub/deploy"
	"homenode/internal/hub/fleettest"
	"homenode/internal/hub/query"
	"homenode/internal/store"
	"homenode/internal/store/sqlite"
)

// hubOf is a hub whose store has a fleet, and what people see of it.
func hubOf(t *testing.T, change func(*hub.Config)) (file string, f fleettest.Fleet, server *httptest.Server) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "status.db")
	s, err := sqlite.Open(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	f = fleettest.Fleet{Hosts: 6, Each: 20, Until: time.Now().UTC().Truncate(10 * time.Second), Length: 10 * time.Second}
	for i := range f.Hosts {
		if _, err := s.Add(t.Context(), []store.Batch{f.Batch(i, 2)}); err != nil {
			t.Fatal(err)
		}
	}
	rollouts, err := deploy.OpenFolder(t.TempDir(), true)
	if err != nil {
		t.Fatal(err)
	}
	h := hub.New(s, hub.Options{})
	mux := http.NewServeMux()
	h.AddRoutes(mux)
	c := hub.DefaultConfig()
	change(&c)
	if err := addPages(mux, h, s, rollouts, nil, c); err != nil {
		t.Fatal(err)
	}
	server = httptest.NewServer(mux)
	t.Cleanup(func() { server.Close(); h.Close(); s.Close() })
	return file, f, server
}

// Every topic is answered by the store and by the hub alike, in every format.
func TestQuery(t *testing.T) {
	file, f, server := hubOf(t, func(*hub.Config) {})
	more := map[store.Topic][]string{
		store.Instances: {"--service", f.Service(0)}, store.History: {"--service", f.Service(0), "--step", "1h"},
		store.Workloads: {"--host", f.Host(5)}, store.Nodes: {"--host", f.Host(5)},
	}
	until := []string{"--until", f.Until.Add(time.Second).Format(time.RFC3339), "--since", f.Until.Add(-24 * time.Hour).Format(time.RFC3339)}
	for _, topic := range store.Topics {
		for _, output := range []string{"text", "json", "csv", "yaml"} {
			args := append(append([]string{"query", string(topic), "-o", output}, more[topic]...), until...)
			code, direct, errs := clitest.Run(rootCommand(), append(args, "--store", "sqlite:"+file)...)
			if code != exit.Done || strings.Count(direct, "\n") < 2 || strings.Contains(direct, "\x1b") {
				t.Errorf("%v: exit code %d, %s%s", args, code, direct, errs)
			}
			code, through, errs := clitest.Run(rootCommand(), append(args, "--hub", server.URL)...)
			if code != exit.Done || through != direct {
				t.Errorf("%v through the hub: exit code %d, %s\n%s\nwant\n%s", args, code, errs, through, direct)
			}
		}
	}
	for _, whom := range [][]string{{"--store", "sqlite:" + file}, {"--hub", server.URL}} {
		code, out, errs := clitest.Run(rootCommand(), append([]string{"query", "sql", "SELECT count(*) AS n FROM windows", "-o", "csv"}, whom...)...)
		if want := "n\n240\n"; code != exit.Done || out != want {
			t.Errorf("%v: exit code %d, %q %s", whom, code, out, errs)
		}
		for _, bad := range []string{"DELETE FROM windows", "SELEKT", "", "SELECT 1; DROP TABLE windows"} {
			if code, text := clitest.RunCaught(t, rootCommand(), append([]string{"query", "sql", bad}, whom...)...); code != exit.Bad || text == "" {
				t.Errorf("%v: %q: exit code %d, %s", whom, bad, code, text)
			}
		}
	}
}

func TestQueryBadInput(t *testing.T) {
	file, _, server := hubOf(t, func(*hub.Config) {})
	at := []string{"--store", "sqlite:" + file}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"query"}, "a topic"},
		{append([]string{"query", "rumours"}, at...), "unknown topic"},
		{append([]string{"query", "services", "--since", "soon"}, at...), "since is"},
		{append([]string{"query", "services", "--sort", "colour"}, at...), "colour"},
		{append([]string{"query", "workloads"}, at...), "host"},
		{append([]string{"query", "services", "-o", "xml"}, at...), "csv"},
		{append([]string{"query", "services", "--hub", server.URL}, at...), "both given"},
		{[]string{"query", "services", "--store", "sqlite:" + file + "x"}, "no such file"},
		{[]string{"query", "services", "--store", "mysql://x"}, "sqlite:FILE"},
		{[]string{"query", "services", "--store", "clickhouse://u:p@h:1/d"}, "HOMENODE_STORE_PASSWORD"},
		{[]string{"query", "services", "--hub", "hub"}, "address"},
		{[]string{"query", "services", "--hub", "http://127.0.0.1:1"}, "refused"},
		{[]string{"query", "workloads", "--hub", server.URL}, "host"},
		{[]string{"query", "services", "--hub", server.URL, "--token-file", file + "x"}, "read token"},
		{append([]string{"query", "sql", "SELECT 1", "--most", "0"}, at...), "--most"},
	} {
		code, text := clitest.RunCaught(t, rootCommand(), c.args...)
		if code != exit.Bad || !strings.Contains(text, c.want) {
			t.Errorf("%v: exit code %d, no %q in: %s", c.args, code, c.want, text)
		}
	}
}

// With tokens, pages and API are for those who have one; metrics and health are not asked.
func TestPagesNeedToken(t *testing.T) {
	token := clitest.WriteFile(t, filepath.Join(t.TempDir(), "token"), "s3cret\n")
	_, _, server := hubOf(t, func(c *hub.Config) {
		c.Tokens = clitest.WriteFile(t, filepath.Join(t.TempDir(), "tokens"), fmt.Sprintf("%x people\n", query.TokenSum("s3cret")))
	})
	for path, want := range map[string]int{"/": 401, "/health": 401, "/api/v1/query": 401, "/style.css": 401, "/metrics": 200, "/healthz": 200} {
		r, err := http.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if r.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, r.StatusCode, want)
		}
	}
	if code, text := clitest.RunCaught(t, rootCommand(), "query", "services", "--hub", server.URL); code != exit.Bad || !strings.Contains(text, "token") {
		t.Errorf("exit code %d: %s", code, text)
	}
	if code, _, errs := clitest.Run(rootCommand(), "query", "services", "--hub", server.URL, "--token-file", token); code != exit.Done {
		t.Errorf("exit code %d: %s", code, errs)
	}
}
