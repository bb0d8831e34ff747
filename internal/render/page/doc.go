// SPDX-License-Identifier: Apache-2.0

// Package page is the frame and the look of all pages: self-contained HTML that fetches
// nothing and runs no script.
//
//	shell.tmpl ── title, style, main, footer of a report's own template ──▶ one page
//	style.css  ── for all pages; figures.css ── for those with pictures and tables
//
// It is NOT for: what is on a page (report and its siblings), or pictures (render).
package page
