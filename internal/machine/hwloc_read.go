// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"homenode/internal/set"
	"homenode/internal/unit"
)

// The most that a document may nest and hold: real ones have some 15 levels, 20 objects
// to a CPU, a memory attribute to each pair of 64 nodes, a few matrices between some
// hundred objects. More takes minutes to make sense of, and makes none.
const (
	maxHwlocDepth    = 64
	maxHwlocObjects  = 64 * (set.MaxCPU + 1)
	maxHwlocAttrs    = 1 << 17
	maxHwlocMatrices = 64
	maxHwlocRow      = set.MaxNode + 1
	maxHwlocMask     = 11 * (set.MaxCPU + 1) / 32 // "0x12345678," is 32 CPUs
)

// hwlocObject is one <object>, its sets decoded.
type hwlocObject struct {
	line     int
	kind     string
	attrs    map[string]string
	cpus     set.CPUSet // cpuset
	complete set.CPUSet // complete_cpuset: with what is offline or not allowed
	infos    map[string]string
	pages    []HugePages // the base pages too
	parent   *hwlocObject
	children []*hwlocObject
}

// hwlocMatrix is one <distances2>, <distances2hetero> (objects of several types), or one
// <distances> of hwloc 1.
type hwlocMatrix struct {
	line    int
	attrs   map[string]string
	hetero  bool
	parent  *hwlocObject // of hwloc 1: its nodes are those below
	indexes []string
	values  []string
}

// hwlocAttr is one <memattr_value> with the name of its <memattr>.
type hwlocAttr struct {
	line                    int
	name, gp, cpuset, value string
}

// hwlocKind is one <cpukind>.
type hwlocKind struct {
	line   int
	cpuset string
	infos  map[string]string
}

// hwlocDocument is what ParseHwloc looks at.
type hwlocDocument struct {
	root     *hwlocObject
	all      []*hwlocObject // in document order
	matrices []hwlocMatrix
	attrs    []hwlocAttr
	kinds    []hwlocKind
	byGP     map[string]*hwlocObject // by gp_index; the first of equals
	nodeByOS map[string]*hwlocObject // by os_index; the first of equals

	osIndexes map[string]map[string]*hwlocObject // see byOS
}

// hwlocReader decodes a document and counts its lines.
type hwlocReader struct {
	d   *xml.Decoder
	doc hwlocDocument
}

