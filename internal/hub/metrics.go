// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"github.com/prometheus/client_golang/prometheus"

	"homenode/internal/wire"
)

// The reasons that are not of a batch.
const (
	reasonUnknown = "unknown_client"
	reasonExpired = "expired_client"
	reasonRevoked = "revoked_client"
	reasonToken   = "token"
	reasonStore   = "store" // the store does not take these rows, ever
	reasonBusy    = "busy"  // the store takes no rows now: deferred
)

type metrics struct {
	registry                       *prometheus.Registry
	kept, duplicate, busy          prometheus.Counter
	refused, rows                  *prometheus.CounterVec
	addTime                        prometheus.Histogram
	storeErrors, enrolled, renewed prometheus.Counter
}

func newMetrics(h *Server) *metrics {
	m := &metrics{registry: prometheus.NewRegistry()}
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: "homenode_hub_" + name, Help: help})
		m.registry.MustRegister(c)
		return c
	}
	vec := func(name, help, label string, always ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "homenode_hub_" + name, Help: help}, []string{label})
		m.registry.MustRegister(c)
		for _, v := range always {
			c.WithLabelValues(v)
		}
		return c
	}
	m.kept = counter("batches_kept_total", "Batches that the store took.")
	m.duplicate = counter("batches_duplicate_total", "Batches that the store had before.")
	m.busy = counter("busy_total", "Requests that were told to come back later.")
	reasons := []string{reasonUnknown, reasonExpired, reasonRevoked, reasonToken, reasonStore, reasonBusy}
	for _, r := range wire.Reasons {
		reasons = append(reasons, string(r))
	}
	m.refused = vec("refused_total", "Batches, clients and tokens that were refused, by reason; newer and busy: deferred.", "reason", reasons...)
	m.rows = vec("rows_total", "Rows that arrived, those of duplicates included.", "kind", "node", "window", "decision", "outcome")
	m.storeErrors = counter("store_errors_total", "Writes that the store did not take.")
	m.enrolled = counter("enrolled_total", "Certificates given for a token.")
	m.renewed = counter("renewed_total", "Certificates given for an older one.")
	m.addTime = prometheus.NewHistogram(prometheus.HistogramOpts{Name: "homenode_hub_store_seconds", Help: "Time of a write to the store.", Buckets: []float64{.005, .02, .1, .5, 2, 10, 60}})
	m.registry.MustRegister(m.addTime, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "homenode_hub_waiting_requests", Help: "Requests that are being read or wait for the store."},
		func() float64 { return float64(len(h.slots)) }))
	info := prometheus.NewGauge(prometheus.GaugeOpts{Name: "homenode_hub_build_info", Help: "Always 1; the version is in the label.", ConstLabels: prometheus.Labels{"version": h.o.Version}})
	info.Set(1)
	m.registry.MustRegister(info)
	return m
}
