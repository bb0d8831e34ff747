// SPDX-License-Identifier: Apache-2.0

// Package serve runs the agent with what is around it: its API, metrics over TCP, SIGHUP,
// and systemd's notifications.
//
//	Run ─┬─ agent.Run
//	     └─ api, metrics, reload on SIGHUP, watchdog: they end with it
//
// Soak has it play a recording, for its memory. Not for: what the agent decides.
package serve
