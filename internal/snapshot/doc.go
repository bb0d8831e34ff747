// SPDX-License-Identifier: Apache-2.0

// Package snapshot is one closer look at a host. It holds what a window has no room
// for, because it costs more to read than a round of the agent may cost, or because
// only a person or the doctor asks for it.
//
//	kernel ──▶ Snapshot{Machine, Window, nodes by kind, processes, IRQs, samples} ──▶ stat, doctor
//
// Like a window it is a value: figures carry their source, and unknown is not zero. A
// snapshot can be saved, and judged elsewhere.
//
// Not for: reading anything (kernel), judging anything (doctor).
package snapshot
