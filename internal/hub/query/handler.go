// SPDX-License-Identifier: Apache-2.0

package query

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"homenode/internal/schema"
	"homenode/internal/store"
)

// Asker answers. store.Store is one.
type Asker interface {
	Ask(ctx context.Context, q store.Question) (store.Table, error)
	SQL(ctx context.Context, query string, most int) (store.Table, error)
}

// Options are of a handler.
type Options struct {
	Store   Asker
	Now     func() time.Time
	Version string
	Timeout time.Duration // of one question; 0: 30 s
}

const (
	usualTimeout = 30 * time.Second
	// atOnce bounds the questions that a store is asked in parallel: the others are refused
	// at once, and may come again.
	atOnce     = 8
	mostSQL    = 64 << 10
	mostAnswer = 32 << 20
	usualSQL   = 1000 // rows
)

// Failure is the answer where there is none.
type Failure struct {
	Schema int    `json:"schema"`
	Error  string `json:"error"`
}

// failure is an error with its status.
type failure struct {
	status int
	err    error
}

func (f failure) Error() string { return f.err.Error() }

func refuse(status int, format string, args ...any) error {
	return failure{status, fmt.Errorf(format, args...)}
}

type api struct {
	Options
	slots    chan struct{}
	document map[string]any
}

// Handler answers below /api/v1/. Who may ask is Access's.
func Handler(o Options) http.Handler {
	if o.Timeout == 0 {
		o.Timeout = usualTimeout
	}
	a := &api{Options: o, slots: make(chan struct{}, atOnce), document: Document(o.Version)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/query", func(w http.ResponseWriter, _ *http.Request) { send(w, http.StatusOK, topics()) })
	mux.HandleFunc("GET /api/v1/query/{topic}", a.answering(a.ask))
	mux.HandleFunc("POST /api/v1/sql", a.answering(a.sql))
	mux.HandleFunc("GET /api/v1/openapi.json", func(w http.ResponseWriter, _ *http.Request) { send(w, http.StatusOK, a.document) })
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		send(w, http.StatusNotFound, Failure{Schema, "no such path or method: GET /api/v1/openapi.json lists them"})
	})
	return mux
}

// answering runs a question in a slot, within its time.
func (a *api) answering(ask func(*http.Request) (Answer, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case a.slots <- struct{}{}:
			defer func() { <-a.slots }()
		default:
			w.Header().Set("Retry-After", "1")
			send(w, http.StatusServiceUnavailable, Failure{Schema, "the store answers " + strconv.Itoa(atOnce) + " questions already: ask again"})
			return
		}
		ctx, stop := context.WithTimeout(r.Context(), a.Timeout)
		defer stop()
		format := r.URL.Query().Get("format")
		answer, err := ask(r.WithContext(ctx))
		if err == nil && format != "" && format != "json" && format != "csv" {
			err = refuse(http.StatusBadRequest, "format is %q: want json or csv", format)
		}
		if err != nil {
			sendFailure(w, ctx, err)
			return
		}
		sendAnswer(w, answer, format == "csv")
	}
}

func (a *api) ask(r *http.Request) (Answer, error) {
	v := r.URL.Query()
	v.Del("format")
	if store.Topic(r.PathValue("topic")).About() == "" {
		return Answer{}, refuse(http.StatusNotFound, "no such topic: GET /api/v1/query lists them")
	}
	q, err := Parse(r.PathValue("topic"), v, a.Now())
	if err != nil {
		return Answer{}, failure{http.StatusBadRequest, err}
	}
	t, err := a.Store.Ask(r.Context(), q)
	return AnswerOf(q, t), err
}

func (a *api) sql(r *http.Request) (Answer, error) {
	most := usualSQL
	if text := r.URL.Query().Get("most"); text != "" {
		var err error
		if most, err = strconv.Atoi(text); err != nil || most < 1 || most > store.MostRows {
			return Answer{}, refuse(http.StatusBadRequest, "most is %q: want 1 to %d", text, store.MostRows)
		}
	}
	text, err := io.ReadAll(io.LimitReader(r.Body, mostSQL+1))
	switch {
	case err != nil:
		return Answer{}, refuse(http.StatusBadRequest, "read the query: %w", err)
	case len(text) > mostSQL:
		return Answer{}, refuse(http.StatusRequestEntityTooLarge, "the query is larger than %d bytes", mostSQL)
	case len(bytes.TrimSpace(text)) == 0:
		return Answer{}, refuse(http.StatusBadRequest, "the query is empty: send SQL as the body")
	}
	t, err := a.Store.SQL(r.Context(), string(text), most)
	if err != nil && r.Context().Err() == nil && !errors.Is(err, store.ErrBusy) {
		err = failure{http.StatusUnprocessableEntity, err} // mostly a mistake in the query
	}
	return SQLAnswer(t), err
}

func sendFailure(w http.ResponseWriter, ctx context.Context, err error) {
	status := http.StatusInternalServerError
	switch f := (failure{}); {
	case errors.As(err, &f):
		status = f.status
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		status, err = http.StatusGatewayTimeout, errors.New("the store did not answer in time: ask about a shorter time")
	case errors.Is(err, store.ErrQuestion):
		status = http.StatusBadRequest
	case errors.Is(err, store.ErrBusy):
		status = http.StatusServiceUnavailable
	}
	send(w, status, Failure{Schema, err.Error()})
}

func sendAnswer(w http.ResponseWriter, a Answer, asCSV bool) {
	out := &bounded{}
	write, media := func() error { return schema.NewEncoder(out).Encode(a) }, "application/json"
	if asCSV {
		write, media = func() error { return a.CSV(out) }, "text/csv; charset=utf-8"
	}
	if err := write(); err != nil {
		send(w, http.StatusRequestEntityTooLarge, Failure{Schema, fmt.Sprintf("the answer is larger than %d MB: ask for fewer rows", mostAnswer>>20)})
		return
	}
	header(w, media)
	_, _ = w.Write(out.Bytes()) // the client may be gone
}

// bounded is a buffer with an end.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > mostAnswer {
		return 0, errors.New("too large")
	}
	return b.Buffer.Write(p)
}

func header(w http.ResponseWriter, media string) {
	w.Header().Set("Content-Type", media)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
}

func send(w http.ResponseWriter, status int, v any) {
	header(w, "application/json")
	w.WriteHeader(status)
	_ = schema.NewEncoder(w).Encode(v) // the client may be gone
}

// TopicList is the answer to GET /api/v1/query.
type TopicList struct {
	Schema int         `json:"schema"`
	Topics []TopicHelp `json:"topics"`
}

// TopicHelp says what a topic answers.
type TopicHelp struct {
	Topic string `json:"topic"`
	About string `json:"about"`
}

func topics() TopicList {
	list := TopicList{Schema: Schema}
	for _, t := range store.Topics {
		list.Topics = append(list.Topics, TopicHelp{string(t), t.About()})
	}
	return list
}
