// SPDX-License-Identifier: Apache-2.0

// Package model evaluates fitted models of placements: from the speed of a workload in two
// or three placements, how fast it is in all important ones (Funston et al., USENIX ATC
// 2018, §5). python/homenode_model fits them.
//
//	model.json ─Decode─▶ Model ─Fits(list)─▶ this machine, these vCPUs, these placements
//	speeds of the probes ─────▶ Predict ─▶ speed in each placement, relative to the first
//	                                       probe, each with an interval
//
// Predictions are scikit-learn's to the last bit; golden rows of the trainer hold that.
//
// It is NOT for: choosing placements (placement), measuring speeds, or fitting.
package model
