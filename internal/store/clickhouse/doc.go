// SPDX-License-Identifier: Apache-2.0

// Package clickhouse keeps the status database of a fleet in ClickHouse.
//
//	Add ─▶ attempt begins · rows · keys of batches · attempt ends: from then on its rows count
//	Maintain ─▶ minutes and hours of attempts that ended, also an attempt · days dropped
//	Ask ─▶ hours | minutes | raw, without attempts that have not ended ─▶ Table
//
// ClickHouse has no transactions. An attempt that did not end within the lease is dead: its rows
// never count, and its batches may be added again. SQL works with servers from 18.16 on.
//
// Not for: replicas and shards of ClickHouse itself (its tables are plain MergeTree).
package clickhouse
