// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
)

// pen draws what a drawing has. Coordinates are CSS pixels, from the upper left.
type pen interface {
	rect(x, y, w, h, round float64, s style)
	line(x1, y1, x2, y2 float64, s style)
	circle(x, y, r float64, s style)
	text(x, y float64, anchor string, s style, text string)
}

// drawing is one SVG on its way to a pen.
type drawing struct {
	d     *xml.Decoder
	rules []rule
	w, h  float64
	pen   pen
	start func(w, h float64) (pen, error)
}

// draw reads a drawing; start makes the pen once the size is known.
func draw(svg []byte, start func(w, h float64) (pen, error)) error {
	r := drawing{d: xml.NewDecoder(bytes.NewReader(svg)), start: start}
	for {
		token, err := r.d.Token()
		if errors.Is(err, io.EOF) && r.pen != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read drawing: %w", err)
		}
		if e, ok := token.(xml.StartElement); ok {
			if err := r.element(e); err != nil {
				return fmt.Errorf("read drawing: %w", err)
			}
		}
	}
}

// numbers are the attributes of an element that are lengths.
func numbers(e xml.StartElement, names ...string) ([]float64, error) {
	values := make([]float64, len(names))
	for i, name := range names {
		text := attribute(e, name)
		if text == "" {
			continue
		}
		v, err := parseLength(text)
		if err != nil {
			return nil, fmt.Errorf("%s of %s: %w", name, e.Name.Local, err)
		}
		values[i] = v
	}
	return values, nil
}

func attribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

func (r *drawing) element(e xml.StartElement) error {
	switch e.Name.Local {
	case "svg":
		return r.page(e)
	case "style":
		var text string
		if err := r.d.DecodeElement(&text, &e); err != nil {
			return err
		}
		rules, err := parseSheet(text)
		r.rules = append(r.rules, rules...)
		return err
	case "title", "desc", "defs":
		return r.d.Skip()
	case "rect", "line", "circle", "text":
		if r.pen == nil {
			return errors.New("no <svg> before the first element")
		}
		return r.shape(e)
	}
	return fmt.Errorf("unknown element %.40q", e.Name.Local)
}

func (r *drawing) page(e xml.StartElement) error {
	size, err := numbers(e, "width", "height")
	if err != nil || r.pen != nil || size[0] < 1 || size[1] < 1 {
		return errors.Join(err, errors.New("want one <svg> with width and height"))
	}
	r.w, r.h = size[0], size[1]
	r.pen, err = r.start(r.w, r.h)
	return err
}

func (r *drawing) shape(e xml.StartElement) error {
	s, err := styleOf(r.rules, e.Name.Local, strings.Fields(attribute(e, "class")))
	if fill := attribute(e, "fill"); fill != "" && err == nil {
		err = s.apply(declaration{"fill", fill})
	}
	if err != nil {
		return err
	}
	v, err := numbers(e, "x", "y", "width", "height", "rx", "x1", "y1", "x2", "y2", "cx", "cy", "r")
	if err != nil {
		return err
	}
	switch e.Name.Local {
	case "rect":
		r.pen.rect(v[0], v[1], v[2], v[3], v[4], s)
	case "line":
		r.pen.line(v[5], v[6], v[7], v[8], s)
	case "circle":
		r.pen.circle(v[9], v[10], v[11], s)
	case "text":
		var text string
		if err := r.d.DecodeElement(&text, &e); err != nil {
			return err
		}
		r.pen.text(v[0], v[1], attribute(e, "text-anchor"), s, text)
	}
	return nil
}

// plain replaces the signs that Go's fonts lack.
func plain(text string) string { return signs.Replace(text) }

var signs = strings.NewReplacer("⚠", "!", "▸", "›")
