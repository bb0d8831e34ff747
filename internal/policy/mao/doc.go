// SPDX-License-Identifier: Apache-2.0

// Package mao is MAO's optimizer (Liu et al., Baidu + Intel: Memory Access
// Optimizer): a pure function from a machine, a configuration, a state and a
// window to the next state, what to bind and unbind, and why.
//
//	             ┌──────────────── State ◀───────────────┐
//	             ▼                                       │
//	window ─▶ remember ─▶ outcomes ─▶ unbind? ──yes──────┼─▶ Action{Unbind}
//	             │                      │ no             │
//	             │                    widen? ──yes───────┼─▶ Action{Bind, more nodes}
//	             │                      │ no             │
//	             │                      ▼                │
//	             │          candidates ─▶ place ─────────┴─▶ Action{Bind, nodes}
//	             │          contention ──────────────────┴─▶ Action{Isolate}, Action{Escalate}
//	             └─▶ one Reason for every workload, also for those left alone
//
// The round (Step), with the paper's workflow:
//
//  1. Remember: node utilisations, smoothed CPU demand and the local access
//     ratio of each workload go into the state.
//  2. Outcomes of earlier actions: a refused or drifted binding is forgotten and
//     the workload backs off; homenode never fights over a setting.
//  3. Unbind (paper: "does any bound instance have to be unbound?"). Bound to a
//     node that went away, or no longer approved: unbind. Else strategy A or B;
//     of those that must go the one with the least CPU use first, on the hottest
//     node; then judge again on projected utilisation, until balanced.
//  4. Widen (not in the paper): a binding whose nodes are about to run out of memory
//     gets more nodes, before the kernel kills; see widen.go.
//  5. Bind, only if nothing was unbound or widened: workloads that are approved and whose
//     local access ratio misses its target, by remote traffic. The placement is
//     what the paper leaves to the cluster scheduler: the node with enough CPU,
//     memory and bandwidth left; see place.go.
//  6. Make room (not in the paper): where the kernel leaves an unbound workload
//     on CPUs that a bound one needs, while others are idle, it is kept to
//     nodes that nothing is bound to, its CPUs only; see room.go.
//  7. Follow up (the paper's future work): where a bound workload is at home and still
//     does worse than it did at the same load, without lack of CPU, a neighbour is
//     isolated; if nothing helps, that is escalated; see isolate.go.
//
// Strategy A: unbind iff the workload exceeds its quota and its node is more
// than 80 % busy. Strategy B (production): iff a node is 10–15 % busier than the
// others, and busier than the P95 of its own history, and the workload exceeds
// its quota. Where our reading of the paper is a choice, the code says "choice".
//
// What "exceeds its quota" means where no quota is set, or one that is no
// smaller than the CPUs of the binding: then the binding is what limits the
// workload, and the condition is that it uses at least SaturatedShare (98 %) of
// those CPUs. A direct signal (time spent runnable but waiting) would be better;
// windows do not have it yet. A quota below the binding's CPUs that the kernel
// enforces (cpu.max) can hardly be exceeded, so such a workload stays bound: its
// quota holds it back, not its binding.
//
// A reason is a rule and the figures that it looked at; render/words makes the sentence.
// Products are converted before they are added (float64(a*b) + c): compilers for arm64
// round such a pair once instead of twice, and a decision must not depend on the machine
// that it is made on.
//
// It is NOT for: acting (actuate, owner), reading (kernel), or deciding which
// services are approved (the offline side).
package mao
