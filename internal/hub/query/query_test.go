// SPDX-License-Identifier: Apache-2.0

package query

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"homenode/internal/render"
	"homenode/internal/store"
)

var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// fake answers with one table, or with what the test says.
type fake struct {
	asked []store.Question
	sql   []string
	table store.Table
	err   error
	wait  bool // until the context ends
}

func (f *fake) Ask(ctx context.Context, q store.Question) (store.Table, error) {
	f.asked = append(f.asked, q)
	if f.wait {
		<-ctx.Done()
		return store.Table{}, ctx.Err()
	}
	return f.table, f.err
}

func (f *fake) SQL(_ context.Context, text string, most int) (store.Table, error) {
	f.sql = append(f.sql, fmt.Sprint(most, ": ", text))
	return f.table, f.err
}

func services() store.Table {
	return store.Table{
		Columns: []store.Column{{Name: "service"}, {Name: "instances"}, {Name: "local_ratio", Unit: "1"}, {Name: "traffic_bytes_per_s", Unit: "bytes/s"}, {Name: "last"}},
		Rows:    [][]any{{"web\x1b[2J", int64(1234), 0.5, 2.5e9, noon}, {"=cmd()", int64(2), nil, math.NaN(), nil}, {"\xff", int64(0), 0.001, nil, noon}},
		More:    true,
	}
}

func handlerOf(f *fake) http.Handler {
	return Handler(Options{Store: f, Now: func() time.Time { return noon }, Version: "test", Timeout: 50 * time.Millisecond})
}

func do(h http.Handler, method, target, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, target, strings.NewReader(body)))
	return w
}

// A question is the same in flags, in a URL and in the page's links.
func TestParse(t *testing.T) {
	for _, c := range []struct {
		query, want string // want of the error; "": there is none
		q           store.Question
	}{
		{"", "", store.Question{From: noon.Add(-24 * time.Hour), Until: noon}},
		{"since=7d&until=24h&sort=-local_ratio&most=5&offset=10", "", store.Question{From: noon.Add(-168 * time.Hour), Until: noon.Add(-24 * time.Hour), Sort: "local_ratio", Most: 5, Offset: 10}},
		{"since=2026-11-01T00:00:00Z&service=a&sort=x&step=5m", "", store.Question{From: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), Until: noon, Service: "a", Sort: "x", Ascending: true, Step: 5 * time.Minute}},
		{"workload=bytes:/a%5Cxff&host=h", "", store.Question{From: noon.Add(-24 * time.Hour), Until: noon, Host: "h", Workload: "/a\xff"}},
		{"servcie=a", `unknown parameter "servcie"`, store.Question{}},
		{"service=a&service=b", "given 2 times", store.Question{}},
		{"since=yesterday", "since is", store.Question{}},
		{"since=-5m", "since is", store.Question{}},
		{"since=1h&until=2h", "the time is empty", store.Question{}},
		{"since=NaNd", "since is", store.Question{}},
		{"most=many", "most is", store.Question{}},
		{"most=1000000", "at most 10000", store.Question{}},
		{"offset=-1", "offset from 0", store.Question{}},
		{"service=" + strings.Repeat("x", 1<<20), "1048576 bytes", store.Question{}},
	} {
		v, err := url.ParseQuery(c.query)
		if err != nil {
			t.Fatal(err)
		}
		q, err := Parse("services", v, noon)
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%.60s: %v, want %q", c.query, err, c.want)
			}
			continue
		}
		if c.q.Topic = "services"; err != nil || !reflect.DeepEqual(q, c.q) {
			t.Errorf("%s: %+v, %v, want %+v", c.query, q, err, c.q)
		}
		if again, err := Parse("services", Values(q), noon.Add(time.Hour)); err != nil || !reflect.DeepEqual(again, q) {
			t.Errorf("%s: read back as %+v, %v", c.query, again, err)
		}
	}
}

