// SPDX-License-Identifier: Apache-2.0

// Package mao judges the statements of MAO's paper: in the arena (Judge), and in the
// scenarios made for its services (Figures).
//
// It is NOT for: the policy (policy/mao), or the scenarios themselves (sim/scenarios).
package mao
