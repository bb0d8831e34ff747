// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"encoding/json"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// A validator that others keep reads the document, resolves its references, and finds
// nothing wrong.
func TestDocumentIsValid(t *testing.T) {
	text, err := json.Marshal(document(routes(), "v1"))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Error(err)
	}
	if doc.Paths.Len() < 8 {
		t.Errorf("%d paths", doc.Paths.Len())
	}
}
