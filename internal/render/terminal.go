// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io"
	"strings"
)

// TextOptions say what is printed on.
type TextOptions struct {
	Width  int  // columns; less than 40 is taken as 80
	UTF8   bool // else ASCII only
	Colour bool // else no escape codes
	Fold   bool // break lines that are wider, where the width is known to be the terminal's
}

// Terminal is an empty one of that width.
func (o TextOptions) Terminal() Terminal {
	if o.Width < 40 {
		o.Width = 80
	}
	return Terminal{TextOptions: o}
}

// Terminal collects lines for a terminal of Width columns.
type Terminal struct {
	strings.Builder
	TextOptions
}

// Flush writes what was collected; what names it in an error.
func (p *Terminal) Flush(w io.Writer, what string) error {
	text := p.String()
	if p.Fold {
		text = Fold(text, p.Width)
	}
	if !p.UTF8 {
		text = ASCII(text)
	}
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("write %s: %w", what, err)
	}
	return nil
}

// Line prints one line as it is.
func (p *Terminal) Line(text string) { p.WriteString(strings.TrimRight(text, " ") + "\n") }

// Section prints an empty line, if there is something above, and a title.
func (p *Terminal) Section(title string) {
	if p.Len() > 0 {
		p.Line("")
	}
	p.Wrapped("", title)
}

// Wrapped prints a paragraph; its second line and those after it are indented further.
func (p *Terminal) Wrapped(indent, text string) { p.Paragraph(indent, indent+"  ", text) }

// Hanging prints a paragraph right of its head.
func (p *Terminal) Hanging(head, text string) {
	p.Paragraph(head, strings.Repeat(" ", Width(head)), text)
}

// Paragraph prints a text; first begins its first line, next the others.
func (p *Terminal) Paragraph(first, next, text string) {
	for _, line := range Wrap(first, next, text, p.Width) {
		p.Line(line)
	}
}

// List prints a section of paragraphs; nothing where there are none.
func (p *Terminal) List(title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	p.Section(title)
	for _, l := range lines {
		p.Wrapped("  ", l)
	}
}

// Fact is a thing with its name.
type Fact struct{ Name, Text string }

// Facts hang their texts right of the names, all at one column; of a long name most
// columns are left.
func (p *Terminal) Facts(all []Fact, most int) {
	wide := 0
	for _, f := range all {
		wide = max(wide, min(Width(f.Name), most))
	}
	for _, f := range all {
		p.Hanging("  "+PadRight(Clip(f.Name, wide), wide)+"  ", f.Text)
	}
}

// Ink is a colour or a weight of every terminal's own palette.
type Ink string

// The inks.
const (
	Bold  Ink = "\x1b[1m"
	Green Ink = "\x1b[32m"
	Red   Ink = "\x1b[31m"
)

// Paint gives text an ink, on a terminal with colours.
func (p *Terminal) Paint(ink Ink, text string) string {
	if !p.Colour {
		return text
	}
	return string(ink) + text + "\x1b[0m"
}

var blocks = []rune(" ▏▎▍▌▋▊▉█")

// Bar is a share of n columns. What is more than nothing is seen.
func (p *Terminal) Bar(part, whole float64, n int) string {
	if whole <= 0 || part <= 0 || n <= 0 {
		return ""
	}
	eighths := max(1, min(8*n, int(part/whole*float64(8*n)+0.5)))
	if !p.UTF8 {
		return strings.Repeat("#", max(1, (eighths+4)/8))
	}
	text := strings.Repeat("█", eighths/8)
	if part := eighths % 8; part > 0 {
		text += string(blocks[part])
	}
	return text
}

// Progress is a bar of n columns of what is done and what is not: "######....".
func Progress(share float64, n int) string {
	n = max(0, n)
	full := int(float64(n) * min(1, max(0, share)))
	return strings.Repeat("#", full) + strings.Repeat(".", n-full)
}
