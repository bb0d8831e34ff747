// SPDX-License-Identifier: Apache-2.0

// Package rao runs Rao et al.'s experiments (HPCA 2013) in the arena: their machine,
// loads and comparisons, and a verdict on each statement.
//
// It is NOT for: the policies (policy), or the applications (sim/catalog).
package rao
