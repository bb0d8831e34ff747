// SPDX-License-Identifier: Apache-2.0

package internal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every row of docs/reliability.md names a test, and every test that it names is there:
// `kernel.TestX` is TestX of internal/kernel, `cmd/homenode.TestX` the command's.
func TestReliabilityRowsHaveTests(t *testing.T) {
	data, err := os.ReadFile("../docs/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`([a-z/]+)\\.(Test[A-Za-z0-9]+)`")
	rows, tests := 0, map[string]map[string]bool{}
	for n, line := range strings.Split(string(data), "\n") {
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if !strings.HasPrefix(line, "| ") || len(cells) != 4 || strings.HasPrefix(line, "| **") || strings.HasPrefix(line, "| fault ") || strings.HasPrefix(line, "| input ") {
			if strings.HasPrefix(line, "| ") && len(cells) != 4 {
				t.Errorf("docs/reliability.md:%d: %d cells, want 4", n+1, len(cells))
			}
			continue
		}
		rows++
		all := named.FindAllStringSubmatch(cells[3], -1)
		if len(all) == 0 || named.ReplaceAllString(strings.TrimSpace(cells[3]), "") != strings.Repeat(" ", len(all)-1) {
			t.Errorf("docs/reliability.md:%d: %q: want tests as `room/package.TestName`, and nothing else", n+1, cells[3])
		}
		for _, m := range all {
			if tests[m[1]] == nil {
				tests[m[1]] = testsOf(t, m[1])
			}
			if !tests[m[1]][m[2]] {
				t.Errorf("docs/reliability.md:%d: there is no %s in %s", n+1, m[2], m[1])
			}
		}
	}
	if rows < 30 {
		t.Errorf("only %d rows: the table was not read", rows)
	}
}

// testsOf parses a package's test files.
func testsOf(t *testing.T, pkg string) map[string]bool {
	t.Helper()
	dir := pkg
	if rest, ok := strings.CutPrefix(pkg, "cmd/"); ok {
		dir = "../cmd/" + rest
	}
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") {
				all[fn.Name.Name] = true
			}
		}
	}
	return all
}
