// SPDX-License-Identifier: Apache-2.0

// Package serve runs the agent together with its API, metrics over TCP, SIGHUP, and
// systemd's notifications.
//
//	Run ─┬─ agent.Run
//	     └─ api, metrics, reload on SIGHUP, watchdog: they end with it
//
// Soak makes it play a recording, to measure its memory. Not for: what the agent
// decides.
package serve
