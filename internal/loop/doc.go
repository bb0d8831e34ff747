// SPDX-License-Identifier: Apache-2.0

// Package loop runs the whole of MAO's loop on simulated hosts, with the parts that a fleet has:
// its store, its model, its rollouts, and the policy of an agent.
//
//	hosts (sim) ─windows─▶ store ─features─▶ model ─▶ worth binding ─▶ rollouts ───┐
//	    ▲                    └──── what bound replicas show against the others ───▶│
//	    └────────── orders: which host may bind which service ◀───────────────────┘
//
// It is a demonstration and a test of how the parts fit together; its clock is simulated, and
// every figure is modelled.
//
// It is NOT for: deciding anything itself (rollout, hub/sensitivity, policy/mao).
package loop
