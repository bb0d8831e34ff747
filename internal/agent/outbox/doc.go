// SPDX-License-Identifier: Apache-2.0

// Package outbox keeps what an agent saw until the hub has it.
//
//	round ── Offer (never waits) ──▶ queue ──▶ pack ──▶ spool ──▶ Send ──▶ settled: forgotten
//	                                             │           └ back-off while the hub is away
//	                                             └ over budget: the oldest go first, counted
//
// A batch gets its number and its bytes once, before it is written: whatever crashes, the
// same number is never sent with other content. What a crash loses was not yet in the spool;
// what it repeats is a duplicate, which the hub ignores. The sender also pulls the orders and
// renews the host's certificate.
//
// Not for: what is in a batch (agent), its format (wire), or who may send (hub).
package outbox
