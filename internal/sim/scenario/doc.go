// SPDX-License-Identifier: Apache-2.0

// Package scenario is an experiment in the simulated world, in a file that people read: a
// machine, its Linux, workloads, policies side by side, days, seeds.
//
//	scenario.yaml ─Parse─▶ Scenario ─Run(arm, seed)─▶ Run ┐
//	                                 Run …                ├─▶ Result ─Encode─▶ result.json ─▶ report/simulation
//	                                                      └─▶ Compare(arm, against) with spread
//
// An arm is a policy with its operator's settings: no policy, NUMA balancing, MAO with a
// strategy, a peer. All arms of a seed see the same demand. A run's loop is the agent's:
// window → policy → actuate → steps, with their outcomes in the next window.
//
// How arms compare is decided only here: by Metrics, seed by seed (Compare), and beside a
// paper's figures (Judge).
//
// It is NOT for: what time does in the world (sim), or showing a result (report).
package scenario
