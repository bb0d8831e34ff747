// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"strings"
	"unicode"

	"homenode/internal/render"
)

// style is how a cell looks. The glyph always carries the meaning as well, so
// that the screen can be read without colours and with any colour vision.
type style uint8

const (
	plain  style = iota
	dim          // frames, units, unknown figures
	strong       // headings, the selection
	accent       // keys; anonymous memory
	second       // file pages
	warn         // below target, refused
	nodeColours
	// nodeColours+i is the colour of the i-th node, repeating.
)

// sgr are the 16 colours that every terminal has, as its owner chose them. The
// pairs blue/yellow and cyan/magenta stay distinct with every kind of colour
// blindness; red and green would not.
var sgr = [...]string{
	plain: "", dim: "\x1b[2m", strong: "\x1b[1m", accent: "\x1b[36m", second: "\x1b[94m", warn: "\x1b[1;33m",
	nodeColours: "\x1b[30;46m", "\x1b[30;43m", "\x1b[97;44m", "\x1b[30;45m", "\x1b[30;47m", "\x1b[97;100m",
}

const (
	colourCount = len(sgr) - int(nodeColours)
	reset       = "\x1b[0m"
	reverse     = "\x1b[7m"
)

func nodeStyle(i int) style { return nodeColours + style(i%colourCount) }

type cell struct {
	r        rune // 0: the right half of a wide one
	s        style
	selected bool
}

// canvas is a grid of cells. Anything outside it is cut off, so there are never
// more lines, or longer ones, than the terminal has.
type canvas struct {
	w, h  int
	cells []cell
}

func newCanvas(w, h int) *canvas {
	c := &canvas{w: w, h: h, cells: make([]cell, w*h)}
	for i := range c.cells {
		c.cells[i].r = ' '
	}
	return c
}

func (c *canvas) at(x, y int) *cell {
	if x < 0 || y < 0 || x >= c.w || y >= c.h {
		return nil
	}
	return &c.cells[y*c.w+x]
}

// put draws text from x on and returns the column after it.
func (c *canvas) put(x, y int, s style, text string) int {
	for _, r := range text {
		x = c.rune(x, y, s, r)
	}
	return x
}

func (c *canvas) rune(x, y int, s style, r rune) int {
	width := runeWidth(r)
	if width == 2 && c.at(x+1, y) == nil {
		r, width = ' ', 1 // only half of it would fit
	}
	if at := c.at(x, y); at != nil {
		at.r, at.s = r, s
	}
	if at := c.at(x+1, y); at != nil && width == 2 {
		at.r, at.s = 0, s
	}
	return x + width
}

// right draws text so that it ends before x.
func (c *canvas) right(x, y int, s style, text string) { c.put(x-textWidth(text), y, s, text) }

// mark shows that a range is selected.
func (c *canvas) mark(x, y, width int) {
	for i := range width {
		if at := c.at(x+i, y); at != nil {
			at.selected = true
		}
	}
}

// clear empties a rectangle, for an overlay.
func (c *canvas) clear(x, y, w, h int) {
	for j := range h {
		for i := range w {
			if at := c.at(x+i, y+j); at != nil {
				*at = cell{r: ' '}
			}
		}
	}
}

// lines is the grid as text, one line per row, without trailing blanks.
func (c *canvas) lines(colour, ascii bool) []string {
	all := make([]string, c.h)
	for y := range all {
		all[y] = c.line(c.cells[y*c.w:(y+1)*c.w], colour, ascii)
	}
	return all
}

func (c *canvas) line(row []cell, colour, ascii bool) string {
	end := len(row)
	for end > 0 && row[end-1] == (cell{r: ' ', s: row[end-1].s}) && (!colour || row[end-1].s < nodeColours) {
		end--
	}
	var b strings.Builder
	last := cell{}
	for _, at := range row[:end] {
		if at.r == 0 {
			continue
		}
		if colour && (at.s != last.s || at.selected != last.selected) {
			b.WriteString(reset + sgr[at.s])
			if at.selected {
				b.WriteString(reverse)
			}
			last = at
		}
		r := at.r
		if ascii {
			r = render.ASCIIRune(r)
		}
		b.WriteRune(r)
	}
	if colour && (last.s != plain || last.selected) {
		b.WriteString(reset)
	}
	return b.String()
}

// clean is render.Printable, which also marks characters without a width: a cell holds
// one character.
func clean(text string) string {
	return render.Printable(strings.Map(func(r rune) rune {
		if unicode.Is(unicode.M, r) {
			return '\uFFFD'
		}
		return r
	}, text))
}

func runeWidth(r rune) int {
	if r < 0x1100 { // the first wide character, Hangul Jamo
		return 1
	}
	return max(1, render.Width(string(r)))
}

func textWidth(text string) int { return render.Width(text) }

// fit shortens text to a width. If tail is set it keeps the end: the last part
// of a path says most.
func fit(text string, width int, tail bool) string {
	if tail {
		return render.ClipLeft(text, width)
	}
	return render.Clip(text, width)
}

// wrap breaks text at blanks into lines of at most width; longer words are cut.
func wrap(text string, width int) []string { return render.Wrap("", "", text, max(width, 2)) }
