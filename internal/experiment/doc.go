// SPDX-License-Identifier: Apache-2.0

// Package experiment holds what makes a comparison fair: arms, warm-ups, the order of
// the runs, their spread, the significance of a difference, and the form of the
// result.
//
//	Plan(5 arms, 1 warm-up, 3 repeats, seed) ──▶ a b c d e | c a e b d | d b e a c | …
//	Summarise(values of one arm)      ──▶ median, extremes, confidence interval
//	RatioOf, CompareSpread (two arms) ──▶ faster, steadier, or noise
//	PairedRatio (two arms by turns)   ──▶ the same, while the load drifts
//	Vary(arms of one command)         ──▶ Variation: which placement to time with
//
// Pure: it runs nothing.
package experiment
