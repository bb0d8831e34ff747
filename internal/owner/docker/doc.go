// SPDX-License-Identifier: Apache-2.0

// Package docker acts on Docker's containers through the Docker Engine API, over its unix
// socket. It is an owner behind the journal: it cannot act without a permit.
//
//	Step{set-cpus, /system.slice/docker-1a2b.scope, 2-3}
//	   ──Plan──▶ container docker/1a2b cpuset.cpus = 2-3
//	journal ──Read───▶ GET  /containers/1a2b/json     HostConfig.CpusetCpus
//	        ──Write──▶ POST /containers/1a2b/update   {"CpusetCpus": "2-3"}
//
// Three things are unlike a cgroup's own file:
//
//  1. What Docker was asked for it keeps with the container (hostconfig.json), over a
//     restart of the container and of the machine. The journal is of one boot, so what
//     was replaced is remembered in a file of its own, too (Memory).
//  2. Docker takes an empty set for "as it was": one that had none gets all that its
//     cgroup's parent has. docker inspect then shows that, until it is made anew.
//  3. What Docker keeps may be overruled in the cgroup: that is drift, and reported.
//
// It is NOT for: making or finding containers, or moving pages itself.
package docker
