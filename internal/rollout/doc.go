// SPDX-License-Identifier: Apache-2.0

// Package rollout decides how a service is bound replica by replica, and whether that stays
// (the deployment client of MAO, Liu and others, §4.4).
//
//	Plan ─▶ State ──Step(what every replica shows in one bin of time)──▶ State, Events
//
//	before ─▶ canary ─▶ wider ─▶ half ─▶ all ─▶ done
//	   └──────────┴────────┴───────┴───────┴──▶ rolled back, with the reason
//
// A replica is compared with itself before, and with the replicas that are not bound yet over
// the same bins, so that neither the time of day nor a replica that is always slower counts. A
// stage is widened only when more harm than the margin is excluded. The tests may be looked at
// after every bin (Evidence).
//
// It is NOT for: reading what replicas show, or giving orders to hosts (hub).
package rollout
