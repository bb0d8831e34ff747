// SPDX-License-Identifier: Apache-2.0

// Package migrate moves a running workload's memory to other nodes, as one job with an
// end and a report.
//
//	Job ─▶ target, checks ─▶ census ─▶ estimate ─▶ room? ─▶ (freeze) move (thaw) ─▶ census ─▶ Report
//
// Whatever ends it, what was moved is reported and what was frozen is thawed. The pages
// are moved by kernel/migrate; migration has the kinds, the estimate and the report. Not
// for: where new pages go, which is the agent's.
package migrate
