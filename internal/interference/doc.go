// SPDX-License-Identifier: Apache-2.0

// Package interference infers what the workloads of recordings are beside others (sheep,
// rabbit or devil), and a machine's constants for that inference.
//
//	recordings ─▶ window ─▶ animal.Learn ─▶ Result: class, slowdowns, what is in doubt
//	     └─ of five references ─▶ Sample ─▶ animal.Calibrated ─▶ constants
//
// It is NOT for: how classes are inferred (policy/vmmap), placing workloads, or reading
// files.
package interference
