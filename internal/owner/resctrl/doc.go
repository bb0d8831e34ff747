// SPDX-License-Identifier: Apache-2.0

// Package resctrl keeps workloads to a part of the last-level caches (CAT) and of the
// memory bandwidth (MBA), through the kernel's resctrl file system. It is an owner
// behind the journal: it cannot act without a permit.
//
//	Step{set-class /demo/a, cache 20 %, bandwidth 50 %}
//	  resctrl homenode-ctl-demo_a-… group    = made
//	                                schemata = L3:0=3c000;1=3c000 MB:0=50;1=50
//	                                tasks    = all        its threads, newcomers with each step
//	Step{set-class /demo/a, none}
//	                                group    = ""         its threads are in the default group again
//
// The group is made for this workload alone and has a name of ours, so removing it undoes
// everything: that is what the journal records first. Threads that another process has
// grouped are refused, and so is a workload whose owner is left alone (kubelet, CRI-O,
// Podman, libvirt).
//
// It is NOT for: deciding who is isolated (policy), reading counters (kernel/resctrl).
package resctrl
