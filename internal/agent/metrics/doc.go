// SPDX-License-Identifier: Apache-2.0

// Package metrics writes what an agent knows in Prometheus' text format (0.0.4).
//
//	homenode_workload_local_access_ratio{workload="/demo/a",service="a",source="modelled"} 0.57
//
// Every figure that may be known in several ways says how in its label source:
// measured, modelled or estimated. One that is unknown has no series at all: 0 would be
// a figure. Names with labels are bounded: nodes by the machine, workloads by
// metrics: max_workloads, services by the configuration.
//
// Written by hand: the client library costs 3.7 MB of memory that stays resident (9.4
// against 5.7 MB for a server with one gauge) and 4.4 MB of program, for a format that
// one loop prints; there are no counters here that live outside the agent's own status.
package metrics
