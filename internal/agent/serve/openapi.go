// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"encoding"
	"encoding/json"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// document is the OpenAPI document of routes.
func document(all []route, version string) map[string]any {
	b := &schemas{known: map[string]any{}}
	paths := map[string]any{}
	for _, r := range all {
		p, ok := paths[r.pattern].(map[string]any)
		if !ok {
			p = map[string]any{}
			paths[r.pattern] = p
		}
		p[strings.ToLower(r.method)] = b.operation(r)
	}
	return map[string]any{
		"openapi": "3.1.0",
		"info": map[string]any{
			"title": "homenode's agent", "version": version,
			"description": "Over a unix socket, for local programs. Reading is for the socket's group, changing for root or api: write_group.",
		},
		"paths":      paths,
		"components": map[string]any{"schemas": b.known},
	}
}

func (b *schemas) operation(r route) map[string]any {
	op := map[string]any{"summary": r.summary, "operationId": operationID(r)}
	var parameters []any
	for _, p := range r.parameters {
		in := "path"
		if p.query {
			in = "query"
		}
		kind := map[string]any{"type": "string"}
		switch p.kind {
		case "integer":
			kind = map[string]any{"type": "integer", "minimum": 1, "maximum": mostLimit}
		case "date-time":
			kind["format"] = "date-time"
		}
		parameters = append(parameters, map[string]any{"name": p.name, "in": in, "required": !p.query || p.kind == "duration", "description": p.about, "schema": kind})
	}
	if parameters != nil {
		op["parameters"] = parameters
	}
	media := jsonMedia
	content := map[string]any{"type": "string"}
	if r.media != "" {
		media = r.media
	}
	if r.answer != nil {
		content = b.of(reflect.TypeOf(r.answer))
	}
	responses := map[string]any{"200": answerOf("as asked", media, content)}
	for _, code := range r.other {
		failure := b.of(reflect.TypeFor[Failure]())
		if r.plain != nil { // health has its own texts
			failure = content
		}
		responses[strconv.Itoa(code)] = answerOf(http.StatusText(code), jsonMedia, failure)
	}
	op["responses"] = responses
	return op
}

func answerOf(about, media string, schema map[string]any) map[string]any {
	return map[string]any{"description": about, "content": map[string]any{media: map[string]any{"schema": schema}}}
}

// operationID is "getWorkloadsWhy".
func operationID(r route) string {
	id := strings.ToLower(r.method)
	for _, part := range strings.Split(strings.TrimPrefix(r.pattern, "/v1/"), "/") {
		if part, _, _ = strings.Cut(part, "."); part != "" && part[0] != '{' {
			id += strings.ToUpper(part[:1]) + part[1:]
		}
	}
	return id
}

// schemas makes a schema of a Go type as encoding/json writes it.
type schemas struct{ known map[string]any }

var (
	textType = reflect.TypeFor[encoding.TextMarshaler]()
	jsonType = reflect.TypeFor[json.Marshaler]()
	timeType = reflect.TypeFor[time.Time]()
)

// of is a type's schema; a struct's is kept by its name, and referred to.
//
//  1. unit.Opt[T] is T or null, and unit.Value[T] an object of value, how and from: their
//     fields give T.
//  2. A type that writes itself as text is a string. Any other type that writes itself
//     may be anything.
func (b *schemas) of(t reflect.Type) map[string]any {
	switch {
	case t.Kind() == reflect.Pointer:
		return nullable(b.of(t.Elem()))
	case t == timeType:
		return map[string]any{"type": "string", "format": "date-time"}
	case isUnit(t, "Opt["): // 1
		return nullable(b.of(t.Field(0).Type))
	case isUnit(t, "Value["):
		return object(map[string]any{
			"value": b.of(t.Field(0).Type),
			"how":   map[string]any{"type": "string", "enum": []string{"measured", "modelled", "estimated", "unknown"}},
			"from":  map[string]any{"type": "string"},
		}, "value", "how")
	case t.Implements(textType): // 2
		return map[string]any{"type": "string"}
	case t.Implements(jsonType):
		return map[string]any{}
	}
	switch t.Kind() {
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Slice, reflect.Array:
		list := map[string]any{"type": "array", "items": b.of(t.Elem())}
		if t.Kind() == reflect.Slice {
			return nullable(list) // a nil slice
		}
		return list
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": b.of(t.Elem())}
	case reflect.Interface:
		return map[string]any{}
	case reflect.Struct:
		return b.structure(t)
	}
	return map[string]any{"type": "integer"}
}

func isUnit(t reflect.Type, prefix string) bool {
	return t.Kind() == reflect.Struct && strings.HasSuffix(t.PkgPath(), "internal/unit") && strings.HasPrefix(t.Name(), prefix)
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

func (b *schemas) structure(t reflect.Type) map[string]any {
	name := strings.ReplaceAll(t.String(), ".", "_")
	ref := map[string]any{"$ref": "#/components/schemas/" + name}
	if _, ok := b.known[name]; ok {
		return ref
	}
	b.known[name] = nil // a type that holds itself ends here
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
		properties[tag] = b.of(f.Type)
		if !strings.Contains(options, "omit") {
			required = append(required, tag)
		}
	}
	b.known[name] = object(properties, required...)
	return ref
}

// promoted reports that encoding/json lifts an embedded struct's field: the struct has no
// name of its own in the JSON.
func promoted(t reflect.Type, f reflect.StructField) bool {
	return t.FieldByIndex(f.Index[:1]).Tag.Get("json") == ""
}
