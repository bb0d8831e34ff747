// SPDX-License-Identifier: Apache-2.0

package unix

import (
	"slices"
	"strings"
	"testing"
)

// Any name has a file of its own.
func TestFileName(t *testing.T) {
	t.Parallel()
	var files []string
	for _, n := range []string{"shop", "Shop", "a/b", "a%2Fb", "..", ".", "über", strings.Repeat("x", 500), strings.Repeat("x", 501), ".lock", "\xff", "a\x00b"} {
		f := FileName(n)
		if f == "" || strings.ContainsAny(f, "/\x00") || strings.HasPrefix(f, ".") || len(f) > 250 || slices.Contains(files, f) {
			t.Errorf("%q has the file %q", n, f)
		}
		files = append(files, f)
	}
}
