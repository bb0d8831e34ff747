// SPDX-License-Identifier: Apache-2.0

package internal_test

import (
	"go/ast"
	"testing"
)

// raw may write JSON that a terminal would obey.
var raw = map[string]string{
	"schema": "it is what the others write through",
}

// JSON for people has no name as it came from a process or a cgroup: all is written by
// schema.NewEncoder or schema.Encode.
func TestJSONIsPlain(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range load(t) {
		if isHelper(s.pkg) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			if !ok || selector(e) != "json.NewEncoder" {
				return true
			}
			if seen[s.pkg] = true; raw[s.pkg] == "" {
				t.Errorf("%s: use schema.NewEncoder: a terminal obeys what is in names", s.fset.Position(n.Pos()))
			}
			return true
		})
	}
	for pkg := range raw {
		if !seen[pkg] {
			t.Errorf("%s no longer needs its exception", pkg)
		}
	}
}
