// SPDX-License-Identifier: Apache-2.0

// Package repeat runs a command many times under several placements, and compares them.
//
//	Options ─▶ arms ─▶ trial.Plan ─▶ launch.Run, each ─▶ trial.Variation.Judge
//
// In the lab, with the model on, the times are those of the model's clock. Not for: starting one placed
// program.
package repeat
