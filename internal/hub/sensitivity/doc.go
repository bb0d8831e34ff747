// SPDX-License-Identifier: Apache-2.0

// Package sensitivity ranks services by what binding would bring them, before anything is
// bound: MAO's sensitivity model, asked about what the status database has of each service.
//
//	topic 'features' ─rows─▶ Rank ─gain.Model─▶ Report: gain, interval, verdict, why
//
// Pure: the caller asks the store or the hub. It is NOT for: fitting (python), evaluating a
// model (model/gain), or rolling out (hub/deploy).
package sensitivity
