// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"homenode/internal/schema"
)

// document is the OpenAPI document of routes.
func document(all []route, version string) map[string]any {
	b := operations{schema.NewTypes("#/components/schemas/")}
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
		"components": map[string]any{"schemas": b.Known},
	}
}

// operations are those of the document, with the schemas of what they answer.
type operations struct{ *schema.Types }

func (b operations) operation(r route) map[string]any {
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
		content = b.Of(reflect.TypeOf(r.answer))
	}
	responses := map[string]any{"200": answerOf("as asked", media, content)}
	for _, code := range r.other {
		failure := b.Of(reflect.TypeFor[Failure]())
		if r.plain != nil { // health has its own texts
			failure = content
		}
		responses[strconv.Itoa(code)] = answerOf(http.StatusText(code), jsonMedia, failure)
	}
	op["responses"] = responses
	return op
}

func answerOf(about, media string, content map[string]any) map[string]any {
	return map[string]any{"description": about, "content": map[string]any{media: map[string]any{"schema": content}}}
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
