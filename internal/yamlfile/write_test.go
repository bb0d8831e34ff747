// SPDX-License-Identifier: Apache-2.0

package yamlfile

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode"

	"go.yaml.in/yaml/v4"
)

func TestFromJSON(t *testing.T) {
	var out strings.Builder
	const text = `{"schema":1,"nodes":[],"none":null,"known":true,"ratio":0.25,"id":18446744073709551615,"list":[{"a":"x","b":{}}],"date":"2026-01-02","yes":"yes","number":"007","empty":""}`
	if err := FromJSON(&out, []byte(text)); err != nil {
		t.Fatal(err)
	}
	const want = "schema: 1\nnodes: []\nnone: null\nknown: true\nratio: 0.25\nid: 18446744073709551615\nlist:\n  - a: x\n    b: {}\ndate: \"2026-01-02\"\n\"yes\": \"yes\"\nnumber: \"007\"\nempty: \"\"\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	for _, wrong := range []string{``, `{"a":`, `[1`} {
		if err := FromJSON(&out, []byte(wrong)); err == nil {
			t.Errorf("%q: no error", wrong)
		}
	}
}

// Any text comes back as it was, and a terminal obeys nothing in what is written.
func FuzzFromJSON(f *testing.F) {
	for _, s := range []string{"", "yes", "0x1", "a: b", "\u009b31m", "\u202eevil", "line\nline", "\x7f", "- x", "🙂\U000e0041", "\t", "é", "\u2028"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		text, err := json.Marshal(map[string]any{"x": s, "k" + s: []string{s}})
		if err != nil {
			t.Skip()
		}
		var out bytes.Buffer
		if err := FromJSON(&out, text); err != nil {
			t.Fatal(err)
		}
		for _, r := range out.String() {
			if r != '\n' && !unicode.IsPrint(r) {
				t.Fatalf("%q: %q", s, out.String())
			}
		}
		var got, want map[string]any
		if err := yaml.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatalf("%q: %v in\n%s", s, err, out.String())
		}
		if err := json.Unmarshal(text, &want); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q came back as %#v, want %#v, from\n%s", s, got, want, out.String())
		}
	})
}
