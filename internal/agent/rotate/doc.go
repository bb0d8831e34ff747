// SPDX-License-Identifier: Apache-2.0

// Package rotate writes files of lines that may grow for years on a disk that may
// be full: bounded in size and number, whole lines only.
//
//	decisions.jsonl ─▶ decisions.jsonl.1 ─▶ decisions.jsonl.2 ─▶ removed
//	   (newest)
//
// A line that does not fit on the disk is removed, so that no half of it stays; the
// next one tries again. It is NOT for what must not be lost: that is the journal.
package rotate
