// SPDX-License-Identifier: Apache-2.0

// Package record saves a machine as a tree of files, so that a bug report is a
// file, and reads it back.
//
//	fs.FS of a root ── Gather: patterns, filters ──▶ Tree ──┬─▶ Save: .tar.gz or folder
//	                                                        └─▶ FS: read like any other tree
//	.tar.gz ── Load ──▶ Tree
//
// What is saved is an allow-list: a file that no pattern names is not opened, and the
// text of a named file is limited too (see filter.go). There are no links, serial
// numbers, host names, hardware addresses or command lines.
//
// It is NOT for: recordings of windows over time, or trees that other programs made
// (kernel.Root reads those).
package record
