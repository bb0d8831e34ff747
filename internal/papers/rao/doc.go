// SPDX-License-Identifier: Apache-2.0

// Package rao runs the experiments of Rao et al. (HPCA 2013) in the arena: their machine,
// loads and comparisons, and a verdict on each statement.
//
// It is NOT for: the policies (policy), or the applications (sim/apps).
package rao
