// SPDX-License-Identifier: Apache-2.0

// Package packing puts many containers onto one host, each with a goal (Funston et al.,
// USENIX ATC 2018, use case of §6): four policies, and an exact solver for small cases.
//
//	containers {vCPUs, goal, count, speed in each important placement} ─┐
//	machine ─placement.Sites─▶ sets of nodes for each placement ────────┴─▶ New ─▶ Problem
//	Problem ─ML, Conservative, Aggressive, SmartAggressive, Exact─▶ Packing {placed, left}
//
// A container that is placed by its speeds shares no node with another one: only so its
// speeds were measured or predicted.
//
// It is NOT for: which placements there are (placement), predicting speeds (model), or
// binding (action).
package packing
