// SPDX-License-Identifier: Apache-2.0

// Package findings shows a doctor's report to people: as text for a terminal and
// as Markdown for a ticket.
//
//	doctor.Report ──▶ Text, Markdown
//
// The first line is the verdict. Names come from outside, so nothing that a
// terminal or Markdown would obey gets through; commands are never broken into
// lines, because they are to be pasted.
//
// It is NOT for: judging (doctor), or JSON, which is the Report itself.
package findings
