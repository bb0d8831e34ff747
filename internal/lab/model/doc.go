// SPDX-License-Identifier: Apache-2.0

// Package model is the lab's memory model as the guest sees it: its state, and its
// clocks.
//
//	plugin ── shared file ── BAR 2 ── Open ─▶ Clock, ProbeClock, MigrateClock
//
// homenode itself uses no other part of the lab. Measurements in the lab are timed by
// the model's clocks, down to those of single vCPUs, and are marked as modelled. Not
// for: booting a guest.
package model
