// SPDX-License-Identifier: Apache-2.0

// Package profile holds what one machine was measured to do: latencies, bandwidths, how
// they change under load, caches, what moving a page costs, what a policy costs.
// `homenode bench` writes it; other commands read it.
//
//	bench ──▶ Profile ──Encode──▶ profile.json ──Decode──▶ topo, doctor, report/profile
//
// Every figure is a Figure: median, extremes and number of repeats, or unknown with the
// reason. Profile.How says whether the clock was a machine's or a model's; Caveats says
// why figures may be wrong.
//
// It is NOT for: the firmware's figures (machine.Access), or deciding anything.
package profile
