// SPDX-License-Identifier: Apache-2.0

// Package docker acts on Docker's containers through the Docker Engine API, over its unix
// socket. It is an owner behind the journal: it cannot act without a permit.
//
//	Step{set-cpus, /system.slice/docker-1a2b.scope, 2-3}
//	   ──Plan──▶ container docker/1a2b cpuset.cpus = 2-3
//	journal ──Read───▶ GET  /containers/1a2b/json     HostConfig.CpusetCpus
//	        ──Write──▶ POST /containers/1a2b/update   {"CpusetCpus": "2-3"}
//
// Three things differ from a cgroup's own file:
//
//  1. Docker stores each requested set with the container (hostconfig.json), across
//     restarts of the container and of the machine. The journal is of one boot, so the
//     replaced value is also kept in a file of its own (Memory).
//  2. Docker takes an empty set for "as it was". A container that had no set gets
//     everything that its cgroup's parent has. docker inspect then shows that, until the
//     container is made anew.
//  3. What Docker stores may be overruled in the cgroup: that is drift, and reported.
//
// It is NOT for: making or finding containers, or moving pages itself.
package docker
