// SPDX-License-Identifier: Apache-2.0

// Package report shows a comparison to people: a table for a terminal, the same
// as Markdown for a README, and a self-contained page with charts.
//
//	trial.Comparison ──▶ clean ──▶ grids (rows, columns, who is best) ──▶ Text
//	                          ├──▶ headline (computed, also when it is bad) ▶ Markdown
//	                          └──▶ charts (geometry only) ───────────────▶ HTML
//
// The three faces share one set of grids, so they cannot disagree. The best of a column
// is marked, whichever arm it is; the ceiling is labelled and takes no part. The output
// is a function of the comparison alone.
//
// It is NOT for: deciding whether a target is met (the comparison has that), statistics
// (experiment), or running anything.
package report
