// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/xml"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Canvas collects SVG elements; everything written to it is escaped.
type Canvas struct {
	strings.Builder
	hatch string // id of the pattern for what is unknown
}

// Rect draws a rectangle; round is the radius of its corners.
func (c *Canvas) Rect(x, y, w, h float64, class string, round float64) {
	c.WriteString(`<rect class="` + class + `"` + box(x, y, w, h))
	if round > 0 {
		c.WriteString(` rx="` + Coordinate(round) + `"`)
	}
	c.WriteString("/>\n")
}

// Fill is a Rect of a computed colour, or of a pattern.
func (c *Canvas) Fill(x, y, w, h float64, class, colour string) {
	c.WriteString(`<rect class="` + class + `" fill="` + colour + `"` + box(x, y, w, h) + "/>\n")
}

func box(x, y, w, h float64) string {
	return ` x="` + Coordinate(x) + `" y="` + Coordinate(y) + `" width="` + Coordinate(w) + `" height="` + Coordinate(h) + `"`
}

// Line draws a straight line.
func (c *Canvas) Line(x1, y1, x2, y2 float64, class string) {
	c.WriteString(`<line class="` + class + `" x1="` + Coordinate(x1) + `" y1="` + Coordinate(y1) + `" x2="` + Coordinate(x2) + `" y2="` + Coordinate(y2) + "\"/>\n")
}

// Cell is a number on a colour, of a map of them: share says how dark. A local figure is
// from a node to itself.
func (c *Canvas) Cell(x, y, w, h, share float64, text string, local bool) {
	class := "num"
	if share > 0.55 {
		class += " light"
	}
	if local {
		class += " local"
	}
	c.Fill(x, y, w, h, "cell", Shade(share))
	c.Text(x+w/2, y+h/2+4.5, class, "middle", text)
}

// Whisker is a path from low to high at a height, with a stroke at either end.
func Whisker(low, high, y float64) string {
	return "M" + XY(low, y) + "H" + Coordinate(high) + "M" + XY(low, y-4) + "V" + Coordinate(y+4) + "M" + XY(high, y-4) + "V" + Coordinate(y+4)
}

// LegendEntry is where a name stands in a legend: x, and the row.
type LegendEntry struct {
	X   float64
	Row int
}

// Legend puts names with a sign before each into rows from left to right; rows is how many.
func Legend(names []string, left, right float64) (at []LegendEntry, rows int) {
	const sign, gap, font = 30, 14, 11
	x := left
	for _, name := range names {
		w := sign + TextWidth(name, font) + gap
		if x > left && x+w > right {
			x, rows = left, rows+1
		}
		at = append(at, LegendEntry{x, rows})
		x += w
	}
	return at, rows + 1
}

// Link makes what is drawn a link; about is read where it cannot be seen.
func (c *Canvas) Link(to, about string, draw func()) {
	c.WriteString(`<a href="` + EscapeXML(to) + `" aria-label="` + EscapeXML(about) + `"><title>` + EscapeXML(about) + "</title>")
	draw()
	c.WriteString("</a>\n")
}

// Circle draws a circle.
func (c *Canvas) Circle(x, y, r float64, class string) {
	c.WriteString(`<circle class="` + class + `" cx="` + Coordinate(x) + `" cy="` + Coordinate(y) + `" r="` + Coordinate(r) + "\"/>\n")
}

// Path draws a path.
func (c *Canvas) Path(d, class string) {
	c.WriteString(`<path class="` + class + `" d="` + d + "\"/>\n")
}

// Text is anchored at its "start", "middle" or "end"; "" is the style's.
func (c *Canvas) Text(x, y float64, class, anchor, text string) {
	c.WriteString(`<text class="` + class + `" x="` + Coordinate(x) + `" y="` + Coordinate(y) + `"`)
	if anchor != "" {
		c.WriteString(` text-anchor="` + anchor + `"`)
	}
	c.WriteString(">" + EscapeXML(text) + "</text>\n")
}

// Coordinate has one decimal, where one is needed.
func Coordinate(v float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
}

// EscapeXML makes text fit for an element, or an attribute.
func EscapeXML(text string) string {
	var b strings.Builder
	if xml.EscapeText(&b, []byte(Printable(text))) != nil {
		return "" // a strings.Builder takes everything
	}
	return b.String()
}

// LetterWidth is how wide a letter is, in font sizes: that of DejaVu Sans, which is wider than
// what most have. Lower, and text leaves its box; higher, and boxes are empty.
const LetterWidth = 0.6

// TextWidth is how wide text is, at most.
func TextWidth(text string, font float64) float64 {
	return float64(Width(text)) * font * LetterWidth
}

// FitText cuts text to a width.
func FitText(text string, font, width float64) string { return Clip(text, letters(font, width)) }

// WrapText breaks text at its blanks into lines of at most a width.
func WrapText(text string, font, width float64) []string {
	return Wrap("", "", text, letters(font, width))
}

// letters is how many fit a width.
func letters(font, width float64) int { return int(width / (font * LetterWidth)) }

// blues go from near to far; each is darker than the one before.
var blues = [][3]float64{{237, 244, 251}, {189, 215, 238}, {107, 174, 214}, {33, 113, 181}, {8, 48, 107}}

// Shade is the colour of a share between 0 and 1: the larger, the darker.
func Shade(share float64) string {
	at := min(max(share, 0), 1) * float64(len(blues)-1)
	i := min(int(at), len(blues)-2)
	var c [3]int
	for k := range c {
		c[k] = int(math.Round(blues[i][k] + (blues[i+1][k]-blues[i][k])*(at-float64(i))))
	}
	return fmt.Sprintf("#%02x%02x%02x", c[0], c[1], c[2])
}

// TickStep is 1, 2 or 5 times a power of ten, giving three to six steps to top.
func TickStep(top float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(top)))
	for _, s := range []float64{0.2, 0.5, 1} {
		if top/(power*s) <= 6 {
			return power * s
		}
	}
	return power * 2
}
