// SPDX-License-Identifier: Apache-2.0

// Package mao is MAO's optimizer (Liu et al., Baidu + Intel: Memory Access Optimizer). It
// is a pure function from a machine, a configuration, a state and a window to the next
// state, the binds and unbinds, and their reasons.
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
// The round (Step) follows the paper's workflow:
//
//  1. Remember: node utilisations, smoothed CPU demand and the local access
//     ratio of each workload go into the state.
//  2. Outcomes of earlier actions: a refused or drifted binding is forgotten and the
//     workload backs off. homenode never fights over a setting.
//  3. Unbind (paper: "does any bound instance have to be unbound?"). A workload is unbound
//     if a node of its binding went away, or if it is no longer approved; else by strategy A
//     or B. Of the workloads that must go, the one with the least CPU use on the hottest node
//     goes first; then all are judged again on projected utilisation, until balanced.
//  4. Widen (not in the paper): a binding whose nodes are about to run out of memory gets
//     more nodes, before the kernel kills the workload; see widen.go.
//  5. Bind, only if nothing was unbound or widened: approved workloads whose local access
//     ratio misses its target, by remote traffic. The paper leaves the placement to the
//     cluster scheduler: the node with enough CPU, memory and bandwidth left; see place.go.
//  6. Make room (not in the paper). The kernel may leave an unbound workload on CPUs that
//     a bound one needs, while others are idle. Then the CPUs of the unbound workload are
//     limited to nodes without bindings; its memory stays; see room.go.
//  7. Follow up (the paper's future work). If a bound workload is at home and still does
//     worse than it did at the same load, without lack of CPU, a neighbour is isolated. If
//     nothing helps, that is escalated; see isolate.go.
//
// Strategy A: unbind iff the workload exceeds its quota and its node is more than 80 %
// busy. Strategy B (production): unbind iff a node is 10–15 % busier than the others and
// busier than the P95 of its own history, and the workload exceeds its quota; by our choice
// it is also as busy as A asks. Where our
// reading of the paper is a choice, the code says "choice".
//
// A quota may be missing, or no smaller than the CPUs of the binding. Then the binding
// limits the workload, and "exceeds its quota" means that it uses at least SaturatedShare
// (98 %) of those CPUs. A direct signal (time spent runnable but waiting) would be better;
// windows do not have it yet. A quota below the binding's CPUs that the kernel enforces
// (cpu.max) can hardly be exceeded, so such a workload stays bound: its quota limits it,
// not its binding.
//
// A reason is a rule and its figures; render/words makes the sentence. Products are
// converted before they are added (float64(a*b) + c): compilers for arm64 round such a pair
// once instead of twice, and a decision must not depend on the machine that makes it.
//
// It is NOT for: acting (actuate, owner), reading (kernel), or deciding which
// services are approved (the offline side).
package mao