// What is read is what is written, and nothing makes it panic.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"since=24h&sort=-a", "workload=bytes:/a%5Cxff", "since=1.5d&until=2026-01-02T15:04:05Z", "most=9&offset=3&step=1s"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := url.ParseQuery(text)
		if err != nil {
			return
		}
		q, err := Parse("services", v, noon)
		if err != nil {
			return
		}
		if again, err := Parse("services", Values(q), noon); err != nil || !reflect.DeepEqual(again, q) {
			t.Errorf("%q: %+v, read back as %+v, %v", text, q, again, err)
		}
	})
}

func TestHandler(t *testing.T) {
	f := &fake{table: services()}
	h := handlerOf(f)
	got := do(h, "GET", "/api/v1/query/services?since=1h&most=3", "")
	want := `"rows":[{"instances":1234,"last":"2026-11-25T12:00:00Z","local_ratio":0.5,"service":"web\u001b[2J","traffic_bytes_per_s":2500000000},{"instances":2,"last":null,"local_ratio":null,"service":"=cmd()","traffic_bytes_per_s":null},{"instances":0,"last":"2026-11-25T12:00:00Z","local_ratio":0.001,"service":"bytes:\\xff","traffic_bytes_per_s":null}],"more_rows":true}`
	if got.Code != http.StatusOK || !strings.Contains(got.Body.String(), want) || !strings.Contains(got.Body.String(), `{"name":"last","unit":"time"}`) {
		t.Errorf("%d: %s", got.Code, got.Body)
	}
	if len(f.asked) != 1 || f.asked[0].Most != 3 || f.asked[0].From != noon.Add(-time.Hour) {
		t.Errorf("asked %+v", f.asked)
	}
	got = do(h, "GET", "/api/v1/query/services?format=csv", "")
	if want := "service,instances,local_ratio,traffic_bytes_per_s,last\nweb\ufffd[2J,1234,0.5,2.5e+09,2026-11-25T12:00:00Z\n'=cmd(),2,,,\nbytes:\\xff,0,0.001,,2026-11-25T12:00:00Z\n"; got.Body.String() != want {
		t.Errorf("%q, want %q", got.Body, want)
	}
	if got = do(h, "POST", "/api/v1/sql?most=7", "SELECT 1"); got.Code != http.StatusOK || len(f.sql) != 1 || f.sql[0] != "7: SELECT 1" {
		t.Errorf("%d: %s, %q", got.Code, got.Body, f.sql)
	}
}

// Each refusal has its status and a sentence, as JSON.
func TestHandlerRefuses(t *testing.T) {
	for _, c := range []struct {
		method, target, body string
		fake                 fake
		status               int
		want                 string
	}{
		{"GET", "/api/v1/query/rumours", "", fake{}, 404, "no such topic"},
		{"GET", "/api/v1/query/services?colour=red", "", fake{}, 400, "unknown parameter"},
		{"GET", "/api/v1/query/services?format=xml", "", fake{}, 400, "json or csv"},
		{"GET", "/api/v1/query/services?sort=x", "", fake{err: fmt.Errorf("sort x: %w", store.ErrQuestion)}, 400, "sort x"},
		{"GET", "/api/v1/query/services", "", fake{err: store.ErrBusy}, 503, "does not take rows"},
		{"GET", "/api/v1/query/services", "", fake{err: errors.New("disk gone")}, 500, "disk gone"},
		{"GET", "/api/v1/query/services", "", fake{wait: true}, 504, "a shorter time"},
		{"POST", "/api/v1/sql", " ", fake{}, 400, "empty"},
		{"POST", "/api/v1/sql", strings.Repeat("x", mostSQL+1), fake{}, 413, "larger than"},
		{"POST", "/api/v1/sql?most=0", "x", fake{}, 400, "most is"},
		{"POST", "/api/v1/sql", "SELEKT", fake{err: errors.New("near SELEKT")}, 422, "near SELEKT"},
		{"GET", "/api/v1/sql", "", fake{}, 404, "no such path or method"},
		{"GET", "/api/v2", "", fake{}, 404, "openapi.json"},
	} {
		got := do(handlerOf(&c.fake), c.method, c.target, c.body)
		var f Failure
		if err := json.Unmarshal(got.Body.Bytes(), &f); err != nil || got.Code != c.status || !strings.Contains(f.Error, c.want) {
			t.Errorf("%s %s: %d %.200s, want %d %q", c.method, c.target, got.Code, got.Body, c.status, c.want)
		}
	}
}

