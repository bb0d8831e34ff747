// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"homenode/internal/agent"
	"homenode/internal/kernel/unix"
	"homenode/internal/schema"
	"homenode/internal/unit"
)

const jsonMedia = "application/json"

// Agent is what the API calls; agent.Agent.
type Agent interface {
	View() (agent.View, bool)
	Health() agent.Health
	Config() agent.Config
	Reload() (agent.Reloaded, error)
	Exclude(workload string, until time.Time) bool
	Include(workload string) bool
}

// ServerOptions of a server.
type ServerOptions struct {
	Version string
	Log     *slog.Logger
}

// Server answers. It is safe for concurrent use.
type Server struct {
	agent    Agent
	o        ServerOptions
	write    func(unix.Peer) bool
	document map[string]any
	log      chan struct{} // held by the reader of the decision log: one at a time
	pace     *pace
}

// NewServer makes a server. The write group of the agent's configuration must exist.
func NewServer(a Agent, o ServerOptions) (*Server, error) {
	s := &Server{agent: a, o: o, log: make(chan struct{}, 1), pace: newPace()}
	gid := -1
	if name := a.Config().API.WriteGroup; name != "" {
		var err error
		if gid, err = agent.GroupID(name); err != nil {
			return nil, fmt.Errorf("api.write_group: %w", err)
		}
	}
	s.write = func(p unix.Peer) bool { return p.UID == 0 || gid >= 0 && p.In(uint32(gid)) }
	s.document = document(routes(), o.Version)
	return s, nil
}

// Serve answers until the context ends, and closes the listener.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	return s.serve(ctx, limit(l, mostLocal), s.Handler(), 30*time.Second)
}

// ServePublic answers over TCP: metrics and health. Clients there get less time.
func (s *Server) ServePublic(ctx context.Context, l net.Listener) error {
	return s.serve(ctx, limit(l, mostPublic), s.public(newDoor()), 10*time.Second)
}

func (s *Server) public(d *door) http.Handler {
	return s.handler(d, func(r route) bool { return r.public }, func(*http.Request) bool { return false })
}

type peerKey struct{}

func (s *Server) serve(ctx context.Context, l net.Listener, h http.Handler, write time.Duration) error {
	srv := &http.Server{
		Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: write, IdleTimeout: time.Minute,
		MaxHeaderBytes: 16 << 10, ErrorLog: log.New(quiet{s.o.Log}, "", 0), ConnContext: withPeer,
	}
	stop := context.AfterFunc(ctx, func() { srv.Close() })
	defer stop()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("api: %w", err)
	}
	return nil
}

// withPeer remembers the peer.
func withPeer(ctx context.Context, c net.Conn) context.Context {
	p, ok := peerOf(c)
	if !ok {
		return ctx
	}
	return context.WithValue(ctx, peerKey{}, p)
}

// quiet is net/http's log: a client's mistake is not a warning.
type quiet struct{ log *slog.Logger }

func (q quiet) Write(p []byte) (int, error) {
	q.log.Debug("api", "problem", strings.TrimSpace(string(p)))
	return len(p), nil
}

// peerIn is the peer of a request; where it is unknown, a peer without rights.
func peerIn(r *http.Request) unix.Peer {
	p, ok := r.Context().Value(peerKey{}).(unix.Peer)
	if !ok {
		p.UID = 1<<32 - 1
	}
	return p
}

// Handler answers all routes. The kernel's peer credentials decide who may write.
func (s *Server) Handler() http.Handler {
	return s.handler(newDoor(), func(route) bool { return true }, func(r *http.Request) bool {
		p, ok := r.Context().Value(peerKey{}).(unix.Peer)
		return ok && s.write(p)
	})
}

// maxBody bounds the body of a request: no route reads one.
const maxBody = 64 << 10

func (s *Server) handler(d *door, has func(route) bool, mayWrite func(*http.Request) bool) http.Handler {
	mux := http.NewServeMux()
	for _, rt := range routes() {
		if !has(rt) {
			continue
		}
		slots := d.slots
		if rt.slow {
			slots = s.log
		} else if rt.write || rt.health {
			slots = nil
		}
		mux.HandleFunc(rt.method+" "+rt.pattern, func(w http.ResponseWriter, r *http.Request) {
			if rt.slow {
				end, ok := s.pace.begin(r.Context(), peerIn(r))
				if !ok {
					s.send(w, http.StatusTooManyRequests, Failure{apiSchema, "the decision log is read for you already, or was just now: ask again in a few seconds"})
					return
				}
				defer end()
			}
			if got := d.make(r.Context(), slots, func(w http.ResponseWriter) { s.answer(rt, mayWrite, w, r) }); got != nil {
				d.send(w, got)
			}
		})
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		if _, pattern := mux.Handler(r); pattern == "" && r.Method != http.MethodOptions {
			s.notThere(w, r, mux)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// notThere answers as JSON where net/http would answer with text.
func (s *Server) notThere(w http.ResponseWriter, r *http.Request, mux *http.ServeMux) {
	probe := &headerOnly{header: http.Header{}}
	mux.ServeHTTP(probe, r)
	if probe.code == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", probe.header.Get("Allow"))
		s.send(w, probe.code, Failure{apiSchema, fmt.Sprintf("%s is not for this path", r.Method)})
		return
	}
	s.send(w, http.StatusNotFound, Failure{apiSchema, "no such path: GET /v1/openapi.json lists them"})
}

type headerOnly struct {
	header http.Header
	code   int
}

func (h *headerOnly) Header() http.Header         { return h.header }
func (h *headerOnly) Write(p []byte) (int, error) { return len(p), nil }
func (h *headerOnly) WriteHeader(code int)        { h.code = code }

func (s *Server) answer(rt route, mayWrite func(*http.Request) bool, w http.ResponseWriter, r *http.Request) {
	if rt.write && !mayWrite(r) {
		s.send(w, http.StatusForbidden, Failure{apiSchema, "this changes something: it is for root, or for the group that the configuration names as api: write_group"})
		return
	}
	if rt.plain != nil {
		rt.plain(s, w, r)
		return
	}
	v, err := rt.handle(s, r)
	if err != nil {
		code := http.StatusInternalServerError
		if f := (failure{}); errors.As(err, &f) {
			code = f.status
		}
		s.send(w, code, Failure{apiSchema, err.Error()})
		return
	}
	s.send(w, http.StatusOK, v)
}

// send writes JSON. What cannot be JSON is an error before anything was sent: the encoder
// writes everything at once, at its end.
func (s *Server) send(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", jsonMedia)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	late := &lateHeader{w: w, code: code}
	if err := schema.NewEncoder(late).Encode(v); err != nil && !late.sent {
		s.o.Log.Error("api", "error", err)
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, `{"error":"the answer cannot be written"}`+"\n") // the client is gone
	}
}

// lateHeader sends the status with the first byte.
type lateHeader struct {
	w    http.ResponseWriter
	code int
	sent bool
}

func (l *lateHeader) Write(p []byte) (int, error) {
	if !l.sent {
		l.sent = true
		l.w.WriteHeader(l.code)
	}
	return l.w.Write(p)
}

func isNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }
func isNoReload(err error) bool { return errors.Is(err, agent.ErrNoReload) }

// resident is this process's resident memory: the second figure of /proc/self/statm, pages.
func resident() unit.Opt[unit.Bytes] {
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return unit.None[unit.Bytes]()
	}
	fields := strings.Fields(string(data))
	if len(fields) < 2 {
		return unit.None[unit.Bytes]()
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	return unit.OptOf(unit.Bytes(pages)*unit.Bytes(os.Getpagesize()), err == nil)
}
