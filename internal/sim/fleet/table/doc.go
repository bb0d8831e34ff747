// SPDX-License-Identifier: Apache-2.0

// Package table writes a fleet's data set as Parquet.
//
//	fleet.Run ─rows─▶ Writer ─▶ bytes, with what made them: schema, generator, seed
//
// The same rows give the same bytes. It is the only package that knows Parquet.
//
// It is NOT for: what is in a row (sim/fleet), or files (cmd).
package table
