// SPDX-License-Identifier: Apache-2.0

// Package sqlite keeps the status database in one file, without a server.
//
//	Add ─▶ one transaction: batch's key · raw rows · their minutes and hours, added up
//	Ask ─▶ hours | minutes | raw ─▶ Table
//	SQL ─▶ a connection of its own that can only read
//
// Roll-ups grow with each row, so that late rows are in them too. Files and times are real here.
//
// Not for: fleets of more than some thousand workloads (clickhouse).
package sqlite
