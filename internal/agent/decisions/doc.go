// SPDX-License-Identifier: Apache-2.0

// Package decisions keeps every decision as a line of JSON, for months:
//
//	{"schema":1,"at":"…","seq":12,"action":"bind /demo/a to nodes 1","kind":"bind",
//	 "workload":"/demo/a","service":"a","rule":"mao.bind","summary":"…",
//	 "numbers":[…],"alternatives":[…]}
//
// A decision is an action, or that there is no place for a workload, when that is
// new. Why everything else was left alone is in the status. It is NOT the journal:
// nothing is put back by it, and what it loses on a full disk is only told.
package decisions
