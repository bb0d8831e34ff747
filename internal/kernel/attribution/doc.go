// SPDX-License-Identifier: Apache-2.0

// Package attribution folds sampled memory accesses into findings that a person can act
// on: which mapping, which function, which cache lines several nodes write.
//
//	addr.Access ──Add──▶ Folder{places by mapping, cache lines} ──Samples──▶ snapshot.Samples
//	                        │ Space: /proc/PID/maps, symbols of the files mapped
//
// It is NOT for: sampling (sampling), judging (doctor).
package attribution
