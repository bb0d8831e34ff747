// SPDX-License-Identifier: Apache-2.0

// Package serve runs the agent together with its API, metrics, SIGHUP, and
// systemd's notifications.
//
//	Run ─┬─ agent.Run
//	     └─ API, metrics, reload on SIGHUP, watchdog: they end with it
//
// The API answers local programs over a unix socket: HTTP, JSON, with an OpenAPI document
// made from the same table of routes and the same Go types.
//
//	curl --unix-socket /run/homenode/api.sock http://homenode/v1/status
//
//	socket 0660 root:GROUP ─▶ the peer (from the kernel) ─▶ route ─▶ agent.View, Health,
//	                          read: the socket's group            Reload, Exclude
//	                          write: root, or write_group
//
// A request never waits for the loop, nor the loop for a request: answers come from the
// view of the last round. Over TCP, if that is configured, there are only metrics and
// health.
//
// It uses net/http and a schema made by reflection, instead of huma. huma takes 2.3 MB
// more resident memory (8.0 against 5.7) and 1 MB more program. That would be fine, but
// huma knows nothing of types with a wire form of their own (unit.Value, unit.Opt, sets),
// which most of a status consists of.
//
// Metrics are Prometheus' text format (0.0.4).
//
//	homenode_workload_local_access_ratio{workload="/demo/a",service="a"} 0.57
//	homenode_workload_source_info{workload="/demo/a",service="a",figure="local_access_ratio",source="modelled"} 1
//
// How a figure is known (measured, modelled or estimated) is a metric of its own, for a
// label that changes ends a series. A figure that is unknown has no series at all: 0 would
// be one. Counters start at 0, with all labels that they can have. Names with labels are bounded: nodes by the machine, workloads by
// metrics: max_workloads, services by the configuration.
//
// They are written by hand: the client library costs 3.7 MB of memory that stays resident
// (9.4 against 5.7 MB for a server with one gauge) and 4.4 MB of program, for a format that
// one loop prints; there are no counters here that live outside the agent's own status.
//
// Soak makes the agent play a recording, to measure its memory. Not for: what the agent
// decides.
package serve
