// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"time"

	"homenode/internal/agent"
	"homenode/internal/agent/decisions"
	"homenode/internal/schema"
	"homenode/internal/window"
)

// parameter is a parameter of a route: in its path, or in a query.
type parameter struct {
	name, about string
	query       bool
	kind        string // "string", "integer", "date-time", "duration"
}

// route is one kind of request. Handlers answer with a value that becomes JSON, or an
// error with its status; plain ones write themselves.
type route struct {
	method, pattern, summary string
	parameters               []parameter
	write                    bool // it changes something
	public                   bool // also over TCP
	health                   bool // it never waits
	slow                     bool // it reads the decision log: one at a time
	answer                   any  // a zero value of what handle returns
	other                    []int
	handle                   func(s *Server, r *http.Request) (any, error)
	plain                    func(s *Server, w http.ResponseWriter, r *http.Request)
	media                    string // of plain
}

// apiSchema is the version of answers that are the API's own; a status has its own one.
const apiSchema = 1

// Workloads is the answer to GET /v1/workloads.
type Workloads struct {
	Schema    int        `json:"schema"` // apiSchema
	Workloads []Workload `json:"workloads"`
}

// Workload is one in a list.
type Workload struct {
	ID       string `json:"id"`
	Service  string `json:"service"`
	Owner    string `json:"owner"`
	Approved bool   `json:"approved"`
	Nodes    string `json:"nodes"` // the nodes it is bound to; "": not bound
	Stage    string `json:"stage,omitempty"`
	Rule     string `json:"rule"` // of the last window
	// Labels are what the manager of its cgroup calls it.
	Labels window.Labels `json:"labels,omitzero"`
}

// Why is the answer to GET /v1/workloads/{id}/why.
type Why struct {
	Schema   int                  `json:"schema"` // apiSchema
	Workload agent.WorkloadStatus `json:"workload"`
	Earlier  []decisions.Entry    `json:"earlier"` // from the decision log, oldest first
}

// Decisions is the answer to GET /v1/decisions.
type Decisions struct {
	Schema    int               `json:"schema"`    // apiSchema
	Decisions []decisions.Entry `json:"decisions"` // oldest first
	Skipped   int               `json:"skipped"`   // lines that cannot be read
}

// Exclusion is the answer to a change of one.
type Exclusion struct {
	Schema   int        `json:"schema"` // apiSchema
	Workload string     `json:"workload"`
	Until    *time.Time `json:"until"` // null: it is not excluded
}

// Failure is the answer where there is none.
type Failure struct {
	Schema int    `json:"schema"` // apiSchema
	Error  string `json:"error"`
}

// Reloaded is the answer to POST /v1/reload.
type Reloaded struct {
	Schema int `json:"schema"` // apiSchema
	agent.Reloaded
}

// Health is the answer to GET /v1/healthz and /v1/readyz.
type Health struct {
	Schema int `json:"schema"` // apiSchema
	agent.Health
}

// failure is an error with its HTTP status.
type failure struct {
	status int
	err    error
}

func (f failure) Error() string { return f.err.Error() }

func failed(status int, format string, args ...any) error {
	return failure{status, fmt.Errorf(format, args...)}
}

const (
	defaultLimit = 100
	mostLimit    = 1000 // some 2 MB as text, and four times that as entries
	// longestExclusion: a month. Longer is a matter for the configuration.
	longestExclusion = 31 * 24 * time.Hour
	mostWorkloadID   = 4096 // PATH_MAX
)

var idParameter = parameter{name: "id", about: "a workload: its cgroup path with %2F for each slash, the path's last part, or its service; a path that is no text is bytes:/a\\xff, with %5C for each backslash", kind: "string"}

