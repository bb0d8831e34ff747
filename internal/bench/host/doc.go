// SPDX-License-Identifier: Apache-2.0

// Package host measures on the machine this runs on: what the machine does, within what
// this process may use, into a file; and what a command does under several placements.
//
//	Places ─▶ bench.Options ─▶ Measure: bench ─▶ kernel/membench, by the lab's clock in there
//	RepeatOptions ─▶ arms ─▶ experiment.Plan ─▶ launch.Run, each ─▶ experiment.Variation.Judge
//
// In the lab, with the model on, the times of a command are the model clock's. Not for: what
// bench measures, and when it ends, which is bench's; or starting one program placed.
package host
