// SPDX-License-Identifier: Apache-2.0

// Package rollouts tries the decisions of package rollout on services that are drawn.
//
//	Setting, effect, seed ─▶ replicas with their own levels, a day's load, noise ─▶ rollout.Step ─▶ Outcome
//	Try(many) ─▶ Result: how many were rolled back, called a gain, completed
//
// It is NOT for: machines and their memory (package sim), which no replica here has.
package rollouts
