// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Width is how many columns a text takes on a terminal.
func Width(text string) int { return ansi.StringWidth(text) }

// Clip cuts a text to n columns; an ellipsis says so.
func Clip(text string, n int) string {
	if n <= 0 {
		return ""
	}
	return ansi.Truncate(text, n, "…")
}

// ClipLeft keeps the end of a text: of a path, the last part says most.
func ClipLeft(text string, n int) string {
	if w := Width(text); n <= 0 {
		return ""
	} else if w > n {
		return ansi.TruncateLeft(text, w-n+1, "…")
	}
	return text
}

// PadLeft fills a text up with blanks before it.
func PadLeft(text string, n int) string { return strings.Repeat(" ", max(0, n-Width(text))) + text }

// PadRight fills a text up with blanks after it.
func PadRight(text string, n int) string { return text + strings.Repeat(" ", max(0, n-Width(text))) }

// Wrap breaks text at its blanks into lines of at most width columns, as greedily as
// possible; a longer word is cut. head begins the first line, indent the others. A
// no-break space is printed as a blank, and no line ends there.
//
// ansi.Wrap is not used: it also breaks after a hyphen, and commands and ranges must stay
// in one piece.
func Wrap(head, indent, text string, width int) []string {
	var lines []string
	line, empty := head, true
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ' ' || r == '\n' || r == '\t' }) {
		if !empty && Width(line)+1+Width(strings.TrimRight(word, "\u00a0")) > width {
			lines, line, empty = append(lines, line), indent, true
		}
		if !empty {
			line += " "
		}
		line, empty = line+word, false
		for room := max(width, Width(indent)+2); Width(strings.TrimRight(line, "\u00a0")) > room; {
			cut := ansi.Truncate(line, room, "")
			lines, line = append(lines, cut), indent+line[len(cut):]
		}
	}
	lines = append(lines, line)
	for i, l := range lines {
		lines[i] = strings.TrimRight(strings.ReplaceAll(l, "\u00a0", " "), " ")
	}
	return lines
}

// Fold breaks lines of more than width columns at their last blank, so that a narrow terminal
// does not break them within words. What follows is indented by two more. A word that is wider
// is left to the terminal; columns stay where they are.
func Fold(text string, width int) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		margin := len(line) - len(strings.TrimLeft(line, " "))
		next := strings.Repeat(" ", min(margin+2, width/2))
		for Width(strings.TrimRight(line, "\n")) > width {
			end := lastBlank(line, margin, width)
			if end < 0 {
				break
			}
			out.WriteString(strings.TrimRight(line[:end], " ") + "\n")
			line, margin = next+strings.TrimLeft(line[end:], " "), len(next)
		}
		out.WriteString(line)
	}
	return out.String()
}

// lastBlank is where a line of at most width columns ends, else where its first word ends; -1:
// it is one word. Blanks of its margin do not count.
func lastBlank(line string, margin, width int) int {
	end := -1
	for i := margin; i < len(line); i++ {
		if line[i] != ' ' {
			continue
		}
		if end >= 0 && Width(line[:i]) > width {
			break
		}
		end = i
	}
	if end < 0 || strings.TrimSpace(line[end:]) == "" {
		return -1
	}
	return end
}

// asciiOf has what the faces print beyond ASCII. Each takes one column, so that columns
// stay where they are; every other character becomes "?".
var asciiOf = func() map[rune]rune {
	const from, to = "×±–→←↑↓…µ≥≤−·Σ█▓▒░─│╭╮╰╯▁▂▃▄▅▆▇▸●◆▾▴", "x~-><^v~u><-.S#=:.-|++++_.,-~=+>*@v^"
	m, plain := map[rune]rune{}, []rune(to)
	for i, r := range []rune(from) {
		m[r] = plain[i]
	}
	return m
}()

// ASCII is text for a terminal that knows no more.
func ASCII(text string) string { return strings.Map(ASCIIRune, text) }

// ASCIIRune is ASCII of one character.
func ASCIIRune(r rune) rune {
	if r <= '~' {
		return r
	}
	if a, ok := asciiOf[r]; ok {
		return a
	}
	return '?'
}
