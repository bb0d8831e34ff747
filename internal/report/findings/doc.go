// SPDX-License-Identifier: Apache-2.0

// Package findings shows a doctor's report to people: as text for a terminal and
// as Markdown for a ticket.
//
//	doctor.Report ──▶ Text, Markdown
//
// The first line is the verdict. Names come from outside, so no control sequence of a
// terminal and no Markdown gets through. Commands are never broken into lines, because
// they are meant to be pasted.
//
// It is NOT for: judging (doctor), or JSON, which is the Report itself.
package findings
