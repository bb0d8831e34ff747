// SPDX-License-Identifier: Apache-2.0

package yamlfile

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

func OnlyComments(data []byte) bool {
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			return false
		}
	}
	return true
}

// Settings decodes one document over what is there; written gets the settings that it
// has. wrong names one that cannot be, and says why.
func Settings[T any](data []byte, to *T, written map[string]bool, wrong func() (name, what string)) error {
	body, err := Body(data)
	if err != nil {
		return err
	}
	if err := checkKinds(body, reflect.TypeFor[T](), written); err != nil {
		return err
	}
	if err := yaml.NodeToValue(body, to, yaml.Strict()); err != nil {
		return err
	}
	if name, what := wrong(); what != "" {
		return At(body, name, what)
	}
	return nil
}

// checkKinds is of settings without levels: the library takes 4.7 for a whole number and
// 3 for 3 ns, and what it refuses it tells in the names of the program.
func checkKinds(body ast.Node, t reflect.Type, written map[string]bool) error {
	settings, ok := body.(*ast.MappingNode)
	if !ok {
		return &yaml.SyntaxError{Message: "want settings, each a name and its value, like name: 0.05", Token: body.GetToken()}
	}
	kinds := map[string]reflect.Type{}
	for i := range t.NumField() {
		kinds[t.Field(i).Tag.Get("yaml")] = t.Field(i).Type
	}
	for _, s := range settings.Values {
		name := s.Key.String()
		kind, ok := kinds[name]
		if !ok || written[name] {
			return &yaml.SyntaxError{Message: fmt.Sprintf("%s: there is no such setting, or it is said twice", name), Token: s.Key.GetToken()}
		}
		written[name] = true
		if want := wantOf(kind, s.Value); want != "" {
			return &yaml.SyntaxError{Message: fmt.Sprintf("%s: want %s", name, want), Token: s.Value.GetToken()}
		}
	}
	return nil
}

// wantOf says what a value must be; "": it is.
func wantOf(t reflect.Type, value ast.Node) string {
	var want string
	var fits bool
	switch {
	case t == reflect.TypeFor[time.Duration]():
		text, is := value.(*ast.StringNode)
		if want = "a time with its unit, like 10ms"; is {
			_, err := time.ParseDuration(text.Value)
			fits = err == nil
		}
	case t.Kind() == reflect.Bool:
		want = "true or false"
		_, fits = value.(*ast.BoolNode)
	case t.Kind() == reflect.String:
		want = "a word"
		_, fits = value.(*ast.StringNode)
	case t.Kind() == reflect.Float64:
		_, whole := value.(*ast.IntegerNode)
		_, fits = value.(*ast.FloatNode)
		want, fits = "a number", fits || whole
	default:
		want = "a whole number"
		_, fits = value.(*ast.IntegerNode)
	}
	if fits {
		return ""
	}
	return want
}
