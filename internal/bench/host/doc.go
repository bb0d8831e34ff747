// SPDX-License-Identifier: Apache-2.0

// Package host runs bench on this machine, within what this process may use, and writes
// the result into a file.
//
//	Places ─▶ bench.Options ─▶ Measure: bench ─▶ kernel/membench, by the lab's clock in there
//
// Not for: choosing what is measured, and when it ends, which is bench's.
package host
