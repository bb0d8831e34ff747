// SPDX-License-Identifier: Apache-2.0

// Package affinity puts single threads on CPUs, by sched_setaffinity(2). It is an owner
// behind the journal: it cannot act without a permit.
//
//	Step{pin-thread, 1240, CPUs 5}           thread 1240 affinity = 5, until it is put back
//	Step{pin-thread, 1240, CPUs 5, release}  … = 5, and at once what it was
//	Step{pin-thread, 1240, CPUs none}        … = what it was
//
// A thread's id may be used again, so a thread is identified by its id and its start time
// together. A thread with another start is never touched, neither by a record nor by a
// step (Step.Start).
//
// A thread that was allowed all of its cpuset most likely had no affinity of its own. It
// is recorded as "*0-5", and gets all CPUs back: then it follows later changes of the
// cpuset, too (user_cpus_ptr in kernel/sched/core.c, since 6.2).
//
// A new thread inherits the affinity of the one that starts it. Inherited finds those that
// started since and have a value that was given to another thread of their process or
// cgroup.
//
// It is NOT for: choosing (policy/brm), what threads do (kernel.ThreadReader), or cgroups,
// whose settings it hands to the owner behind it.
package affinity
