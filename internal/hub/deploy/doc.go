// SPDX-License-Identifier: Apache-2.0

// Package deploy carries rollouts on: it reads what each replica shows from the store, lets
// package rollout decide, and keeps the state, from which the orders of hosts follow.
//
//	store ─ one bin of each replica ─▶ Runner ─ rollout.Step ─▶ Folder: one file a service
//	                                     │                        ├─▶ Orders: which hosts may bind it
//	people ─ start, pause, roll back ────┼──────────────────────▶ │
//	                                     └─ Webhook: people are told
//
// The file is written before an order follows from it. Several hubs may share a folder: whoever
// comes first takes a bin, and a bin that was taken is not taken again. Nothing here reaches a
// host: agents pull orders, and what they allow themselves is their own.
//
// It is NOT for: deciding (rollout), or what a host does with an order (agent).
package deploy
