// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"reflect"
	"strconv"
	"strings"
)

// API is what an OpenAPI document is about.
type API struct {
	Title, Version, About string
	Operations            []Operation
}

// Operation is one kind of request.
type Operation struct {
	Method, Pattern, ID, Summary string
	Parameters                   []Parameter
	Body                         string // media type of the request's body, which is text; "": it has none
	Answers                      []Answer
}

// Parameter is a parameter in a path or in a query.
type Parameter struct {
	Name, In, About string
	Required        bool
	Schema          map[string]any
}

// Answer is what a status comes with.
type Answer struct {
	Status int
	About  string
	Media  []string
	Value  any // a zero value of its type; nil: text
}

// OpenAPI is the document, in OpenAPI 3.1, with the schemas of what is answered.
func OpenAPI(api API) map[string]any {
	types := NewTypes("#/components/schemas/")
	paths := map[string]any{}
	for _, o := range api.Operations {
		p, ok := paths[o.Pattern].(map[string]any)
		if !ok {
			p = map[string]any{}
			paths[o.Pattern] = p
		}
		p[strings.ToLower(o.Method)] = o.document(types)
	}
	return map[string]any{
		"openapi":    "3.1.0",
		"info":       map[string]any{"title": api.Title, "version": api.Version, "description": api.About},
		"paths":      paths,
		"components": map[string]any{"schemas": types.Known},
	}
}

func (o Operation) document(types *Types) map[string]any {
	op := map[string]any{"summary": o.Summary, "operationId": o.ID}
	var parameters []any
	for _, p := range o.Parameters {
		parameters = append(parameters, map[string]any{"name": p.Name, "in": p.In, "required": p.Required, "description": p.About, "schema": p.Schema})
	}
	if parameters != nil {
		op["parameters"] = parameters
	}
	if o.Body != "" {
		op["requestBody"] = map[string]any{"required": true, "content": map[string]any{o.Body: map[string]any{"schema": map[string]any{"type": "string"}}}}
	}
	responses := map[string]any{}
	for _, a := range o.Answers {
		responses[strconv.Itoa(a.Status)] = a.document(types)
	}
	op["responses"] = responses
	return op
}

func (a Answer) document(types *Types) map[string]any {
	form := map[string]any{"type": "string"}
	if a.Value != nil {
		form = types.Of(reflect.TypeOf(a.Value))
	}
	content := map[string]any{}
	for _, media := range a.Media {
		content[media] = map[string]any{"schema": form}
	}
	return map[string]any{"description": a.About, "content": content}
}
