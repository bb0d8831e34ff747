// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"homenode/internal/set"
	"homenode/internal/unit"
)

// The most that a document may nest and hold: real ones have some 15 levels and
// 20 objects to a CPU.
const (
	maxHwlocDepth   = 64
	maxHwlocObjects = 64 * (set.MaxCPU + 1)
)

// hwlocObject is one <object>, its sets decoded.
type hwlocObject struct {
	line     int
	kind     string
	attrs    map[string]string
	cpus     set.CPUSet // cpuset
	complete set.CPUSet // complete_cpuset: with what is offline or not allowed
	infos    map[string]string
	pageSize unit.Opt[unit.Bytes]
	parent   *hwlocObject
	children []*hwlocObject
}

// hwlocMatrix is one <distances2>, or one <distances> of hwloc 1.
type hwlocMatrix struct {
	line    int
	attrs   map[string]string
	parent  *hwlocObject // of hwloc 1: its nodes are those below
	indexes []string
	values  []string
}

// hwlocAttr is one <memattr_value> with the name of its <memattr>.
type hwlocAttr struct {
	line  int
	name  string
	attrs map[string]string
}

// hwlocDocument is what ParseHwloc looks at.
type hwlocDocument struct {
	root     *hwlocObject
	all      []*hwlocObject // in document order
	matrices []hwlocMatrix
	attrs    []hwlocAttr
}

// hwlocReader decodes a document and counts its lines.
type hwlocReader struct {
	d   *xml.Decoder
	doc hwlocDocument
}

// readHwloc decodes the elements; errors name the line.
func readHwloc(data []byte) (hwlocDocument, error) {
	r := &hwlocReader{d: xml.NewDecoder(bytes.NewReader(data))}
	r.d.CharsetReader = func(charset string, _ io.Reader) (io.Reader, error) {
		return nil, fmt.Errorf("charset %s: want UTF-8", clip(charset))
	}
	for {
		tok, err := r.d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return hwlocDocument{}, r.wrong(err)
		}
		start, ok := tok.(xml.StartElement)
		if !ok {
			continue
		}
		if start.Name.Local != "topology" || r.doc.root != nil {
			return hwlocDocument{}, r.wrong(fmt.Errorf("element %s: want one <topology>", clip(start.Name.Local)))
		}
		if err := r.topology(); err != nil {
			return hwlocDocument{}, r.wrong(err)
		}
	}
	if r.doc.root == nil {
		return hwlocDocument{}, r.wrong(errors.New("no <topology> with an <object>"))
	}
	return r.doc, nil
}

// wrong puts the line before an error that has none.
func (r *hwlocReader) wrong(err error) error {
	if syntax := (*xml.SyntaxError)(nil); errors.As(err, &syntax) {
		return fmt.Errorf("line %d: %s", syntax.Line, syntax.Msg)
	}
	if strings.HasPrefix(err.Error(), "line ") {
		return err
	}
	return fmt.Errorf("line %d: %w", r.line(), err)
}

func (r *hwlocReader) line() int {
	line, _ := r.d.InputPos()
	return line
}

// each calls do for every child element until the enclosing element ends.
func (r *hwlocReader) each(do func(xml.StartElement) error) error {
	for {
		tok, err := r.d.Token()
		if err != nil {
			return err
		}
		switch tok := tok.(type) {
		case xml.EndElement:
			return nil
		case xml.StartElement:
			if err := do(tok); err != nil {
				return err
			}
		}
	}
}

func (r *hwlocReader) topology() error {
	return r.each(func(e xml.StartElement) error {
		switch e.Name.Local {
		case "object":
			return r.object(e, nil, 0)
		case "distances2":
			return r.distances2(e)
		case "memattr":
			return r.memattr(e)
		}
		return r.d.Skip()
	})
}

func attrsOf(e xml.StartElement) map[string]string {
	attrs := make(map[string]string, len(e.Attr))
	for _, a := range e.Attr {
		attrs[a.Name.Local] = a.Value
	}
	return attrs
}