// routes lists every route. It is a function, because the document is one of them.
func routes() []route {
	return []route{
		{method: "GET", pattern: "/v1/status", summary: "What the agent saw in its last window, and what it did", answer: agent.Status{}, other: []int{503}, handle: status},
		{method: "GET", pattern: "/v1/workloads", summary: "The workloads that are watched", answer: Workloads{}, other: []int{503}, handle: workloads},
		{method: "GET", pattern: "/v1/workloads/{id}/why", summary: "Why a workload was bound, unbound or left alone", parameters: []parameter{idParameter}, slow: true, answer: Why{}, other: []int{404, 429, 503}, handle: why},
		{method: "PUT", pattern: "/v1/workloads/{id}/exclusion", summary: "Keep a workload from being bound; one that is bound is unbound", write: true,
			parameters: []parameter{idParameter, {name: "for", about: "how long, e.g. 1h30m; at most 744h", query: true, kind: "duration"}}, answer: Exclusion{}, other: []int{400, 403, 404, 503, 507}, handle: exclude},
		{method: "DELETE", pattern: "/v1/workloads/{id}/exclusion", summary: "Let a workload be bound again", write: true, parameters: []parameter{idParameter}, answer: Exclusion{}, other: []int{403, 404, 503}, handle: include},
		{method: "GET", pattern: "/v1/decisions", summary: "Decisions from the log, oldest first", slow: true, answer: Decisions{}, other: []int{400, 404, 429, 500},
			parameters: []parameter{
				{name: "since", about: "only those after this time (RFC 3339)", query: true, kind: "date-time"},
				{name: "workload", about: "only those on this one, by its path", query: true, kind: "string"},
				{name: "limit", about: "how many of the newest are returned, 1 to 1000 (default 100)", query: true, kind: "integer"},
			}, handle: readDecisions},
		{method: "POST", pattern: "/v1/reload", summary: "Read the configuration again; a bad one changes nothing", write: true, answer: Reloaded{}, other: []int{403, 409, 422}, handle: reload},
		{method: "GET", pattern: "/v1/healthz", summary: "Whether the loop runs: 503 if not", public: true, health: true, answer: Health{}, plain: healthz, media: jsonMedia, other: []int{503}},
		{method: "GET", pattern: "/v1/readyz", summary: "Whether the agent can do its work: 503 if not", public: true, health: true, answer: Health{}, plain: readyz, media: jsonMedia, other: []int{503}},
		{method: "GET", pattern: "/metrics", summary: "Metrics for Prometheus", public: true, plain: writeMetrics, media: metricsType},
		{method: "GET", pattern: "/v1/openapi.json", summary: "This API, as OpenAPI 3.1", answer: map[string]any{}, handle: func(s *Server, _ *http.Request) (any, error) { return s.document, nil }},
	}
}

func (s *Server) view() (agent.View, error) {
	v, ok := s.agent.View()
	if !ok {
		return agent.View{}, failed(http.StatusServiceUnavailable, "no round has ended yet: ask again in a period")
	}
	return v, nil
}

// find is the workload that the path names.
func (s *Server) find(r *http.Request) (agent.View, agent.WorkloadStatus, error) {
	v, err := s.view()
	if err != nil {
		return v, agent.WorkloadStatus{}, err
	}
	id := r.PathValue("id")
	if len(id) > mostWorkloadID {
		return v, agent.WorkloadStatus{}, failed(http.StatusNotFound, "no workload has a name of %d bytes", len(id))
	}
	ws, err := v.Status.Find(id)
	if err != nil {
		return v, ws, failure{http.StatusNotFound, err}
	}
	return v, ws, nil
}

func status(s *Server, _ *http.Request) (any, error) {
	v, err := s.view()
	return v.Status.Named(), err
}

func workloads(s *Server, _ *http.Request) (any, error) {
	v, err := s.view()
	if err != nil {
		return nil, err
	}
	out := Workloads{Schema: apiSchema, Workloads: []Workload{}}
	for _, ws := range v.Status.Workloads {
		w := Workload{ID: schema.Name(ws.ID), Service: ws.Service, Nodes: ws.Nodes.String(), Stage: string(ws.Stage), Rule: ws.Reason.Rule, Labels: ws.Labels}
		if wl, ok := v.Status.Window.Workload(ws.ID); ok {
			w.Owner, w.Approved = wl.Owner, wl.Approved
		}
		out.Workloads = append(out.Workloads, w)
	}
	return out, nil
}

// whyEarlier is the number of log entries that `why` returns beyond the status.
const whyEarlier = 50

func why(s *Server, r *http.Request) (any, error) {
	v, ws, err := s.find(r)
	if err != nil {
		return nil, err
	}
	out := Why{Schema: apiSchema, Workload: ws, Earlier: []decisions.Entry{}}
	out.Workload.ID = schema.Name(ws.ID)
	if v.Decisions == "" {
		return out, nil
	}
	found, _, err := decisions.Read(v.Decisions, agent.Before(ws), whyEarlier)
	if err == nil && found != nil { // without a log there is nothing earlier
		out.Earlier = found
	}
	return out, nil
}

