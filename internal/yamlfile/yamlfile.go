// SPDX-License-Identifier: Apache-2.0

package yamlfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Rules are those of one kind of file.
type Rules struct {
	Malformed  error  // the room's own sentinel; every error wraps it
	What       string // for the error about the size: "a shape"
	Most       int    // bytes
	MayBeEmpty bool   // a file without settings leaves all defaults
}

// Document is the one YAML document of a file.
type Document struct {
	rules   Rules
	file    string
	text    []byte
	root    *yaml.Node            // nil: the file is empty
	written map[string]*yaml.Node // what Decode read, by path
	found   []error               // problems of the present Decode
}

// Parse reads the document; file is its name in errors. It refuses a file that is too
// large, or whose aliases stand for too much, before it costs time or memory. If names are
// there twice, the document is returned beside the error: a check may look for more.
func Parse(text []byte, file string, r Rules) (*Document, error) {
	d := &Document{rules: r, file: file, text: text, written: map[string]*yaml.Node{}}
	if len(text) > r.Most {
		return nil, d.fail(0, fmt.Sprintf("it has %d bytes: %s has at most %d", len(text), r.What, r.Most))
	}
	if err := d.load(); err != nil {
		return nil, d.syntax(err)
	}
	if d.root == nil {
		if r.MayBeEmpty {
			return d, nil
		}
		return nil, d.fail(0, errNotOne.Error())
	}
	c := counter{d: d, sizes: map[*yaml.Node]int{}, anchors: map[string]bool{}}
	if _, err := c.count(d.root); err != nil {
		return nil, errors.Join(append(c.twice, err)...)
	}
	if len(c.twice) > 0 {
		return d, errors.Join(c.twice...)
	}
	return d, nil
}

var errNotOne = errors.New("it must hold exactly one YAML document")

// load turns a panic of the library into an error: it has none that we know of, but its
// input is anything.
func (d *Document) load() (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the YAML library cannot read it: %v", r)
		}
	}()
	l, err := yaml.NewLoader(bytes.NewReader(d.text), yaml.WithPlugin(limits{}))
	if err != nil {
		return err
	}
	var doc, more yaml.Node
	if err := l.Load(&doc); errors.Is(err, io.EOF) {
		return nil
	} else if err != nil {
		return err
	}
	if err := l.Load(&more); err == nil {
		return errNotOne
	} else if !errors.Is(err, io.EOF) {
		return err
	}
	if len(doc.Content) == 1 && !isNull(doc.Content[0]) {
		d.root = doc.Content[0]
	}
	return nil
}

// mostDepth bounds the nesting: a scenario has eight levels, and the library's time grows
// with the square of their number.
const mostDepth = 100

// limits is a plugin of the library. Aliases are counted here (counter).
type limits struct{}

// CheckDepth is called as nesting becomes deeper.
func (limits) CheckDepth(depth int, _ *yaml.DepthContext) error {
	if depth > mostDepth {
		return fmt.Errorf("it is nested deeper than %d levels", mostDepth)
	}
	return nil
}

// CheckAlias is called as the library replaces aliases, which it does not do here.
func (limits) CheckAlias(int, int) error { return nil }

// Empty says that the file has no settings: only comments, if anything.
func (d *Document) Empty() bool { return d.root == nil }

// Wrote says whether the file has a value at a path such as workloads[1].demand.rate.
func (d *Document) Wrote(path string) bool { return d.written[path] != nil }

// Written are the paths of all values that Decode read.
func (d *Document) Written() map[string]bool {
	all := map[string]bool{}
	for path := range d.written {
		if path != "" {
			all[path] = true
		}
	}
	return all
}

// Wrong is an error "path: text" at the line of a path, or of the nearest part of it that
// the file has.
func (d *Document) Wrong(path, text string) error {
	for near := path; near != ""; near = near[:max(0, strings.LastIndexAny(near, ".["))] {
		if n := d.written[near]; n != nil {
			return d.failAt(n, path, text)
		}
	}
	return d.problem(0, 0, path, text)
}