func (r *hwlocReader) object(e xml.StartElement, parent *hwlocObject, depth int) error {
	o := &hwlocObject{line: r.line(), attrs: attrsOf(e), infos: map[string]string{}, parent: parent}
	o.kind = o.attrs["type"]
	if depth > maxHwlocDepth || len(r.doc.all) > maxHwlocObjects {
		return errors.New("more objects than a machine can have")
	}
	var err error
	if o.cpus, err = o.mask("cpuset"); err != nil {
		return err
	}
	if o.complete, err = o.mask("complete_cpuset"); err != nil {
		return err
	}
	o.complete = o.complete.Union(o.cpus)
	switch {
	case parent != nil:
		parent.children = append(parent.children, o)
	case r.doc.root != nil:
		return errors.New("a second root object")
	default:
		r.doc.root = o
	}
	r.doc.all = append(r.doc.all, o)
	return r.each(func(e xml.StartElement) error {
		switch e.Name.Local {
		case "object":
			return r.object(e, o, depth+1)
		case "distances":
			return r.distances1(e, o)
		case "info":
			attrs := attrsOf(e)
			o.infos[attrs["name"]] = attrs["value"]
		case "page_type":
			o.addPageType(attrsOf(e))
		}
		return r.d.Skip()
	})
}

// addPageType keeps the smallest: the base page.
func (o *hwlocObject) addPageType(attrs map[string]string) {
	n, err := strconv.ParseInt(attrs["size"], 10, 64)
	if err != nil || n <= 0 || n&(n-1) != 0 {
		return
	}
	if size := unit.Bytes(n); size < o.pageSize.Or(size+1) {
		o.pageSize = unit.Some(size)
	}
}

// mask decodes a set such as "0x0000ffff,,0x1": 32 bits each, highest first, an
// empty one is 0. hwloc prints a set without end as "0xf...f,…".
func (o *hwlocObject) mask(name string) (set.CPUSet, error) {
	text := o.attrs[name]
	if text == "" {
		return set.CPUSet{}, nil
	}
	cpus, err := parseHwlocMask(text)
	if err != nil {
		return set.CPUSet{}, fmt.Errorf("line %d: %s of %s: %w", o.line, name, clip(o.kind), err)
	}
	return cpus, nil
}

func parseHwlocMask(text string) (set.CPUSet, error) {
	if strings.HasPrefix(text, "0xf...f") {
		return set.CPUSet{}, fmt.Errorf("%s has no end", clip(text))
	}
	groups := strings.Split(text, ",")
	for i, g := range groups {
		digits, ok := strings.CutPrefix(g, "0x")
		if !ok && g != "" || len(digits) > 8 {
			return set.CPUSet{}, fmt.Errorf("group %d %s: want 0x and up to eight hex digits", i+1, clip(g))
		}
		groups[i] = "0" + digits
		if len(digits) > 0 {
			groups[i] = digits
		}
	}
	return parseCPUMap(strings.Join(groups, ","))
}

func (r *hwlocReader) distances2(e xml.StartElement) error {
	m := hwlocMatrix{line: r.line(), attrs: attrsOf(e)}
	err := r.each(func(e xml.StartElement) error {
		var text string
		if err := r.d.DecodeElement(&text, &e); err != nil {
			return err
		}
		switch e.Name.Local {
		case "indexes":
			m.indexes = append(m.indexes, strings.Fields(text)...)
		case "u64values":
			m.values = append(m.values, strings.Fields(text)...)
		}
		return nil
	})
	r.doc.matrices = append(r.doc.matrices, m)
	return err
}

func (r *hwlocReader) distances1(e xml.StartElement, parent *hwlocObject) error {
	m := hwlocMatrix{line: r.line(), attrs: attrsOf(e), parent: parent}
	err := r.each(func(e xml.StartElement) error {
		if e.Name.Local == "latency" {
			m.values = append(m.values, attrsOf(e)["value"])
		}
		return r.d.Skip()
	})
	r.doc.matrices = append(r.doc.matrices, m)
	return err
}

func (r *hwlocReader) memattr(e xml.StartElement) error {
	name := attrsOf(e)["name"]
	return r.each(func(e xml.StartElement) error {
		if e.Name.Local == "memattr_value" {
			r.doc.attrs = append(r.doc.attrs, hwlocAttr{r.line(), name, attrsOf(e)})
		}
		return r.d.Skip()
	})
}
