// SPDX-License-Identifier: Apache-2.0

package query

import (
	"net/http"

	"homenode/internal/schema"
	"homenode/internal/store"
)

var both = []string{"application/json", "text/csv"}

// Document is the API in OpenAPI 3.1.
func Document(version string) map[string]any {
	return schema.OpenAPI(schema.API{
		Title: "homenode's hub", Version: version,
		About: "Questions to the status database of a fleet. Programs of the hub's own host may ask, unless its configuration names tokens. Then a client sends one: as 'Authorization: Bearer TOKEN', or as the password of any user.",
		Operations: []schema.Operation{
			{Method: "GET", Pattern: "/api/v1/query", ID: "listTopics", Summary: "The topics, with their parameters and columns", Answers: answers(TopicList{}, both[:1], http.StatusUnauthorized)},
			{Method: "GET", Pattern: "/api/v1/query/{topic}", ID: "query", Summary: "The answer to a question", Parameters: queryParameters(),
				Answers: answers(Answer{}, both, http.StatusBadRequest, http.StatusUnauthorized, http.StatusNotFound, http.StatusServiceUnavailable, http.StatusGatewayTimeout)},
			{Method: "POST", Pattern: "/api/v1/sql", ID: "sql", Summary: "The answer to a query in the store's own SQL, which changes nothing", Body: "application/sql",
				Parameters: []schema.Parameter{whole("most", "number of rows, at most (default 1000)", 1, store.MostRows), format},
				Answers:    answers(Answer{}, both, http.StatusBadRequest, http.StatusUnauthorized, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity, http.StatusServiceUnavailable, http.StatusGatewayTimeout)},
			{Method: "GET", Pattern: "/api/v1/openapi.json", ID: "openapi", Summary: "This API, as OpenAPI 3.1", Answers: answers(map[string]any{}, both[:1], http.StatusUnauthorized)},
		},
	})
}

func answers(value any, media []string, failures ...int) []schema.Answer {
	all := []schema.Answer{{Status: http.StatusOK, About: "as asked", Media: media, Value: value}}
	for _, status := range failures {
		all = append(all, schema.Answer{Status: status, About: http.StatusText(status), Media: both[:1], Value: Failure{}})
	}
	return all
}

var format = schema.Parameter{Name: "format", In: "query", About: "json or csv (default json)", Schema: map[string]any{"type": "string", "enum": []string{"json", "csv"}}}

func whole(name, about string, least, most int) schema.Parameter {
	return schema.Parameter{Name: name, In: "query", About: about, Schema: map[string]any{"type": "integer", "minimum": least, "maximum": most}}
}

func queryParameters() []schema.Parameter {
	all := []schema.Parameter{{Name: "topic", In: "path", About: "what the question is about", Required: true, Schema: map[string]any{"type": "string", "enum": store.Topics}}}
	for _, p := range Parameters {
		out := schema.Parameter{Name: p.Name, In: "query", About: p.About, Schema: map[string]any{"type": "string"}}
		switch p.Name {
		case "most":
			out = whole(p.Name, p.About, 1, store.MostRows)
		case "offset":
			out = whole(p.Name, p.About, 0, mostOffset)
		}
		all = append(all, out)
	}
	return append(all, format)
}
