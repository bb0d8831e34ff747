// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"net/http"
	"strings"

	"homenode/internal/schema"
)

// document is the OpenAPI document of routes.
func document(all []route, version string) map[string]any {
	api := schema.API{
		Title: "homenode's agent", Version: version,
		About: "Over a unix socket, for local programs. Reading is for the socket's group, changing for root or api: write_group.",
	}
	for _, r := range all {
		api.Operations = append(api.Operations, operation(r))
	}
	return schema.OpenAPI(api)
}

func operation(r route) schema.Operation {
	op := schema.Operation{Method: r.method, Pattern: r.pattern, ID: operationID(r), Summary: r.summary}
	for _, p := range r.parameters {
		op.Parameters = append(op.Parameters, documented(p))
	}
	media := jsonMedia
	if r.media != "" {
		media = r.media
	}
	op.Answers = []schema.Answer{{Status: http.StatusOK, About: "as asked", Media: []string{media}, Value: r.answer}}
	for _, code := range r.other {
		failure := any(Failure{})
		if r.plain != nil { // health has its own texts
			failure = r.answer
		}
		op.Answers = append(op.Answers, schema.Answer{Status: code, About: http.StatusText(code), Media: []string{jsonMedia}, Value: failure})
	}
	return op
}

func documented(p parameter) schema.Parameter {
	out := schema.Parameter{Name: p.name, In: "path", About: p.about, Required: !p.query || p.kind == "duration", Schema: map[string]any{"type": "string"}}
	if p.query {
		out.In = "query"
	}
	switch p.kind {
	case "integer":
		out.Schema = map[string]any{"type": "integer", "minimum": 1, "maximum": mostLimit}
	case "date-time":
		out.Schema["format"] = "date-time"
	}
	return out
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