// A store that does not answer is asked a bounded number of questions.
func TestHandlerBounded(t *testing.T) {
	f := &slow{in: make(chan struct{}, 100), end: make(chan struct{})}
	h := Handler(Options{Store: f, Now: func() time.Time { return noon }})
	done := make(chan int, 100)
	for range atOnce {
		go func() { done <- do(h, "GET", "/api/v1/query/services", "").Code }()
	}
	for range atOnce {
		<-f.in
	}
	if got := do(h, "GET", "/api/v1/query/services", ""); got.Code != http.StatusServiceUnavailable || got.Header().Get("Retry-After") == "" {
		t.Errorf("%d: %s", got.Code, got.Body)
	}
	close(f.end)
	for range atOnce {
		if code := <-done; code != http.StatusOK {
			t.Error(code)
		}
	}
}

type slow struct{ in, end chan struct{} }

func (s *slow) Ask(context.Context, store.Question) (store.Table, error) {
	s.in <- struct{}{}
	<-s.end
	return store.Table{}, nil
}
func (s *slow) SQL(context.Context, string, int) (store.Table, error) { return store.Table{}, nil }

func TestAccess(t *testing.T) {
	token := Access{Tokens: [][sha256.Size]byte{TokenSum("s3cret"), TokenSum("")}}
	for _, c := range []struct {
		access       Access
		from, host   string
		header, user string
		want         bool
	}{
		{Access{}, "127.0.0.1:1", "localhost", "", "", false},
		{Access{Loopback: true}, "127.0.0.1:1", "localhost:8080", "", "", true},
		{Access{Loopback: true}, "[::1]:1", "[::1]:8080", "", "", true},
		{Access{Loopback: true}, "127.0.0.1:1", "evil.example:8080", "", "", false},
		{Access{Loopback: true}, "192.0.2.1:1", "localhost", "", "", false},
		{Access{Loopback: true, Names: []string{"hub.example"}}, "127.0.0.1:1", "hub.example", "", "", true},
		{token, "127.0.0.1:1", "localhost", "", "", false},
		{token, "192.0.2.1:1", "hub", "Bearer s3cret", "", true},
		{token, "192.0.2.1:1", "hub", "Bearer s3cre", "", false},
		{token, "192.0.2.1:1", "hub", "Bearer ", "", false},
		{token, "192.0.2.1:1", "hub", "", "s3cret", true},
		{token, "192.0.2.1:1", "hub", "", "", false},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr, r.Host = c.from, c.host
		if c.header != "" {
			r.Header.Set("Authorization", c.header)
		}
		if c.user != "" {
			r.SetBasicAuth("any", c.user)
		}
		if got := c.access.Allow(r) == nil; got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
		w := httptest.NewRecorder()
		c.access.Guard(http.NotFoundHandler()).ServeHTTP(w, r)
		if got := w.Code == http.StatusNotFound; got != c.want || !c.want && w.Header().Get("WWW-Authenticate") == "" {
			t.Errorf("%+v: status %d", c, w.Code)
		}
	}
}

func TestParseTokens(t *testing.T) {
	sum := fmt.Sprintf("%x", TokenSum("s3cret"))
	got, err := ParseTokens([]byte("# people\n\n"+sum+"  grafana\n"+strings.ToUpper(sum)+"\n"), "tokens")
	if err != nil || len(got) != 2 || got[0] != TokenSum("s3cret") || got[1] != got[0] {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"s3cret", sum[1:], sum + "00", strings.Repeat(sum+"\n", mostTokens+1), strings.Repeat("z", 64)} {
		if _, err := ParseTokens([]byte(bad), "tokens"); err == nil || !strings.Contains(err.Error(), "parse tokens: line ") {
			t.Errorf("%.70q: %v", bad, err)
		}
	}
}

