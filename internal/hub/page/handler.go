// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"time"

	"homenode/internal/hub/deploy"
	"homenode/internal/hub/query"
	"homenode/internal/model/gain"
	"homenode/internal/render"
	"homenode/internal/schema"
	"homenode/internal/store"
)

//go:embed fleet.tmpl
var pageText string

//go:embed fleet.css
var ownStyle string

//go:embed fleet.js
var script string

var document = render.NewPage(pageText, render.PictureStyle, template.FuncMap{"bar": bar})

// Options are of the page.
type Options struct {
	Store query.Asker
	Now   func() time.Time
	// Rollouts are shown, and never changed. nil: the hub has none.
	Rollouts Rollouts
	// Model is asked what binding would bring. nil: the hub has none.
	Model   func() (*gain.Model, error)
	Health  func() Health // nil: the hub tells nothing about itself
	Timeout time.Duration // of one page; 0: 20 s
}

// Rollouts is a folder of them.
type Rollouts interface {
	All() ([]deploy.Rollout, error)
	Get(service string) (deploy.Rollout, error)
}

const (
	usualTimeout = 20 * time.Second
	atOnce       = 8 // pages that ask the store in parallel
	// policy lets the browser load and run what the hub itself serves, and nothing else.
	policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)

type site struct {
	Options
	slots chan struct{}
}

// Handler serves the page at "/" and below.
func Handler(o Options) http.Handler {
	if o.Timeout == 0 {
		o.Timeout = usualTimeout
	}
	s := &site{o, make(chan struct{}, atOnce)}
	mux := http.NewServeMux()
	for path, show := range map[string]func(*site, *request) (content, error){
		"/{$}": services, "/service": service, "/hosts": hosts, "/host": host, "/workload": workload, "/events": events, "/rollouts": rollouts, "/rollout": rolloutOf, "/gains": gains, "/health": health,
	} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, show) })
	}
	mux.HandleFunc("GET /style.css", file("text/css; charset=utf-8", render.Style(render.PictureStyle)+ownStyle))
	mux.HandleFunc("GET /fleet.js", file("text/javascript; charset=utf-8", script))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, &request{question: store.Question{}, values: url.Values{}, path: "/"}, http.StatusNotFound, errors.New("there is no such page"))
	})
	return mux
}

func file(media, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		secure(w, media)
		w.Header().Set("Cache-Control", "max-age=300")
		_, _ = w.Write([]byte(text)) // the client may be gone
	}
}

func secure(w http.ResponseWriter, media string) {
	h := w.Header()
	h.Set("Content-Type", media)
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
}

// request is a page that a person wants: the URL is all there is to know.
type request struct {
	context.Context
	path     string
	values   url.Values
	question store.Question // its time, names, order and offset; its topic is the page's
	filter   string
}

// content is what differs from page to page.
type content struct {
	Title, Lead string
	Facts       []render.Fact
	Pictures    []render.Panel
	Tables      []table
	Notes       []string
	Filter      string   // the label of its filter; "": it has none
	Fields      []hidden // of the form: what else the URL says
	Views       []menuItem
	Timeless    bool // it is about now alone
}

type hidden struct{ Name, Value string }

func (s *site) serve(w http.ResponseWriter, r *http.Request, show func(*site, *request) (content, error)) {
	ctx, stop := context.WithTimeout(r.Context(), s.Timeout)
	defer stop()
	req, err := s.parse(ctx, r)
	if err != nil {
		s.fail(w, req, http.StatusBadRequest, err)
		return
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	default:
		w.Header().Set("Retry-After", "1")
		s.fail(w, req, http.StatusServiceUnavailable, fmt.Errorf("the hub makes %s already: load this page again", render.Count(atOnce, "page")))
		return
	}
	c, err := show(s, req)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		s.fail(w, req, http.StatusGatewayTimeout, errors.New("the store did not answer in time: choose a shorter time"))
	case errors.Is(err, store.ErrQuestion):
		s.fail(w, req, http.StatusBadRequest, err)
	case errors.Is(err, deploy.ErrNone), errors.Is(err, errNoRollouts), errors.Is(err, errNoModel):
		s.fail(w, req, http.StatusNotFound, err)
	case err != nil:
		s.fail(w, req, http.StatusInternalServerError, err)
	default:
		s.write(w, req, http.StatusOK, c)
	}
}

