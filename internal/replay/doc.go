// SPDX-License-Identifier: Apache-2.0

// Package replay repeats the decisions of a recording with two configurations,
// and shows the differences.
//
//	recording ─▶ window ─┬─▶ then: mao.Step by the recorded configuration ─▶ bindings ─┐
//	                     └─▶ now:  mao.Step by another one ─────────────────▶ bindings ─┴─▶ Result
//
// A recording cannot react: its windows show what was really done, and no workload in
// them moves because of a decision here. Both arms assume that each of their bindings
// was done at once, and see it in the next window as the workload's setting; local
// access, CPU time and pages by node stay as recorded. So counts of decisions are
// estimates, which are good if few decisions differ. The gain of a decision is not
// reported at all: the simulator (sim) and the lab are for that.
package replay
