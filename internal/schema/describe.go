// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"time"
)

// Types are the schemas of Go types, as encoding/json writes values of them.
type Types struct {
	Known  map[string]any // of structs, by their names
	prefix string         // of a reference to one
}

// NewTypes has no types yet. prefix is before a name in a reference, such as "#/$defs/".
func NewTypes(prefix string) *Types { return &Types{Known: map[string]any{}, prefix: prefix} }

// Dialect is what the documents are written in.
const Dialect = "https://json-schema.org/draft/2020-12/schema"

// Describe is the JSON Schema of a value that is one of several types, with all that it refers to.
func Describe(title string, all ...any) map[string]any {
	t := NewTypes("#/$defs/")
	doc := t.Document(title, all...)
	doc["$defs"] = t.Known
	return doc
}

// Document is the JSON Schema of a value that is one of several types, which it refers to.
func (b *Types) Document(title string, all ...any) map[string]any {
	var of []any
	for _, v := range all {
		of = append(of, b.Of(reflect.TypeOf(v)))
	}
	doc := map[string]any{"$schema": Dialect, "title": title}
	ref := of[0].(map[string]any)["$ref"]
	switch {
	case len(of) > 1:
		doc["anyOf"] = of
	case ref != nil:
		doc["$ref"] = ref
	default:
		doc["allOf"] = of
	}
	return doc
}

var (
	textType = reflect.TypeFor[encoding.TextMarshaler]()
	jsonType = reflect.TypeFor[json.Marshaler]()
	timeType = reflect.TypeFor[time.Time]()
)

// Of is a type's schema; a struct's is kept by its name, and referred to.
//
//  1. unit.Opt[T] is T or null, and unit.Value[T] an object of value, how and from: their
//     fields give T.
//  2. A type that writes itself as text is a string. Any other type that writes itself
//     may be anything.
//  3. A type that is a unit says which: "x-unit" is bytes, ns or ratio. Other figures have
//     theirs at the end of the name.
func (b *Types) Of(t reflect.Type) map[string]any {
	switch {
	case t.Kind() == reflect.Pointer:
		return nullable(b.Of(t.Elem()))
	case t == timeType:
		return map[string]any{"type": "string", "format": "date-time"}
	case isUnit(t, "Opt["): // 1
		return nullable(b.Of(t.Field(0).Type))
	case isUnit(t, "Value["):
		return b.figure(b.Of(t.Field(0).Type))
	case t.Implements(textType): // 2
		return map[string]any{"type": "string"}
	case t.Implements(jsonType):
		return map[string]any{}
	}
	if u := unitOf(t); u != "" { // 3
		return map[string]any{"type": map[bool]string{true: "number", false: "integer"}[t.Kind() == reflect.Float64], "x-unit": u}
	}
	switch t.Kind() {
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Slice, reflect.Array:
		list := map[string]any{"type": "array", "items": b.Of(t.Elem())}
		if t.Kind() == reflect.Slice {
			return nullable(list) // a nil slice
		}
		return list
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": b.Of(t.Elem())}
	case reflect.Interface:
		return map[string]any{}
	case reflect.Struct:
		return b.structure(t)
	}
	return map[string]any{"type": "integer"}
}

// unitOf is the unit that a type stands for; "" for most.
func unitOf(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return "ns"
	case isPackage(t) && t.Name() == "Bytes":
		return "bytes"
	case isPackage(t) && t.Name() == "Ratio":
		return "ratio"
	}
	return ""
}

func isPackage(t reflect.Type) bool { return strings.HasSuffix(t.PkgPath(), "internal/unit") }

func isUnit(t reflect.Type, prefix string) bool {
	return t.Kind() == reflect.Struct && isPackage(t) && strings.HasPrefix(t.Name(), prefix)
}

func nullable(s map[string]any) map[string]any {
	return map[string]any{"anyOf": []any{s, map[string]any{"type": "null"}}}
}

func object(properties map[string]any, required ...string) map[string]any {
	s := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// figure is a value with how it is known. Those of numbers are kept by their unit.
func (b *Types) figure(value map[string]any) map[string]any {
	form := object(map[string]any{
		"value": value,
		"how":   map[string]any{"type": "string", "enum": []string{"measured", "modelled", "estimated", "unknown"}},
		"from":  map[string]any{"type": "string"},
	}, "value", "how")
	name := figureName(value)
	if name == "" {
		return form
	}
	b.Known[name] = form
	return map[string]any{"$ref": b.prefix + name}
}

// figureName is figure_bytes, figure_number, …; "": of no number.
func figureName(value map[string]any) string {
	all, ok := value["anyOf"].([]any) // a number or null
	if !ok {
		return ""
	}
	number, _ := all[0].(map[string]any)
	if unit, ok := number["x-unit"].(string); ok {
		return "figure_" + unit
	}
	if kind := number["type"]; kind == "number" || kind == "integer" {
		return "figure_" + kind.(string)
	}
	return ""
}

func (b *Types) structure(t reflect.Type) map[string]any {
	name := strings.ReplaceAll(t.String(), ".", "_")
	ref := map[string]any{"$ref": b.prefix + name}
	if _, ok := b.Known[name]; ok {
		return ref
	}
	b.Known[name] = nil // a type that holds itself ends here
	properties := map[string]any{}
	var required []string
	for _, f := range reflect.VisibleFields(t) {
		if f.Anonymous && f.Tag.Get("json") == "" || len(f.Index) > 1 && !promoted(t, f) || !f.IsExported() {
			continue
		}
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if tag == "-" {
			continue
		}
		if tag == "" {
			tag = f.Name
		}
		properties[tag] = b.Of(f.Type)
		if !strings.Contains(options, "omit") {
			required = append(required, tag)
		}
	}
	b.Known[name] = object(properties, required...)
	return ref
}

// promoted reports that encoding/json lifts an embedded struct's field: the struct has no
// name of its own in the JSON.
func promoted(t reflect.Type, f reflect.StructField) bool {
	return t.FieldByIndex(f.Index[:1]).Tag.Get("json") == ""
}
