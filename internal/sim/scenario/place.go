// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"homenode/internal/set"
	"homenode/internal/unit"
)

// problem is something that cannot be, and its path in the file:
// workloads[1].demand.rate.
type problem struct{ path, text string }

// at finds where in the file a problem is: its path, or the nearest part of the
// path that is written down.
func (p problem) at(body ast.Node) error {
	message := p.text
	if p.path != "" {
		message = p.path + ": " + p.text
	}
	for path := p.path; path != ""; path = path[:max(0, strings.LastIndexAny(path, ".["))] {
		if n := nodeAt(body, path); n != nil {
			return &yaml.SyntaxError{Message: message, Token: n.GetToken()}
		}
	}
	return errors.New(message)
}

func nodeAt(body ast.Node, path string) ast.Node {
	yp, err := yaml.PathString("$." + path)
	if err != nil {
		return nil
	}
	n, err := yp.FilterNode(body)
	if err != nil {
		return nil
	}
	return n
}

// At says where in a scenario's text something is wrong that shows only with other
// files, such as the machine's: a file's error at a path. Parse has read the text.
func At(data []byte, file, path string, reason error) error {
	body, _, err := bodyOf(data)
	if err != nil {
		return fileError(data, file, reason)
	}
	return fileError(data, file, problem{path, reason.Error()}.at(body))
}

// locate gives a place to the library's errors of a value that has its own reader:
// the first value in the file of which a reader says the same.
func locate(body ast.Node, err error) error {
	var at yaml.Error
	if body == nil || errors.As(err, &at) {
		return err
	}
	f := &finder{text: err.Error()}
	ast.Walk(f, body)
	if f.found == nil {
		return err
	}
	return &yaml.SyntaxError{Message: err.Error(), Token: f.found.GetToken()}
}

type finder struct {
	text  string
	found ast.Node
}

// Visit is of ast.Visitor.
func (f *finder) Visit(n ast.Node) ast.Visitor {
	if f.found != nil {
		return nil
	}
	if scalar, ok := n.(ast.ScalarNode); ok && f.says(scalar.GetToken().Value) {
		f.found = n
	}
	return f
}

func (f *finder) says(value string) bool {
	_, size := unit.ParseBytes(value)
	_, cpus := set.ParseCPUs(value)
	_, nodes := set.ParseNodes(value)
	_, lasts := time.ParseDuration(value)
	for _, err := range []error{size, cpus, nodes, lasts} {
		if err != nil && strings.Contains(f.text, err.Error()) {
			return true
		}
	}
	return false
}

// fileError says "parse FILE: line N: what", and shows the line.
func fileError(data []byte, file string, err error) error {
	var at yaml.Error
	if !errors.As(err, &at) || at.GetToken() == nil || at.GetToken().Position == nil {
		return fmt.Errorf("parse %s: %w: %w", file, ErrMalformed, err)
	}
	line := at.GetToken().Position.Line
	return fmt.Errorf("parse %s: line %d: %w: %s%s", file, line, ErrMalformed, at.GetMessage(), excerpt(data, line))
}

func excerpt(data []byte, line int) string {
	lines := strings.Split(string(data), "\n")
	if line < 1 || line > len(lines) {
		return ""
	}
	return fmt.Sprintf("\n%5d | %s", line, strings.TrimRight(lines[line-1], "\r"))
}
