// SPDX-License-Identifier: Apache-2.0

// Package gain evaluates models of what binding brings: from what a service's replicas show
// while they are not bound, the share of their latency that binding saves, with an interval
// (MAO's sensitivity model, papers §1). python/homenode_model/gain fits them.
//
//	gain.json, gain.ubj, gain.scale.ubj ─Open─▶ Model
//	features ─▶ Predict ─▶ gain, low, high ─▶ Reason: which features, in words
//	                  └──▶ what is unknown, or outside of what the model has seen
//	features of many ─▶ Drift: whether the fleet is still what the model was trained on
//
// Predictions are XGBoost's to the last bit; golden rows of the trainer hold that.
//
// It is NOT for: fitting, measuring features, or deciding what is bound (hub/deploy, rollout).
package gain
