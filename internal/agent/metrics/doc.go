// SPDX-License-Identifier: Apache-2.0

// Package metrics writes an agent's figures in Prometheus' text format (0.0.4).
//
//	homenode_workload_local_access_ratio{workload="/demo/a",service="a",source="modelled"} 0.57
//
// If a figure may be known in several ways, its label source says how: measured,
// modelled or estimated. An unknown figure has no series at all, because 0 would be a
// figure. The number of series is bounded: nodes by the machine, workloads by metrics:
// max_workloads, services by the configuration.
//
// Written by hand: the client library costs 3.7 MB of resident memory (9.4 against 5.7
// MB for a server with one gauge) and 4.4 MB of program, for a format that one loop
// prints. All counters are part of the agent's own status.
package metrics
