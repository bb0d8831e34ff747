// SPDX-License-Identifier: Apache-2.0

// Package words makes sentences of reasons, steps and outcomes. Policies and actuate
// return codes and figures; this is the one place that has words for them.
//
//	Reason{rule, figures} ─▶ sentences[rule] ─▶ "25.0% of its accesses are local, the …"
//	Outcome{step, status, why} ───────────────▶ "set-cpus /a 2-3: refused: its cgroup may …"
//
// To add a rule, add its sentence to sentences.go; a test finds every rule that a policy
// gives and fails without one. A sentence says which condition decided, and with which
// figures.
//
// It is NOT for: deciding anything, or laying text out (tables, pages, screens).
package words
