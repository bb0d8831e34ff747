// SPDX-License-Identifier: Apache-2.0

// Package picture turns a drawing of render's canvas into PNG or PDF.
//
//	SVG as render.Canvas writes it ─▶ draw ─▶ pen ─┬─▶ pixels ─▶ PNG
//	                                               └─▶ page ───▶ PDF
//
// It knows the elements and the few CSS properties that the canvas and its style sheets
// have; anything else is an error, so that no drawing loses a part in silence. The fonts are
// Go's: a picture looks the same on every host.
//
// It is NOT for: other programs' SVG.
package picture
