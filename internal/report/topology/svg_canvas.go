// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"encoding/xml"
	"strconv"
	"strings"
	"unicode/utf8"

	"homenode/internal/report"
)

// canvas collects SVG elements; everything written to it is escaped.
type canvas struct{ strings.Builder }

func (c *canvas) rect(x, y, w, h float64, class string, round float64) {
	c.WriteString(`<rect class="` + class + `" x="` + number(x) + `" y="` + number(y) + `" width="` + number(w) + `" height="` + number(h) + `"`)
	if round > 0 {
		c.WriteString(` rx="` + number(round) + `"`)
	}
	c.WriteString("/>\n")
}

// fill is a rect of a computed colour.
func (c *canvas) fill(x, y, w, h float64, class, colour string) {
	c.WriteString(`<rect class="` + class + `" fill="` + colour + `" x="` + number(x) + `" y="` + number(y) + `" width="` + number(w) + `" height="` + number(h) + "\"/>\n")
}

func (c *canvas) line(x1, y1, x2, y2 float64, class string) {
	c.WriteString(`<line class="` + class + `" x1="` + number(x1) + `" y1="` + number(y1) + `" x2="` + number(x2) + `" y2="` + number(y2) + "\"/>\n")
}

func (c *canvas) circle(x, y, r float64, class string) {
	c.WriteString(`<circle class="` + class + `" cx="` + number(x) + `" cy="` + number(y) + `" r="` + number(r) + "\"/>\n")
}

func (c *canvas) text(x, y float64, class, text string)  { c.anchored(x, y, class, "", text) }
func (c *canvas) right(x, y float64, class, text string) { c.anchored(x, y, class, "end", text) }
func (c *canvas) middle(x, y float64, class, text string) {
	c.anchored(x, y, class, "middle", text)
}

func (c *canvas) anchored(x, y float64, class, anchor, text string) {
	c.WriteString(`<text class="` + class + `" x="` + number(x) + `" y="` + number(y) + `"`)
	if anchor != "" {
		c.WriteString(` text-anchor="` + anchor + `"`)
	}
	c.WriteString(">" + escape(text) + "</text>\n")
}

// number has one decimal, where one is needed.
func number(v float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
}

func escape(text string) string {
	var b strings.Builder
	if xml.EscapeText(&b, []byte(report.Printable(text))) != nil {
		return "" // a strings.Builder takes everything
	}
	return b.String()
}

// em is how wide a letter is, in font sizes: that of DejaVu Sans, which is wider
// than what most have. Lower, and text leaves its box; higher, and boxes are empty.
const em = 0.6

func textWidth(text string, font float64) float64 {
	return float64(utf8.RuneCountInString(text)) * font * em
}

// fit cuts text to a width.
func fit(text string, font, width float64) string {
	most := int(width / (font * em))
	if runes := []rune(text); len(runes) > most {
		return string(runes[:max(most-1, 0)]) + "…"
	}
	return text
}

// wrap breaks text at blanks; a longer word is cut.
func wrap(text string, font, width float64) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		word = fit(word, font, width)
		switch {
		case line == "":
			line = word
		case textWidth(line+" "+word, font) > width:
			lines, line = append(lines, line), word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}
