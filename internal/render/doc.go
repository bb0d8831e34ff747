// SPDX-License-Identifier: Apache-2.0

// Package render is how a person reads a figure: formats of numbers, words and
// counts, wrapping, tables, bars, plots and the canvas of pictures, and the frame of
// pages. Each is here once.
//
//	1234567.8       Number  ─▶ "1,234,568"     three significant digits
//	0.0123          Percent ─▶ "1.2%"
//	12.3e-3 s       Seconds ─▶ "12.3 ms"
//	3.4e9 bytes/s   Rate    ─▶ "3.4 GB/s"
//	names and texts Printable ─▶ fit for a terminal
//	rows            Terminal.Table ─▶ columns that fit the terminal
//	rows            Grid ─▶ a table of a page, or of a terminal
//	points          Plot ─▶ Panel ─▶ SVG with title and description
//	template        NewPage ─▶ self-contained HTML that fetches nothing and runs no script:
//	                shell.tmpl has title, style, main and footer of a report's own template
//
// Bytes print themselves (unit.Bytes). Widths are those of package ansi, so that a
// wide character takes two columns. What is unknown is printed as Unknown, never as 0.
//
// It is NOT for: deciding what is shown (report, views, tui), JSON, or errors.
package render
