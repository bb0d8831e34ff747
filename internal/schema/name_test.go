// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
)

// Different paths have different names, whatever their bytes, and a name survives JSON.
func TestNamesOfBytes(t *testing.T) {
	for path, want := range map[string]string{
		"/demo/a": "/demo/a", `/demo/a\x2d`: `/demo/a\x2d`, "/é\u2028": "/é\u2028", "/demo/a\xff": `bytes:/demo/a\xff`, "/\xc3\\xff": `bytes:/\xc3\\xff`, "": "",
	} {
		if got := Name(path); got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
	r, seen := rand.New(rand.NewPCG(43, 1)), map[string]string{}
	for range 200_000 {
		var b strings.Builder
		b.WriteByte('/')
		for range r.IntN(6) {
			b.WriteString([]string{"\xff", "\xfe", "\xc3", `\`, "x", "f", "fe", "bytes:/", "é", `\xff`, "\uFFFD"}[r.IntN(11)])
		}
		path := b.String()
		name := Name(path)
		if other, ok := seen[name]; ok && other != path {
			t.Fatalf("%q and %q are both %q", path, other, name)
		}
		seen[name] = path
		var back string
		if text, err := json.Marshal(name); err != nil || json.Unmarshal(text, &back) != nil || back != name {
			t.Fatalf("%q is %q after JSON", name, back)
		}
	}
}
