// SPDX-License-Identifier: Apache-2.0

// Package hub receives what agents send and keeps it in the store.
//
//	agents ─ mTLS ─▶ admit: who, room ─▶ Send: unpack, bound ─▶ gather ─▶ Store.Add ─▶ answer
//	                   └─ refused: counted and kept with its reason (Refusals)
//
// A host is who its certificate says. An answer comes after the store has the batches. The
// hub has no state but the store and the files of its authority, so replicas are alike. What
// waits is bounded by the number of requests: with a slow store, further agents are told to
// come back later, and they keep their batches.
//
// Beside that, a Chooser starts rollouts of what is on a list, worth it and fits.
//
// Not for: questions and pages (beside it in cmd/homenode-hub), or making certificates (ca).
package hub
