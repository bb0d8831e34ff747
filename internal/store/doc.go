// SPDX-License-Identifier: Apache-2.0

// Package store is the NUMA status database: what every host saw, decided and did.
//
//	agent ── windows ──▶ wire ──▶ hub ──▶ Store.Add(Batch)     (sqlite, clickhouse)
//	                                      Store.Ask(question) ──▶ query, page, Grafana
//
// A row says how its locality is known; unknown is NULL and not zero. A batch has a key of its
// own (host, run of the agent, number), so the same batch twice is one. Old windows are rolled
// up: raw, then minutes, then hours.
//
// Not for: reading a host (kernel), the wire's format (wire), or who may write (hub).
package store
