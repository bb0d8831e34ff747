// SPDX-License-Identifier: Apache-2.0

// Package action holds what policies ask for, why they ask, and what became of
// it. It is data only: nothing here decides and nothing here acts. A reason is codes and
// figures; render/words makes sentences of them.
//
//	policy ── Action{Bind svc → node 1, Reason} ──▶ actuate ──▶ Step ──▶ owner
//	window ◀── Outcome{done, refused, drifted, …} ◀───────────────────────┘
//
// Not for: Linux, files, clocks.
package action
