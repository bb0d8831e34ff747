// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"homenode/internal/kernel/unix"
	"homenode/internal/profiling"
)

// prometheus answers as one does; a query that is none of the list finds nothing.
func prometheus(t *testing.T, answers map[string]string) (address string, asked func() []url.Values) {
	t.Helper()
	var all []url.Values
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		all = append(all, r.URL.Query())
		query := r.URL.Query().Get("query")
		if query == "time()" {
			fmt.Fprint(w, `{"status":"success","data":{"resultType":"scalar","result":[1000,"1000"]}}`)
			return
		}
		text, ok := answers[r.URL.Path+" "+query]
		if !ok {
			w.WriteHeader(http.StatusBadRequest)
			text = `{"status":"error","errorType":"bad_data","error":"unknown query"}`
		}
		fmt.Fprint(w, text)
	}))
	t.Cleanup(server.Close)
	return server.URL, func() []url.Values { return all }
}

func promMeter(t *testing.T, server, query string) *meter {
	t.Helper()
	m, err := withFlags("prometheus:"+query, profiling.Metric{Server: server})
	if err != nil {
		t.Fatal(err)
	}
	return newMeter(m, "")
}

func TestPrometheusMeter(t *testing.T) {
	const matrix = `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":%s}]}}`
	server, asked := prometheus(t, map[string]string{
		"/api/v1/query rate(x[20ms])": `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1000,"7"]}]}}`,
		"/api/v1/query_range gauge":   fmt.Sprintf(matrix, `[[1000,"4"]]`),
		"/api/v1/query_range stops":   `{"status":"success","data":{"resultType":"matrix","result":[]}}`,
	})
	for query, want := range map[string]float64{"rate(x[$for])": 7, "gauge": 4} {
		if got, err := promMeter(t, server, query).over(context.Background(), 20*time.Millisecond); err != nil || got != want {
			t.Errorf("%s: %v, %v", query, got, err)
		}
	}
	for query, want := range map[string]string{"stops": "finds nothing", "nonsense(": "unknown query"} {
		if _, err := promMeter(t, server, query).over(context.Background(), time.Millisecond); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", query, err, want)
		}
	}
	if len(asked()) == 0 {
		t.Error("nothing was asked")
	}
}

// One that hangs, or answers with a page, ends in a sentence.
func TestPrometheusHostile(t *testing.T) {
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer hangs.Close()
	m := promMeter(t, hangs.URL, "x")
	m.client.Timeout = 50 * time.Millisecond
	if _, err := m.over(context.Background(), time.Millisecond); err == nil || !strings.Contains(err.Error(), "read metric") {
		t.Errorf("hangs: %v", err)
	}
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>log in") }))
	defer page.Close()
	if _, err := promMeter(t, page.URL, "x").over(context.Background(), time.Millisecond); err == nil || !strings.Contains(err.Error(), "not from a Prometheus") {
		t.Errorf("a page: %v", err)
	}
}

// One that asks for a token gets it, and a wrong one is told. A token goes nowhere in clear text but
// to this host.
func TestPrometheusToken(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer s3cret" {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1000,"7"]}]}}`)
	}))
	defer server.Close()
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	token, err := readToken(write("good", "s3cret\n"), server.URL)
	if err != nil {
		t.Fatal(err)
	}
	m := promMeter(t, server.URL, "rate(x[$for])")
	if _, err := m.over(t.Context(), time.Millisecond); err == nil || !strings.Contains(err.Error(), "--prometheus-token") {
		t.Errorf("without a token: %v", err)
	}
	m.token = token
	if got, err := m.over(t.Context(), time.Millisecond); err != nil || got != 7 {
		t.Errorf("%v, %v", got, err)
	}
	for name, c := range map[string][3]string{
		"in clear text": {"s3cret", "http://prometheus.example:9090", "with https"},
		"no server":     {"s3cret", "", "--prometheus"},
		"empty":         {"\n", "https://prometheus.example", "want one word"},
		"two lines":     {"a\nb", "https://prometheus.example", "want one word"},
		"long":          {strings.Repeat("a", unix.MostWord+1), "https://prometheus.example", "--prometheus-token"},
	} {
		if _, err := readToken(write(name, c[0]), c[1]); err == nil || !strings.Contains(err.Error(), c[2]) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v, want %q", name, err, c[2])
		}
	}
	if _, err := readToken(filepath.Join(dir, "none"), server.URL); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if got, err := readToken("", "http://prometheus.example"); got != "" || err != nil {
		t.Errorf("none: %q, %v", got, err)
	}
}

func TestPrometheusAddress(t *testing.T) {
	for text, want := range map[string]string{
		"": "want the address of", "ftp://h": "want the address of", "http://": "want the address of", "http://me:secret@h": "ends up in files", "http://h/?q=1": "the address alone",
		"http://prometheus.example:9090/prefix": "", "https://h": "",
	} {
		_, err := withFlags("prometheus:x", profiling.Metric{Server: text})
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// A real Prometheus, which scrapes what this test serves: HOMENODE_PROMETHEUS is its program.
func TestRealPrometheus(t *testing.T) {
	address := os.Getenv("HOMENODE_PROMETHEUS_URL")
	if address == "" {
		t.Skip("HOMENODE_PROMETHEUS_URL is not set: scripts/test-prometheus.sh starts one")
	}
	for query, ok := range map[string]bool{
		"up{job=\"self\"}": true, "rate(prometheus_http_requests_total{handler=\"/metrics\",code=\"200\"}[$for])": true, "sum(rate(prometheus_tsdb_head_samples_appended_total[$for]))": true,
		"no_such_metric": false, "prometheus_http_requests_total": false, "rate(": false, "vector(0)/0": false,
	} {
		m := promMeter(t, address, query)
		m.lookBack = 5 * time.Second
		got, err := m.over(context.Background(), 6*time.Second)
		if (err == nil) != ok || ok && !(got > 0) {
			t.Errorf("%s: %v, %v", query, got, err)
		}
		t.Logf("%s: %v, %v", query, got, err)
	}
}

// A file that nothing writes to any more has no speed.
func TestFileStopped(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ops")
	if err := os.WriteFile(file, []byte("17\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(file, old, old); err != nil {
		t.Fatal(err)
	}
	m := newMeter(profiling.Metric{Kind: profiling.File, Arg: file}, "")
	m.wait = unix.Sleep
	if _, err := m.over(context.Background(), time.Millisecond); err == nil || !strings.Contains(err.Error(), "stopped reporting") {
		t.Errorf("%v", err)
	}
}
