// SPDX-License-Identifier: Apache-2.0

// Package interference says what the workloads of recordings are beside others (sheep, rabbit
// or devil), and what a machine's constants are that this is told by.
//
//	recordings ─▶ window ─▶ animal.Learn ─▶ Result: class, slowdowns, what is in doubt
//	     └─ of five references ─▶ Sample ─▶ animal.Calibrated ─▶ constants
//
// It is NOT for: how classes are inferred (policy/vmmap), placing anybody, or reading
// files.
package interference
