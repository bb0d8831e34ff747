// SPDX-License-Identifier: Apache-2.0

// Package membench does small measured pieces of work on a live machine: threads
// pinned to CPUs, buffers placed on nodes, tight loops of loads, stores and
// atomic adds, pages moved.
//
//	Job{Buffers, Threads} ──Run──▶ map, bind, fill ─▶ pin ─▶ warm ─▶ start together ─▶ Result
//
// It is NOT for: deciding what to measure (bench), or judging it.
package membench
