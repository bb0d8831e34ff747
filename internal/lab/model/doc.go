// SPDX-License-Identifier: Apache-2.0

// Package model is the lab's memory model as the guest sees it: what it does, and its
// clocks.
//
//	plugin ── shared file ── BAR 2 ── Open ─▶ Clock, ProbeClock, MigrateClock
//
// It is all of the lab that homenode itself has: what is measured in there is timed by
// the model's clocks, down to those of single vCPUs, and is marked as modelled. Not for:
// booting a guest.
package model
