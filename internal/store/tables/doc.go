// SPDX-License-Identifier: Apache-2.0

// Package tables is what the stores share: their rows, their questions and their Parquet.
//
//	Window, Node ─▶ Fact (sums, each with its weight) ─▶ windows, nodes
//	                 │ added up: a Fact again            ─▶ …_minutes, …_hours
//	Question ─▶ Plan (which level answers which time) ─▶ SQL over facts ─▶ Table
//
// A row of a minute or an hour has the columns of a raw row, so any level answers any question,
// and a ratio is always a sum divided by a sum.
//
// Not for: reaching a database (sqlite, clickhouse).
package tables
