// SPDX-License-Identifier: Apache-2.0

// Package trial holds what makes a comparison fair: arms, the order they run
// in, repeats and their spread, and the form of the result.
//
//	Order(5 arms, 3 repeats, seed) ──▶ c a e b d | d b e a c | …
//	Summarise(values of one arm)   ──▶ median, extremes, spread
//
// Pure: it runs nothing.
package trial
