// SPDX-License-Identifier: Apache-2.0

// Package rao is Rao et al.'s (HPCA 2013) experiments, run again in the arena: their machine, loads
// and comparisons, and what became of each statement.
//
// It is NOT for: the policies (policy), or the applications (sim/apps).
package rao