func readDecisions(s *Server, r *http.Request) (any, error) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, failed(http.StatusBadRequest, "the query is malformed: %v", err)
	}
	match, limit, err := decisionQuery(q)
	if err != nil {
		return nil, failure{http.StatusBadRequest, err}
	}
	file := s.agent.Config().Decisions.Path
	if v, ok := s.agent.View(); ok {
		file = v.Decisions
	}
	if file == "" {
		return nil, failed(http.StatusNotFound, "this agent keeps no decisions: its configuration says decisions: none")
	}
	found, skipped, err := decisions.Read(file, match, limit)
	if isNotExist(err) {
		return Decisions{Schema: apiSchema, Decisions: []decisions.Entry{}}, nil
	}
	if err != nil {
		return nil, failure{http.StatusInternalServerError, err}
	}
	return Decisions{Schema: apiSchema, Decisions: append([]decisions.Entry{}, found...), Skipped: skipped}, nil
}

// decisionQuery reads since, workload and limit.
func decisionQuery(q url.Values) (match func(decisions.Key) bool, limit int, err error) {
	var since time.Time
	if text := q.Get("since"); text != "" {
		if since, err = time.Parse(time.RFC3339Nano, text); err != nil {
			return nil, 0, fmt.Errorf("since is %q: want a time like 2026-01-02T15:04:05Z", text)
		}
	}
	limit = defaultLimit
	if text := q.Get("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > mostLimit {
			return nil, 0, fmt.Errorf("limit is %q: want 1 to %d", text, mostLimit)
		}
	}
	id := schema.Name(q.Get("workload"))
	return func(k decisions.Key) bool {
		return k.At.After(since) && (id == "" || k.Workload == id || k.Service == id || path.Base(k.Workload) == id)
	}, limit, nil
}

func exclude(s *Server, r *http.Request) (any, error) {
	_, ws, err := s.find(r)
	if err != nil {
		return nil, err
	}
	text := r.URL.Query().Get("for")
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 || d > longestExclusion {
		return nil, failed(http.StatusBadRequest, "for is %q: want a time like 1h30m, at most %v", text, longestExclusion)
	}
	until := time.Now().Add(d).Round(time.Second)
	if !s.agent.Exclude(ws.ID, until) {
		return nil, failed(http.StatusInsufficientStorage, "too many workloads are excluded: end another's exclusion first")
	}
	return Exclusion{Schema: apiSchema, Workload: schema.Name(ws.ID), Until: &until}, nil
}

// include also accepts the path of a workload that is gone: an exclusion may outlive it.
func include(s *Server, r *http.Request) (any, error) {
	id := r.PathValue("id")
	if _, ws, err := s.find(r); err == nil {
		id = ws.ID
	} else if !schema.IsName(id) {
		return nil, err
	}
	if !s.agent.Include(id) {
		return nil, failed(http.StatusNotFound, "%s is not excluded", schema.Name(id))
	}
	return Exclusion{Schema: apiSchema, Workload: schema.Name(id)}, nil
}

func reload(s *Server, _ *http.Request) (any, error) {
	r, err := s.agent.Reload()
	switch {
	case err == nil:
		return Reloaded{apiSchema, r}, nil
	case isNoReload(err):
		return nil, failure{http.StatusConflict, err}
	}
	return nil, failure{http.StatusUnprocessableEntity, err}
}

func healthz(s *Server, w http.ResponseWriter, _ *http.Request) {
	h := s.agent.Health()
	s.sendHealth(w, h, h.Alive)
}

func readyz(s *Server, w http.ResponseWriter, _ *http.Request) {
	h := s.agent.Health()
	s.sendHealth(w, h, h.Ready)
}

func (s *Server) sendHealth(w http.ResponseWriter, h agent.Health, ok bool) {
	code := http.StatusOK
	if !ok {
		code = http.StatusServiceUnavailable
	}
	s.send(w, code, Health{apiSchema, h})
}

func writeMetrics(s *Server, w http.ResponseWriter, _ *http.Request) {
	v, ok := s.agent.View()
	w.Header().Set("Content-Type", metricsType)
	_ = WriteMetrics(w, MetricsInput{View: v, Read: ok, Health: s.agent.Health(), Version: s.o.Version, Resident: resident()}) // the client is gone
}
