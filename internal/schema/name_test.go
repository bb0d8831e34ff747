// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

// Different paths have different names, whatever their bytes, and a name survives JSON.
func TestNamesOfBytes(t *testing.T) {
	for path, want := range map[string]string{
		"/demo/a": "/demo/a", `/demo/a\x2d`: `/demo/a\x2d`, "/é\u2028": "/é\u2028", "/demo/a\xff": `bytes:/demo/a\xff`, "/\xc3\\xff": `bytes:/\xc3\\xff`, "": "",
	} {
		if got := Name(path); got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
		if got := Path(want); got != path {
			t.Errorf("%q: %q, want %q", want, got, path)
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
		if got := Path(name); got != path {
			t.Fatalf("%q is %q, which is %q", path, name, got)
		}
		var back string
		if text, err := json.Marshal(name); err != nil || json.Unmarshal(text, &back) != nil || back != name {
			t.Fatalf("%q is %q after JSON", name, back)
		}
	}
}

// A text that is no name stays as it is, and so does every text there and back.
func FuzzPath(f *testing.F) {
	for _, text := range []string{"", "/a", `bytes:/a\xff`, "bytes:/a", `bytes:/\\\xfe`, `bytes:\x`, `bytes:/\x2f`, `bytes:/\xFF`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if utf8.ValidString(text) && Name(Path(text)) != text {
			t.Errorf("%q is the path %q, whose name is %q", text, Path(text), Name(Path(text)))
		}
		if path := "/" + text; Path(Name(path)) != path {
			t.Errorf("%q has the name %q, which is %q", path, Name(path), Path(Name(path)))
		}
	})
}
