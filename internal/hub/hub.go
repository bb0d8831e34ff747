// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"homenode/internal/hub/ca"
	"homenode/internal/store"
	"homenode/internal/wire"
	"homenode/internal/wire/wirepb"
)

// Options are the options of a server. The zero value of each has a default.
type Options struct {
	Authority  *ca.Authority // needed for Handler and TLS
	Names      []string      // host names and addresses of this hub, for its certificate
	OrdersFile string        // "": no orders
	// Rollouts are the orders for services that are rolled out, for one host; nil: none.
	Rollouts func(host string) []ServiceOrder
	// Requests is how many requests may wait for the store at once (default 16). Each takes
	// at most some 40 MB. More gather larger inserts; fewer bound memory.
	Requests int
	// Gather is how long the first of several requests waits for others, so that the store
	// takes them together (default 0: only while the store is busy).
	Gather  time.Duration
	Version string
	Log     *slog.Logger
	Now     func() time.Time
}

// Server is a hub. It is safe for concurrent use.
type Server struct {
	store    store.Store
	o        Options
	orders   ordersFile
	metrics  *metrics
	refusals refusals
	slots    chan struct{}
	adds     chan *add
	failing  atomic.Bool // the last Add failed
	mu       sync.Mutex
	own      *tls.Certificate
	stop     context.CancelFunc
	ended    sync.WaitGroup
}

// New starts a hub over a store. Close ends it; the store stays open.
func New(s store.Store, o Options) *Server {
	if o.Requests == 0 {
		o.Requests = 16
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	h := &Server{store: s, o: o, orders: ordersFile{path: o.OrdersFile}, slots: make(chan struct{}, o.Requests), adds: make(chan *add, o.Requests)}
	h.metrics = newMetrics(h)
	ctx, stop := context.WithCancel(context.Background())
	h.stop = stop
	h.ended.Go(func() { h.write(ctx) })
	return h
}

// Close ends the writing. Requests that still wait are answered as busy.
func (h *Server) Close() {
	h.stop()
	h.ended.Wait()
}

// leastZipped is the bytes of an answer that is worth an agent's CPU time: many orders.
const leastZipped = 16 << 10

// Handler serves agents. It belongs behind a listener with TLS's configuration.
func (h *Server) Handler() http.Handler {
	path, service := wirepb.NewHubHandler(calls{h}, connect.WithReadMaxBytes(wire.MostSend+1<<10), connect.WithCompressMinBytes(leastZipped))
	mux := http.NewServeMux()
	mux.Handle(path, h.admit(service))
	return mux
}

// AddRoutes adds metrics and health: they are for the network of the operators.
func (h *Server) AddRoutes(mux *http.ServeMux) {
	mux.Handle("GET /metrics", promhttp.HandlerFor(h.metrics.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("alive\n")) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if h.failing.Load() {
			http.Error(w, "the store takes no rows now", http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ready\n"))
	})
}

// Registry is where the metrics of the hub are, for those of its neighbours.
func (h *Server) Registry() *prometheus.Registry { return h.metrics.registry }

// Named says whether the file of orders names a service.
func (h *Server) Named(service string) (bool, error) {
	o, err := h.orders.read()
	return err == nil && o.Names(service), err
}

// ValidFor is how long hosts follow the orders after they last pulled them.
func (h *Server) ValidFor() time.Duration {
	if o, err := h.orders.read(); err == nil {
		return o.ValidFor
	}
	return usualValidFor
}

// Refusals are what was refused of late, newest first: of this replica.
func (h *Server) Refusals() []Refusal { return h.refusals.all() }

func (h *Server) refused(host, from, reason, detail string) {
	h.metrics.refused.WithLabelValues(reason).Inc()
	if h.refusals.add(Refusal{At: h.o.Now(), Host: host, From: from, Reason: reason, Detail: detail}) {
		h.o.Log.Warn("refused", "host", host, "from", from, "reason", reason, "detail", detail)
	}
}
