// SPDX-License-Identifier: Apache-2.0

// Package decisions keeps every decision as a line of JSON, for months:
//
//	{"schema":2,"at":"…","seq":12,"action":"bind /demo/a to nodes 1","kind":"bind",
//	 "workload":"/demo/a","service":"a",
//	 "reason":{"rule":"mao.bind","workload":"/demo/a","numbers":[…],"alternatives":[…]}}
//
// A decision is an action, or a refusal (there is no place for a workload) if that is new.
// The status says why everything else was left alone. render/words makes sentences of
// reasons. It is NOT the journal: nothing is restored from it, and lines that are lost on a
// full disk are only reported.
package decisions
