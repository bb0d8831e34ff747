// SPDX-License-Identifier: Apache-2.0

// Package window is what a host did in one period. Policies see nothing else of the
// world, whether it is the live kernel or the lab.
//
//	kernel (also in the lab) ──▶ Window{nodes, workloads, outcomes} ──▶ policy
//
// Every figure is a unit.Value: it carries how it is known and its source, and unknown is
// not zero. Features (MAO's MBW, MSR, NPMR, RMBR, the local access
// ratio) are computed from it in one place, features.go.
//
// Not for: reading anything (kernel), deciding anything (policy).
package window