// No file makes it panic, and what is wrong gives nothing.
func FuzzParseTokens(f *testing.F) {
	f.Add([]byte(fmt.Sprintf("# x\n%x y\n", TokenSum("a"))))
	f.Fuzz(func(t *testing.T, text []byte) {
		if sums, err := ParseTokens(text, "f"); err != nil && sums != nil {
			t.Errorf("%d tokens with %v", len(sums), err)
		}
	})
}

// The client gets what a store would have said, and says what a hub refuses.
func TestClient(t *testing.T) {
	f := &fake{table: services()}
	server := httptest.NewServer(Access{Tokens: [][sha256.Size]byte{TokenSum("s3cret")}}.Guard(handlerOf(f)))
	defer server.Close()
	c, err := NewClient(server.URL, "s3cret", server.Client())
	if err != nil {
		t.Fatal(err)
	}
	q := store.Question{Topic: store.Instances, Service: "a/b", From: noon.Add(-time.Hour), Until: noon, Sort: "local_ratio"}
	a, err := c.Ask(t.Context(), q)
	if err != nil || len(a.Rows) != 3 || !a.More || len(f.asked) != 1 || !reflect.DeepEqual(f.asked[0], q) {
		t.Errorf("%+v, %v; asked %+v", a, err, f.asked)
	}
	var text, direct strings.Builder
	if err := errors.Join(a.Text(&text, render.TextOptions{Width: 80}), AnswerOf(q, services()).Text(&direct, render.TextOptions{Width: 80})); err != nil || text.String() != direct.String() {
		t.Errorf("%v:\n%s\nis not\n%s", err, &text, &direct)
	}
	if a, err = c.SQL(t.Context(), "SELECT 1", 5); err != nil || a.Topic != "sql" {
		t.Errorf("%+v, %v", a, err)
	}
	other, err := NewClient(server.URL, "wrong", server.Client())
	if err != nil {
		t.Fatal(err)
	}
	if _, err = other.Ask(t.Context(), q); err == nil || !strings.Contains(err.Error(), "not for this client") {
		t.Error(err)
	}
	for _, bad := range []string{"", "hub:8443", "ftp://hub", "http://hub.example", "https://user@hub", "http://hub?x=1"} {
		if _, err := NewClient(bad, "s3cret", http.DefaultClient); err == nil {
			t.Errorf("%q is taken as a hub's address", bad)
		}
	}
}

func TestText(t *testing.T) {
	var b strings.Builder
	if err := AnswerOf(store.Question{Topic: store.Services}, services()).Text(&b, render.TextOptions{Width: 100}); err != nil {
		t.Fatal(err)
	}
	want := `service     instances  local ratio  traffic bytes per s  last
web?[2J         1,234        50.0%             2.5 GB/s  2026-11-25 12:00 UTC
=cmd()              2      unknown              unknown  unknown
bytes:\xff          0        0.10%              unknown  2026-11-25 12:00 UTC

There are more rows: --most says how many are shown.
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

// A validator that others keep reads the document, and finds nothing wrong.
func TestDocumentIsValid(t *testing.T) {
	text, err := json.Marshal(Document("v1"))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Error(err)
	}
	h := handlerOf(&fake{table: services()})
	for path, item := range doc.Paths.Map() {
		for method := range item.Operations() {
			if got := do(h, method, strings.Replace(path, "{topic}", "services", 1), "SELECT 1"); got.Code != http.StatusOK {
				t.Errorf("%s %s: %d %s", method, path, got.Code, got.Body)
			}
		}
	}
	if doc.Paths.Len() != 4 {
		t.Errorf("%d paths", doc.Paths.Len())
	}
}
