// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"
	"testing"
	"unicode"
)

// A terminal that shows the metrics obeys nothing in a cgroup's name.
func TestLabelsArePlain(t *testing.T) {
	seen := map[string]bool{}
	for r := rune(1); r < 0x3000; r++ {
		got := metricLabel("/demo/" + string(r) + "\xff\"")
		if strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) || !strings.HasSuffix(got, `\\xff\"`) || seen[got] {
			t.Fatalf("%#x: %q", r, got)
		}
		seen[got] = true
	}
}
