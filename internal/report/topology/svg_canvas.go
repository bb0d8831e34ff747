// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"strings"

	"homenode/internal/report"
)

// canvas is report's, with texts that are placed by their name.
type canvas struct{ report.Canvas }

func (c *canvas) text(x, y float64, class, text string)   { c.Text(x, y, class, "", text) }
func (c *canvas) right(x, y float64, class, text string)  { c.Text(x, y, class, "end", text) }
func (c *canvas) middle(x, y float64, class, text string) { c.Text(x, y, class, "middle", text) }

// wrap breaks text at blanks; a longer word is cut.
func wrap(text string, font, width float64) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		word = report.FitText(word, font, width)
		switch {
		case line == "":
			line = word
		case report.TextWidth(line+" "+word, font) > width:
			lines, line = append(lines, line), word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}