// parse reads the URL; the request is good for a page about what is wrong with it, too.
func (s *site) parse(ctx context.Context, r *http.Request) (*request, error) {
	v, err := url.ParseQuery(r.URL.RawQuery)
	req := &request{Context: ctx, path: r.URL.Path, values: url.Values{}}
	if err != nil {
		return req, fmt.Errorf("the address is malformed: %w", err)
	}
	if more, err := url.ParseQuery(v.Get(packed)); err == nil {
		for name := range more {
			v.Set(name, more.Get(name))
		}
		v.Del(packed)
	}
	for _, name := range []string{"q", "kind"} { // of the page alone
		if text := v.Get(name); text != "" {
			req.values.Set(name, text)
		}
		v.Del(name)
	}
	for name, values := range v { // an empty field of the form says nothing
		if len(values) == 1 && values[0] == "" {
			v.Del(name)
		}
	}
	q, err := query.Parse("", v, s.Now())
	if err != nil {
		return req, err
	}
	for name := range v {
		req.values.Set(name, v.Get(name))
	}
	req.question, req.filter = q, req.values.Get("q")
	return req, nil
}

func (s *site) fail(w http.ResponseWriter, r *request, status int, err error) {
	s.write(w, r, status, content{Title: http.StatusText(status), Lead: render.Clip(render.Printable(err.Error()), 600)})
}

// frame is the page around a content.
type frame struct {
	content
	Path   string
	Menu   []menuItem
	Times  []timeChoice
	Filter struct{ Label, Text string }
	At     string
}

type menuItem struct {
	Name, To string
	Current  bool
}

type timeChoice struct {
	Value, Name string
	Chosen      bool
}

func (s *site) write(w http.ResponseWriter, r *request, status int, c content) {
	f := frame{content: c, Path: r.path, At: render.Date(s.Now())}
	f.Filter.Label, f.Filter.Text = c.Filter, render.Printable(r.filter)
	for _, m := range []struct{ name, path string }{{"Services", "/"}, {"Hosts", "/hosts"}, {"Events", "/events"}, {"Gains", "/gains"}, {"Rollouts", "/rollouts"}, {"Health", "/health"}} {
		if m.path == "/rollouts" && s.Rollouts == nil || m.path == "/gains" && s.Model == nil {
			continue
		}
		f.Menu = append(f.Menu, menuItem{m.name, r.link(m.path), m.path == r.path || m.path == parents[r.path]})
	}
	f.Times = r.times()
	var out bytes.Buffer
	if err := document().Execute(&out, f); err != nil {
		http.Error(w, "the page cannot be written", http.StatusInternalServerError)
		return
	}
	secure(w, "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(out.Bytes()) // the client may be gone
}

// parents are the pages of the menu that lead to another.
var parents = map[string]string{"/service": "/", "/host": "/hosts", "/workload": "/hosts", "/rollout": "/rollouts"}

const usualSince = "24h"

func (r *request) times() (all []timeChoice) {
	now := r.values.Get("since")
	if now == "" {
		now = usualSince
	}
	found := false
	for _, c := range []timeChoice{{"1h", "last hour", false}, {"6h", "last 6 hours", false}, {usualSince, "last 24 hours", false}, {"7d", "last 7 days", false}, {"30d", "last 30 days", false}, {"365d", "last year", false}} {
		c.Chosen = c.Value == now
		found = found || c.Chosen
		all = append(all, c)
	}
	if !found {
		all = append(all, timeChoice{now, "since " + render.Clip(render.Printable(now), 24), true})
	}
	return all
}

// link is an address with this page's time; pairs are names and values, and "" leaves one out.
func (r *request) link(path string, pairs ...string) string {
	v := url.Values{}
	for _, name := range []string{"since", "until"} {
		if text := r.values.Get(name); text != "" {
			v.Set(name, text)
		}
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			v.Set(pairs[i], schema.Name(pairs[i+1]))
		}
	}
	if len(v) == 0 {
		return path
	}
	return path + "?" + v.Encode()
}

// with is this page's address with another order or offset.
func (r *request) with(pairs ...string) string {
	v := url.Values{}
	for name, values := range r.values {
		v[name] = values
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		if v.Set(pairs[i], pairs[i+1]); pairs[i+1] == "" {
			v.Del(pairs[i])
		}
	}
	if len(v) == 0 {
		return r.path
	}
	return r.path + "?" + v.Encode()
}

// pattern is what a filter asks for: any name with the text in it, unless it says where.
func pattern(filter string) string {
	if filter == "" || bytes.ContainsRune([]byte(filter), '*') {
		return filter
	}
	return "*" + filter + "*"
}

// ask asks about the page's time.
func (s *site) ask(r *request, topic store.Topic, change func(*store.Question)) (store.Table, error) {
	q := store.Question{Topic: topic, From: r.question.From, Until: r.question.Until}
	if change != nil {
		change(&q)
	}
	t, err := s.Store.Ask(r, q)
	if err != nil {
		return store.Table{}, err
	}
	return t, nil
}
