// SPDX-License-Identifier: Apache-2.0

// Package containerd acts on containerd's containers through its gRPC API, over its unix
// socket. It is an owner behind the journal: it cannot act without a permit.
//
//	Step{set-cpus, /default/own, 2-3}
//	   ──Plan──▶ container containerd/default/own cpuset.cpus = 2-3
//	journal ──Read───▶ the file of the container's cgroup
//	        ──Write──▶ containerd.services.tasks.v1.Tasks/Update   {"cpu": {"cpus": "2-3"}}
//
// The runtime (runc) sets the cgroup, and with systemd's cgroups the scope's AllowedCPUs.
// containerd keeps no record of it: the setting ends with the task. So the value is read
// from the cgroup, and a cgroup that was made anew is another one.
//
// An empty set means "as it was" to containerd, and the kernel refuses it for a cgroup
// with processes. A container that had no set therefore gets everything that its cgroup's
// parent has.
//
// It is NOT for: the namespaces moby and k8s.io, whose owners keep their own records;
// making or finding containers; moving pages itself.
package containerd
