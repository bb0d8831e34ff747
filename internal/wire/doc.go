// SPDX-License-Identifier: Apache-2.0

// Package wire is the format between agents and the hub.
//
//	agent: store.Batch ── Pack ──▶ bytes (snappy of a message) ──▶ spool, network
//	hub:   bytes ── Unpack ──▶ store.Batch, or a Refusal with its reason
//
// The bytes of a batch are made once: what is in the spool is what is sent, however often.
// Unpack takes bytes from hosts that may be broken or hostile. It bounds bytes before and
// after decompression, rows, arrays and names, and refuses figures that cannot be.
//
// Not for: who may send (hub), or how long an agent keeps what it could not send
// (agent/outbox).
package wire
