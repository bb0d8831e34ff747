// SPDX-License-Identifier: Apache-2.0

package golden

import (
	"strings"
	"testing"
)

// A failure shows the line where the texts part, not both texts.
func TestDifference(t *testing.T) {
	same := strings.Repeat("same\n", 100)
	long := strings.Repeat("more\n", 20)
	for _, c := range []struct{ name, want, got, shown string }{
		{"a line", same + "a\nb\n", same + "a\nc\n", "From line 102 on\ngot:\nc\n\nwant:\nb\n"},
		{"got less", "a\nb\n", "a\n", "From line 2 on\ngot:\n\nwant:\nb\n"},
		{"no line end", "a\n", "a", "From line 1 on\ngot:\na\nwant:\na\n"},
		{"long", "x\n", long, "… and 13 lines more\nwant:\nx\n"},
	} {
		if shown := difference(c.want, c.got); !strings.Contains(shown, c.shown) {
			t.Errorf("%s: difference says\n%s\nwant in it\n%s", c.name, shown, c.shown)
		}
	}
}