// readHwloc decodes the elements; errors name the line.
func readHwloc(data []byte) (hwlocDocument, error) {
	r := &hwlocReader{d: xml.NewDecoder(bytes.NewReader(data))}
	r.doc.byGP, r.doc.nodeByOS = map[string]*hwlocObject{}, map[string]*hwlocObject{}
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
		if err = hwlocVersion(start); err == nil {
			err = r.topology()
		}
		if err != nil {
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

// hwlocVersion refuses a document of a version that is not known: its words may mean
// something else. hwloc 1 wrote none, or 1.0; hwloc 2 writes 2.0 and up, hwloc 3 3.0.
func hwlocVersion(e xml.StartElement) error {
	version, ok := attrsOf(e)["version"]
	major, minor, _ := strings.Cut(version, ".")
	if ok && (len(major) != 1 || !strings.Contains("123", major) || !isDigits(minor)) {
		return fmt.Errorf("version %s: want 1.0 to 3.x", clip(version))
	}
	return nil
}

func (r *hwlocReader) topology() error {
	return r.each(func(e xml.StartElement) error {
		switch e.Name.Local {
		case "object":
			return r.object(e, nil, 0)
		case "distances2", "distances2hetero":
			return r.distances2(e)
		case "memattr":
			return r.memattr(e)
		case "cpukind":
			return r.cpuKind(e)
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
	r.doc.index(o)
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

// index remembers an object by its numbers.
func (doc *hwlocDocument) index(o *hwlocObject) {
	if gp := o.attrs["gp_index"]; gp != "" && doc.byGP[gp] == nil {
		doc.byGP[gp] = o
	}
	if id := o.attrs["os_index"]; o.kind == "NUMANode" && doc.nodeByOS[id] == nil {
		doc.nodeByOS[id] = o
	}
}

// maxPageTypes is more than the sizes of pages that any CPU has.
const maxPageTypes = 16

// addPageType keeps a size and count; the smallest is the base page.
func (o *hwlocObject) addPageType(attrs map[string]string) {
	n, err := strconv.ParseInt(attrs["size"], 10, 64)
	if err != nil || n <= 0 || n&(n-1) != 0 || len(o.pages) == maxPageTypes {
		return
	}
	count, err := strconv.ParseInt(attrs["count"], 10, 32)
	o.pages = append(o.pages, HugePages{Size: unit.Bytes(n), Count: unit.OptOf(int(count), err == nil && count >= 0)})
}

// pageSize is the smallest, the base page; huge are the others.
func (o *hwlocObject) pageSize() (base unit.Opt[unit.Bytes], huge []HugePages) {
	pages := slices.Clone(o.pages)
	slices.SortStableFunc(pages, func(a, b HugePages) int { return cmp.Compare(a.Size, b.Size) })
	if len(pages) == 0 {
		return base, nil
	}
	return unit.Some(pages[0].Size), append(huge, pages[1:]...) // nil if there is none
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
	if len(text) > maxHwlocMask {
		return set.CPUSet{}, fmt.Errorf("%s is longer than a set of %d CPUs", clip(text), set.MaxCPU+1)
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
	m := hwlocMatrix{line: r.line(), attrs: attrsOf(e), hetero: e.Name.Local == "distances2hetero"}
	err := r.each(func(e xml.StartElement) error {
		var text string
		if err := r.d.DecodeElement(&text, &e); err != nil {
			return err
		}
		var err error
		switch e.Name.Local {
		case "indexes":
			m.indexes, err = m.more(m.indexes, text, maxHwlocRow)
		case "u64values":
			m.values, err = m.more(m.values, text, maxHwlocRow*maxHwlocRow)
		}
		return err
	})
	return errors.Join(err, r.add(m))
}

// more adds a text's fields, up to most.
func (m hwlocMatrix) more(list []string, text string, most int) ([]string, error) {
	list = append(list, strings.Fields(text)...)
	if len(list) > most {
		return nil, fmt.Errorf("line %d: a matrix of more than %d objects", m.line, maxHwlocRow)
	}
	return list, nil
}

func (r *hwlocReader) add(m hwlocMatrix) error {
	if r.doc.matrices = append(r.doc.matrices, m); len(r.doc.matrices) > maxHwlocMatrices {
		return fmt.Errorf("line %d: more than %d matrices of distances", m.line, maxHwlocMatrices)
	}
	return nil
}

func (r *hwlocReader) distances1(e xml.StartElement, parent *hwlocObject) error {
	m := hwlocMatrix{line: r.line(), attrs: attrsOf(e), parent: parent}
	err := r.each(func(e xml.StartElement) (err error) {
		if e.Name.Local == "latency" {
			m.values, err = m.more(m.values, attrsOf(e)["value"], maxHwlocRow*maxHwlocRow)
		}
		return errors.Join(err, r.d.Skip())
	})
	return errors.Join(err, r.add(m))
}

func (r *hwlocReader) memattr(e xml.StartElement) error {
	name := attrsOf(e)["name"]
	return r.each(func(e xml.StartElement) error {
		if e.Name.Local == "memattr_value" && slices.Contains(hwlocAttrNames[:], name) {
			attrs := attrsOf(e)
			r.doc.attrs = append(r.doc.attrs, hwlocAttr{r.line(), name, attrs["target_obj_gp_index"], attrs["initiator_cpuset"], attrs["value"]})
		}
		if len(r.doc.attrs) > maxHwlocAttrs {
			return fmt.Errorf("more than %d memory attributes", maxHwlocAttrs)
		}
		return r.d.Skip()
	})
}

// cpuKind reads
//
//	<cpukind cpuset="0x00000f00" forced_efficiency="0"><info name="CoreType" value="IntelAtom"/></cpukind>
func (r *hwlocReader) cpuKind(e xml.StartElement) error {
	k := hwlocKind{line: r.line(), cpuset: attrsOf(e)["cpuset"], infos: map[string]string{}}
	err := r.each(func(e xml.StartElement) error {
		if attrs := attrsOf(e); e.Name.Local == "info" && len(k.infos) < maxPageTypes {
			k.infos[attrs["name"]] = attrs["value"]
		}
		return r.d.Skip()
	})
	if r.doc.kinds = append(r.doc.kinds, k); len(r.doc.kinds) > maxHwlocMatrices {
		return fmt.Errorf("more than %d kinds of CPUs", maxHwlocMatrices)
	}
	return err
}
