// SPDX-License-Identifier: Apache-2.0

// Package threads puts single threads on CPUs, by sched_setaffinity(2). It is an owner
// behind the journal: it cannot act without a permit.
//
//	Step{pin-thread, 1240, CPUs 5}           thread 1240 affinity = 5, until it is put back
//	Step{pin-thread, 1240, CPUs 5, release}  … = 5, and at once what it was
//	Step{pin-thread, 1240, CPUs none}        … = what it was
//
// A thread's id may be used again: it is known by its id and its start together, and
// one of another start is never touched, be it on record or only seen (Step.Start).
//
// A thread that was allowed all that its cpuset allows had, most likely, no affinity of
// its own. It is recorded as "*0-5", and is given all CPUs back: what the cpuset gets
// later is the thread's then, too (user_cpus_ptr in kernel/sched/core.c, since 6.2).
//
// What a thread starts has its affinity. Heirs finds those that started since and have
// what was given to another thread of their process or cgroup.
//
// It is NOT for: choosing (policy/brm), what threads do (kernel/threads), or cgroups:
// their settings it hands to the owner behind it.
package threads
