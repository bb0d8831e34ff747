// SPDX-License-Identifier: Apache-2.0

package yamlfile

import (
	"errors"
	"testing"
)

var errBad = errors.New("malformed")

// A problem is shown where it is, or at the nearest part of its path that is there.
func TestPlaces(t *testing.T) {
	const text = "name: x\nlist:\n  - {a: 1}\n  - {a: 2}\n"
	body, err := Body([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"list[1].a":   "parse f: line 4: malformed: list[1].a: no\n    4 |   - {a: 2}",
		"list[1].b":   "parse f: line 4: malformed: list[1].b: no\n    4 |   - {a: 2}",
		"list[7].a.b": "parse f: line 3: malformed: list[7].a.b: no\n    3 |   - {a: 1}",
		"name":        "parse f: line 1: malformed: name: no\n    1 | name: x",
		"other":       "parse f: malformed: other: no",
		"":            "parse f: malformed: no",
	} {
		err := Error([]byte(text), "f", errBad, At(body, path, "no"))
		if err.Error() != want || !errors.Is(err, errBad) {
			t.Errorf("%q: %q, want %q", path, err, want)
		}
	}
}

// One document it is, and what makes the library panic is an error.
func TestBody(t *testing.T) {
	for _, text := range []string{"", "a: 1\n---\nb: 2\n", "- !0 ", "a: ["} {
		err := Guard(func() error {
			_, err := Body([]byte(text))
			if err == nil && text == "- !0 " {
				panic("as NodeToValue does")
			}
			return err
		})
		if err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}
