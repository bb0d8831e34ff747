// SPDX-License-Identifier: Apache-2.0

// Package replay decides a recording again, by two configurations, and says what
// would have been different.
//
//	recording ─▶ window ─┬─▶ then: mao.Step by the recorded configuration ─▶ bindings ─┐
//	                     └─▶ now:  mao.Step by another one ─────────────────▶ bindings ─┴─▶ Result
//
// A recorded day cannot react: its windows are those of what was really done, and in
// them no workload moves because this package decided so. Both arms run on as if each
// binding had been done at once, and see it in the next window as the workload's
// setting; local access, CPU time and pages by node stay as recorded. So counts of
// decisions are estimates, good where few differ, and what a decision would have
// brought is not told at all: that is for the simulator (sim) and the lab.
package replay
