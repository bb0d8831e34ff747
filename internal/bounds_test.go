// SPDX-License-Identifier: Apache-2.0

package internal_test

import (
	"go/ast"
	"strings"
	"testing"
)

// unbounded may take whatever there is. All other product code reads through kernel/unix
// (Buffer, Budget, ReadAtMost) or with a limit of its own: docs/reliability.md, "Inputs and
// their bounds". The exceptions read only what the kernel or this program makes.
var unbounded = map[string]string{
	"agent/serve":      "status and statm of this process",
	"cmd/homenode-lab": "cmdline and stat of the kernel, files of a PMU in sysfs; files of the lab, and the demonstration's agent",
	"kernel/perf":      "files of a PMU in sysfs",
	"kernel/record":    "its own README; an entry of an archive, whose size was looked at; files of a tree, which bounds them (unix.Root.FS)",
	"machine":          "files of a tree, which bounds them (unix.Root.FS)",
	"kernel/unix":      "a setting of the kernel",
	"kernel/launch":    "numa_maps of this process, which placed a segment",
}

// Nothing is read without a bound but what is listed with its reason.
func TestReadsAreBounded(t *testing.T) {
	used := map[string]bool{}
	for _, s := range load(t) {
		room, _, _ := strings.Cut(s.pkg, "/")
		if isHelper(s.pkg) || room == "lab" || room == "sim" {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if !readsAll(n) {
				return true
			}
			if _, ok := unbounded[s.pkg]; !ok {
				t.Errorf("%s: it reads without a bound: use unix.ReadAtMost, or say in unbounded why it may", s.fset.Position(n.Pos()))
			}
			used[s.pkg] = true
			return true
		})
	}
	for pkg := range unbounded {
		if !used[pkg] {
			t.Errorf("%s no longer needs its exception", pkg)
		}
	}
}

// readsAll says that something is os.ReadFile or fs.ReadFile, called or handed on, or a call
// of io.ReadAll of something without a limit.
func readsAll(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.SelectorExpr:
		name := selector(n)
		return name == "os.ReadFile" || name == "fs.ReadFile"
	case *ast.CallExpr:
		if selector(n.Fun) != "io.ReadAll" {
			return false
		}
		inner, ok := n.Args[0].(*ast.CallExpr)
		return !ok || selector(inner.Fun) != "io.LimitReader"
	}
	return false
}

// selector is "os.ReadFile" of such an expression.
func selector(e ast.Expr) string {
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if x, ok := s.X.(*ast.Ident); ok {
		return x.Name + "." + s.Sel.Name
	}
	return ""
}
