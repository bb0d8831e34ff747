// SPDX-License-Identifier: Apache-2.0

package measured

import (
	"strings"

	"homenode/internal/render"
)

// Sections are all comparisons. A model that is compared with these figures adds its own
// here: the simulator's memory system (saturation, loaded latency, caches) belongs here.
func Sections(d Data) []Section { return []Section{Classes(d), Placements(d), Saves(d), Pairs(d)} }

// Markdown is the report.
func Markdown(all []Section) string {
	var b strings.Builder
	b.WriteString("# Models against real measurements\n\nWritten by `scripts/check-measured.sh`; not by hand. Measured by others on real machines; predicted by homenode's models.\n")
	for _, s := range all {
		b.WriteString("\n## " + s.Title + "\n\n" + s.About + "\n\n")
		for _, line := range s.Summary {
			b.WriteString("- " + line + "\n")
		}
		b.WriteString("\n" + s.table().Markdown())
	}
	return b.String()
}

func (s Section) table() render.Table {
	t := render.TableOf(1, 40, 30, s.Heads...)
	t.Keys = 0 // lines may be wide: this goes to a file or a log
	for _, row := range s.Rows {
		t.Add(row...)
	}
	return t
}

// Text is the report for a terminal.
func Text(all []Section) string {
	out := render.TextOptions{UTF8: true}.Terminal()
	for _, s := range all {
		out.WriteString(s.Title + "\n" + s.About + "\n")
		out.Table(s.table())
		for _, line := range s.Summary {
			out.WriteString(line + "\n")
		}
		out.WriteString("\n")
	}
	return out.String()
}
