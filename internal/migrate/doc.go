// SPDX-License-Identifier: Apache-2.0

// Package migrate moves a running workload's memory to other nodes, as one job with an
// end and a report.
//
//	Job ─▶ target, checks ─▶ census ─▶ estimate ─▶ room? ─▶ (freeze) move (thaw) ─▶ census ─▶ Report
//
// However the job ends, it reports what was moved and thaws what was frozen.
// kernel/migrate moves the pages; migration has the kinds, the estimate and the report.
// Not for: the place of new pages, which the agent decides.
package migrate
