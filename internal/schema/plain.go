// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"encoding/json"
	"fmt"
	"io"
	"unicode"
	"unicode/utf8"
)

// NewEncoder writes JSON that a terminal may show: names come from processes and cgroups,
// and encoding/json leaves C1 controls, DEL and direction overrides in them as they are.
// They are written as \u009b, which is the same JSON.
func NewEncoder(w io.Writer) *json.Encoder { return json.NewEncoder(plain{w}) }

// plain gets whole values: an encoder writes each at once.
type plain struct{ w io.Writer }

func (p plain) Write(text []byte) (int, error) {
	at := 0
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if !obeyed(r) {
			i += size
			continue
		}
		if _, err := p.w.Write(text[at:i]); err != nil {
			return at, err
		}
		if _, err := io.WriteString(p.w, escaped(r)); err != nil {
			return i, err
		}
		i += size
		at = i
	}
	n, err := p.w.Write(text[at:])
	return at + n, err
}

// obeyed says that a terminal, or a program that lays out text, may do what a character says.
// Newlines are between values, and what else is below a blank the encoder escapes.
func obeyed(r rune) bool { return r > '~' && r != utf8.RuneError && !unicode.IsPrint(r) }

func escaped(r rune) string {
	if r <= 0xffff {
		return fmt.Sprintf(`\u%04x`, r)
	}
	r -= 0x10000
	return fmt.Sprintf(`\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
}