// Problem is what is wrong at one place of a file.
type Problem struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`   // from 1; 0: it is of no line
	Column  int    `json:"column,omitempty"` // from 1, in characters; 0: of the whole line
	Path    string `json:"key,omitempty"`    // such as services[0].approved
	Text    string `json:"text"`
	Excerpt string `json:"excerpt,omitempty"` // the line itself, and a caret below the place
	kind    error
}

// Error is "parse FILE: line N: malformed: path: text", and the excerpt.
func (p *Problem) Error() string {
	text := p.Text
	if p.Path != "" {
		text = p.Path + ": " + text
	}
	if p.Line < 1 {
		return fmt.Sprintf("parse %s: %v: %s", p.File, p.kind, text)
	}
	return fmt.Sprintf("parse %s: line %d: %v: %s\n%s", p.File, p.Line, p.kind, text, p.Excerpt)
}

// Unwrap is the sentinel of the file's room.
func (p *Problem) Unwrap() error { return p.kind }

// Problems are the problems that an error joins, in order.
func Problems(err error) []*Problem {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []*Problem
		for _, one := range joined.Unwrap() {
			all = append(all, Problems(one)...)
		}
		return all
	}
	var p *Problem
	if errors.As(err, &p) {
		return []*Problem{p}
	}
	return []*Problem{{Text: err.Error(), kind: err}}
}

// fail is every error of a line, failAt of a value or name.
func (d *Document) fail(line int, text string) error { return d.problem(line, 0, "", text) }

func (d *Document) failAt(n *yaml.Node, path, text string) error {
	return d.problem(n.Line, n.Column, path, text)
}

func (d *Document) problem(line, column int, path, text string) error {
	p := &Problem{File: d.file, Line: max(line, 0), Path: path, Text: text, kind: d.rules.Malformed}
	if line > 0 {
		p.Column, p.Excerpt = column, d.excerpt(line, column)
	}
	return p
}

// syntax is an error of the library, with its place.
func (d *Document) syntax(err error) error {
	var one *yaml.LoadError
	var several *yaml.LoadErrors
	switch {
	case errors.As(err, &one):
	case errors.As(err, &several) && len(several.Errors) > 0:
		one = several.Errors[0]
	default:
		return d.fail(0, err.Error())
	}
	text := one.Message
	if one.ContextMsg != "" {
		text += fmt.Sprintf(" (%s from line %d on)", one.ContextMsg, one.ContextMark.Line)
	}
	line := one.Mark.Line
	if line == 0 && one.Stage == yaml.ReaderStage { // it knows the byte only
		line = 1 + bytes.Count(d.text[:min(one.Mark.Index, len(d.text))], []byte("\n"))
	}
	if line > 0 && strings.HasPrefix(strings.TrimLeft(d.line(line), " "), "\t") {
		text += ": indent with spaces, not with a tab"
	}
	return d.fail(line, text)
}

// mostExcerpt is how much of a line an excerpt shows, characters.
const mostExcerpt = 100

// excerpt is the line, and a caret below the column if there is one. A long line is cut
// around the column.
func (d *Document) excerpt(line, column int) string {
	text := []rune(strings.ReplaceAll(strings.TrimRight(d.line(line), "\r"), "\t", " "))
	at, cut := max(0, column-1), ""
	if from := at - mostExcerpt/2; len(text) > mostExcerpt && from > 0 {
		text, at, cut = text[min(from, len(text)):], at-from+1, "…"
	}
	end := ""
	if len(text) > mostExcerpt {
		text, end = text[:mostExcerpt], "…"
	}
	shown := fmt.Sprintf("%5d | %s%s%s", line, cut, string(text), end)
	if column < 1 {
		return shown
	}
	return shown + "\n      | " + strings.Repeat(" ", at) + "^"
}

// line is the text of one, from 1 on; "" beyond the end.
func (d *Document) line(n int) string {
	lines := strings.SplitN(string(d.text), "\n", n+1)
	if n > len(lines) {
		return ""
	}
	return lines[n-1]
}

// Encode writes a value for a person to read and edit; Decode reads it back as it was.
func Encode(v any) ([]byte, error) { return yaml.Dump(v) }
