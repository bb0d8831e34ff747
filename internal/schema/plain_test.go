// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode"
)

// Whatever a text has, it is the same one when it is read, and nothing that a terminal
// obeys is in what is written.
func TestEncoderIsPlain(t *testing.T) {
	texts := []string{"", "a\u009b31mb", "\u202eevil\u2066", "\x1b]0;x\x07", "\x7f", "é ü 漢 🙂", "\u0085\u2028\u00ad\ufeff\U000e0041", "line\n", "\U0010ffff"}
	for r := rune(1); r < 0x3000; r++ {
		texts = append(texts, "x"+string(r)+"y")
	}
	for _, text := range texts {
		var out bytes.Buffer
		if err := NewEncoder(&out).Encode(map[string]string{text: text}); err != nil {
			t.Fatal(err)
		}
		for _, r := range bytes.TrimSuffix(out.Bytes(), []byte("\n")) {
			if r < ' ' || r == 0x7f {
				t.Fatalf("%q: %q", text, out.String())
			}
		}
		for _, r := range out.String() {
			if r != '\n' && !unicode.IsPrint(r) {
				t.Fatalf("%q: %q", text, out.String())
			}
		}
		var back map[string]string
		if err := json.Unmarshal(out.Bytes(), &back); err != nil || back[text] != text {
			t.Fatalf("%q came back as %q, %v", text, back, err)
		}
	}
}

type named struct{ Name string }

func (named) Validate() error { return nil }

// Reports that are wire forms, as that of 'homenode migrate', are plain, too.
func TestEncodeIsPlain(t *testing.T) {
	for _, name := range []string{"a\u009b31mb", "\u202eevil\u2066", "\x7f", "<é>"} {
		data, err := Encode(named{name}, "test")
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range string(data) {
			if !unicode.IsPrint(r) {
				t.Errorf("%q: %q", name, data)
			}
		}
		var back named
		if err := json.Unmarshal(data, &back); err != nil || back.Name != name {
			t.Errorf("%q came back as %q, %v", name, back.Name, err)
		}
	}
}
