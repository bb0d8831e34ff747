// SPDX-License-Identifier: Apache-2.0

// Package profile shows what a machine was measured to do: text for a terminal,
// pictures (heat maps, curves, Rao's grid), and a self-contained page of both.
//
//	profile.Profile ──▶ clean ──▶ sections (tables, notes) ──▶ Text
//	                         ├──▶ panels (geometry) ─────────▶ HeatMap, Curve, WorkingSet, Rao
//	                         └──▶ both ──────────────────────▶ HTML
//
// The faces share one set of sections, so they cannot disagree. An unknown figure is
// shown with its reason, and never as 0. Every face begins with how the figures are
// known.
//
// It is NOT for: measuring (bench), the profile's file (internal/profile), or
// judging Rao's statements (profile.RaoFindings).
package profile
