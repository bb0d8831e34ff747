// SPDX-License-Identifier: Apache-2.0

// Package exact is arithmetic that gives the same bits on every machine: what the
// simulator needs beyond + − × ÷ and the square root, which IEEE 754 fixes.
//
//	same seed ─▶ same random numbers ─▶ same bytes, on amd64 as on arm64
//
// Two things would break that. math.Exp and math.Log have assembly of their own on
// some architectures; here they are in plain Go. And a compiler may fuse x*y + z
// into one rounding where the CPU can, also across statements and inlined calls
// (arm64, ppc64le, s390x, amd64 from v3 on; the Go specification, "Floating-point
// operators"): an explicit conversion, float64(x*y) + z, forbids
// it. All packages below sim/ write their products so; a test looks for fused
// instructions in what is compiled for arm64.
//
// Not for: speed, or arguments outside of what the simulator has.
package exact
