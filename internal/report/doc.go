// SPDX-License-Identifier: Apache-2.0

// Package report shows results to people: text for a terminal, Markdown for a ticket or a
// README, and pages.
//
//	doctor.Report         ──▶ Findings, FindingsMarkdown
//	snapshot.Snapshot     ──▶ Host, Workload, Processes, Maps     who uses what, and where
//	migration.Report      ──▶ Migration       before and after by kind, what stayed and why
//	experiment.Variation  ──▶ Variation, VariationMarkdown
//	experiment.Comparison ──▶ Comparison, ComparisonMarkdown, ComparisonHTML
//
// The faces of a result share one view of it, so they cannot disagree, and are a function
// of the result alone. Names come from outside, so nothing that a terminal, Markdown or HTML
// would obey gets through. Commands are never broken into lines: they are to be pasted. A
// column that a narrow terminal has no room for is left out, the least important first.
// Unknown is printed as unknown, never as 0; a difference within the noise is called that,
// and a modelled figure modelled.
//
// In a comparison the best of a column is marked whichever arm it is; the ceiling is labelled and
// takes no part.
//
// It is NOT for: judging what it shows (doctor, experiment), reading or running anything, or
// JSON, which is the result itself. Machines and profiles have pictures, and packages of
// their own: report/topology, report/profile.
package report
