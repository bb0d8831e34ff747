// SPDX-License-Identifier: Apache-2.0

// Package decisions keeps every decision as a line of JSON, for months:
//
//	{"schema":2,"at":"…","seq":12,"action":"bind /demo/a to nodes 1","kind":"bind",
//	 "workload":"/demo/a","service":"a",
//	 "reason":{"rule":"mao.bind","workload":"/demo/a","numbers":[…],"alternatives":[…]}}
//
// A decision is an action, or that there is no place for a workload, when that is
// new. Why everything else was left alone is in the status. render/words makes sentences of
// reasons.
//
// File holds such lines, and an agent's recording. It may grow for years on a disk that may
// be full: bounded in size and number, whole lines only.
//
//	decisions.jsonl ─▶ decisions.jsonl.1 ─▶ decisions.jsonl.2 ─▶ removed
//	   (newest)
//
// A line that does not fit on the disk is taken back, so that no half of it stays; the next
// one tries again.
//
// It is NOT the journal: nothing is put back by it, and what is lost on a full disk is only
// reported.
package decisions
