// SPDX-License-Identifier: Apache-2.0

// Package host has bench measure the machine this runs on, within what this process may
// use, into a file.
//
//	Places ─▶ bench.Options ─▶ Measure: bench ─▶ kernel/membench, by the lab's clock in there
//
// Not for: what is measured, and when it ends, which is bench's.
package host
