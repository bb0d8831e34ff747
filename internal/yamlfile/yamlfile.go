// SPDX-License-Identifier: Apache-2.0

package yamlfile

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Guard calls read and turns the library's panics into errors: goccy/go-yaml 1.19.2
// dereferences nil on a tag without a value ("- !0 ").
func Guard(read func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the YAML library cannot read it: %v", r)
		}
	}()
	return read()
}

// Body is the one document that a file must hold. It may panic: see Guard.
func Body(data []byte) (ast.Node, error) {
	f, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, err
	}
	if len(f.Docs) != 1 || f.Docs[0].Body == nil {
		return nil, errors.New("it must hold exactly one YAML document")
	}
	return f.Docs[0].Body, nil
}

// At says "path: text" at the line of a path such as workloads[1].demand.rate, or of the
// nearest part of it that is written down.
func At(body ast.Node, path, text string) error {
	message := text
	if path != "" {
		message = path + ": " + text
	}
	for ; path != ""; path = path[:max(0, strings.LastIndexAny(path, ".["))] {
		yp, err := yaml.PathString("$." + path)
		if err != nil {
			continue
		}
		if n, err := yp.FilterNode(body); err == nil && n != nil {
			return &yaml.SyntaxError{Message: message, Token: n.GetToken()}
		}
	}
	return errors.New(message)
}

// Error says "parse FILE: line N: malformed: what", and shows the line; malformed is the
// room's own sentinel. Where err knows no place, there is no line.
func Error(data []byte, file string, malformed, err error) error {
	var at yaml.Error
	if !errors.As(err, &at) || at.GetToken() == nil || at.GetToken().Position == nil {
		return fmt.Errorf("parse %s: %w: %w", file, malformed, err)
	}
	line := at.GetToken().Position.Line
	return fmt.Errorf("parse %s: line %d: %w: %s%s", file, line, malformed, at.GetMessage(), excerpt(data, line))
}

func excerpt(data []byte, line int) string {
	lines := strings.Split(string(data), "\n")
	if line < 1 || line > len(lines) {
		return ""
	}
	return fmt.Sprintf("\n%5d | %s", line, strings.TrimRight(lines[line-1], "\r"))
}
