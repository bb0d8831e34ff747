// SPDX-License-Identifier: Apache-2.0

// Package decisions keeps every decision as a line of JSON, for months:
//
//	{"schema":2,"at":"…","seq":12,"action":"bind /demo/a to nodes 1","kind":"bind",
//	 "workload":"/demo/a","service":"a",
//	 "reason":{"rule":"mao.bind","workload":"/demo/a","numbers":[…],"alternatives":[…]}}
//
// A decision is an action, or that there is no place for a workload, when that is
// new. Why everything else was left alone is in the status. render/words makes sentences of
// reasons. It is NOT the journal:
// nothing is put back by it, and what it loses on a full disk is only told.
package decisions
