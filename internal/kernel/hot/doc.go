// SPDX-License-Identifier: Apache-2.0

// Package hot finds which pages of processes were accessed recently, by whatever the
// kernel has for that, and says which it was.
//
//	PMU samples ─▶ DAMON ─▶ idle page tracking ─▶ referenced bits: the first that works
//
// It is NOT for: moving them (migrate).
package hot
