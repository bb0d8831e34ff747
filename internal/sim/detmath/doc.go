// SPDX-License-Identifier: Apache-2.0

// Package detmath has the mathematics of the simulator beyond + − × ÷ and the square root.
// It gives the same bits on every machine of an architecture.
//
//	same seed ─▶ same random numbers ─▶ same bytes
//
// Two things would break that. math.Exp of amd64 has assembly that fuses multiplications
// and additions where the CPU can, so its last bit depends on the CPU. And the streams of
// math/rand have no names: one more workload would change the numbers of all others.
//
// Architectures differ: Go rounds a product before it adds it on amd64, and may round only
// once on arm64 (the Go specification, "Floating-point operators"). See
// docs/decisions/0018-simulated-world.md.
//
// It is NOT for: speed, or arguments that the simulator does not use.
package detmath
