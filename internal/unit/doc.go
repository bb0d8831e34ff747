// SPDX-License-Identifier: Apache-2.0

// Package unit holds the quantities that cross rooms, each with its unit, and
// the ways of saying how a figure is known or that it is not.
//
//	Bytes  Pages  Cycles  Ratio        a number that carries its unit
//	Opt[T]     = Some(v) | None        known or not; JSON: v | null
//	Value[T]   = Opt[T] + Source + From
//	             512 MiB, measured, from "memory.numa_stat"
//	             unknown,           from "no perf on this kernel"   (why)
//
// Units are converted once, in the parser that reads them. Unknown is never 0
// and never -1: it is None, or a Value whose How is HowUnknown.
//
// It is NOT for: time (use time.Duration), SLIT distances (plain int, no unit),
// formatting tables for people, or statistics over values.
package unit
