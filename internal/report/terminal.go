// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode/utf8"
)

// Terminal collects lines for a terminal of Width columns.
type Terminal struct {
	strings.Builder
	Width int
}

// Line prints one line as it is.
func (p *Terminal) Line(text string) { p.WriteString(strings.TrimRight(text, " ") + "\n") }

// Wrapped prints a paragraph; what does not fit is indented.
func (p *Terminal) Wrapped(indent, text string) { p.fill(indent, indent+"  ", text) }

// Hanging prints a paragraph below itself, right of its head.
func (p *Terminal) Hanging(head, text string) {
	p.fill(head, strings.Repeat(" ", utf8.RuneCountInString(head)), text)
}

// Fact is a thing with its name.
type Fact struct{ Name, Text string }

// Facts hang their texts right of the names, all at one column; of a long name most
// columns are left.
func (p *Terminal) Facts(all []Fact, most int) {
	wide := 0
	for _, f := range all {
		wide = max(wide, min(Runes(f.Name), most))
	}
	for _, f := range all {
		p.Hanging("  "+padRight(Clip(f.Name, wide), wide)+"  ", f.Text)
	}
}

func (p *Terminal) fill(line, indent, text string) {
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
			line += word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > p.Width:
			p.Line(line)
			line = indent + word
		default:
			line += " " + word
		}
		for utf8.RuneCountInString(line) > p.Width { // a word longer than a line
			cut := []rune(line)
			p.Line(string(cut[:p.Width]))
			line = indent + string(cut[p.Width:])
		}
	}
	p.Line(line)
}

// toASCII has what the faces print beyond it; the rest becomes "?". No entry is
// wider than what it replaces: columns stay where they are.
var toASCII = map[rune]rune{'×': 'x', '±': '~', '–': '-', '→': '>', '…': '~', 'µ': 'u', '≥': '>', '≤': '<', '−': '-', '·': '.'}

// ASCII is text for a terminal that knows no more.
func ASCII(text string) string {
	return strings.Map(func(r rune) rune {
		if r <= '~' {
			return r
		}
		if a, ok := toASCII[r]; ok {
			return a
		}
		return '?'
	}, text)
}

// HeadRows are the heads of a table's columns in one line, or in two if a head has
// two; words stand at the bottom.
func HeadRows(heads []string) [][]string {
	top, bottom, two := make([]string, len(heads)), make([]string, len(heads)), false
	for i, h := range heads {
		upper, lower, broken := strings.Cut(h, "\n")
		if top[i], bottom[i] = upper, lower; !broken {
			top[i], bottom[i] = "", h
		}
		two = two || broken
	}
	if two {
		return [][]string{top, bottom}
	}
	return [][]string{bottom}
}

// Cleaned returns v with every text fit to be shown (Printable): texts come from files
// and names that others made, and a terminal obeys what it is sent. By reflection, so
// that no field is forgotten; what sets and options hold inside is not in its reach.
func Cleaned[T any](v T) T {
	cleanValue(reflect.ValueOf(&v).Elem())
	return v
}

// cleanValue cleans in place; slices are copied first, they are the caller's.
func cleanValue(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(Printable(v.String()))
	case reflect.Slice:
		fresh := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(fresh, v)
		for i := range fresh.Len() {
			cleanValue(fresh.Index(i))
		}
		v.Set(fresh)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				cleanValue(v.Field(i))
			}
		}
	}
}

// TextOptions say what is printed on.
type TextOptions struct {
	Width int  // columns; less than 60 is taken as 80
	UTF8  bool // else ASCII only
}

// Terminal is an empty one of that width.
func (o TextOptions) Terminal() Terminal {
	if o.Width < 60 {
		o.Width = 80
	}
	return Terminal{Width: o.Width}
}

// Print writes what a terminal has collected; what names it in an error.
func (o TextOptions) Print(w io.Writer, p *Terminal, what string) error {
	text := p.String()
	if !o.UTF8 {
		text = ASCII(text)
	}
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("write %s: %w", what, err)
	}
	return nil
}
