// SPDX-License-Identifier: Apache-2.0

// Package dataset writes a few rows as a Parquet file, without a library.
//
//	[]Row, metadata ─▶ a page for each column (PLAIN, not compressed) ─▶ footer (Thrift) ─▶ file
//
// The library (parquet-go, which the simulator's large data sets need) makes the installed
// program 7.4 MB larger and each start 3 MB of memory (decision 0064). A test holds that it
// reads these files as they were written.
//
// It is NOT for: reading, nested columns, or data sets that do not fit into memory.
package dataset
