// SPDX-License-Identifier: Apache-2.0

// Package trial holds what makes a comparison fair: arms, the order they run
// in, repeats and their spread, and ratios between arms within one run.
//
//	Order(5 arms, 3 repeats, seed) ──▶ a b c d e | c d e a b | …
//	Summarise(values of one arm)   ──▶ median, spread, interval
//
// Pure: it runs nothing. Not for: measuring a machine (bench).
package trial
