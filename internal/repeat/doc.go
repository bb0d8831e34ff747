// SPDX-License-Identifier: Apache-2.0

// Package repeat runs a command again and again under several placements, and compares.
//
//	Options ─▶ arms ─▶ trial.Plan ─▶ launch.Run, each ─▶ trial.Variation.Judge
//
// In the lab, with the model on, the times are the model clock's. Not for: starting one program placed.
package repeat
