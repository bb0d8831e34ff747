// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"errors"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/yamlfile"
)

// problem is something that cannot be, and its path in the file:
// workloads[1].demand.rate.
type problem struct{ path, text string }

// At says where in a scenario's text something is wrong that shows only with other
// files, such as the machine's: a file's error at a path. Parse has read the text.
func At(data []byte, file, path string, reason error) error {
	body, _, err := bodyOf(data)
	if err != nil {
		return yamlfile.Error(data, file, ErrMalformed, reason)
	}
	return yamlfile.Error(data, file, ErrMalformed, yamlfile.At(body, path, reason.Error()))
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
