// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"homenode/internal/kernel"
	"homenode/internal/kernel/unix"
	"homenode/internal/policy/brm"
	"homenode/internal/yamlfile"
)

// maxBRMFile is some ten times what all settings take.
const maxBRMFile = 16 << 10

// brmPeriod is the command's own: what the paper has, 10 ms, is a cost that nobody asked for.
const brmPeriod = 100 * time.Millisecond

// settings puts the command line and the file together. What both say must be the same.
func (o brmOptions) settings(given func(flag string) bool) (brm.Config, error) {
	cfg, written, err := brmConfig(o.config)
	if err != nil {
		return brm.Config{}, err
	}
	var errs [3]error
	cfg.Period, errs[0] = sayOnce("period", o.config, given, written, o.period, cfg.Period)
	cfg.Hold, errs[1] = sayOnce("hold", o.config, given, written, o.hold, cfg.Hold)
	cfg.Infer, errs[2] = sayOnce("infer", o.config, given, written, o.infer, cfg.Infer)
	if err := errors.Join(errs[:]...); err != nil {
		return brm.Config{}, err
	}
	return cfg, cfg.Validate()
}

// sayOnce is what the file says, unless the flag was given.
func sayOnce[T comparable](name, file string, given func(flag string) bool, written map[string]bool, ofFlag, ofFile T) (T, error) {
	switch {
	case !written[name]:
		return ofFlag, nil
	case given(name) && ofFlag != ofFile:
		return ofFlag, fmt.Errorf("--%s %v: %s says %s: %v: say it once", name, ofFlag, file, name, ofFile)
	}
	return ofFile, nil
}

// brmConfig decodes a file over the defaults; written are the settings that it has.
func brmConfig(file string) (cfg brm.Config, written map[string]bool, err error) {
	if file == "" {
		return parseBRM(nil, file)
	}
	data, err := unix.ReadAtMost(file, maxBRMFile)
	if err != nil {
		return brm.Config{}, nil, fmt.Errorf("read configuration: %w", err)
	}
	return parseBRM(data, file)
}

// parseBRM refuses unknown and repeated settings, and what cannot be, with line and
// excerpt.
func parseBRM(data []byte, file string) (brm.Config, map[string]bool, error) {
	cfg := brm.DefaultConfig()
	cfg.Period = brmPeriod
	if onlyComments(data) {
		return cfg, nil, nil
	}
	written := map[string]bool{}
	err := yamlfile.Guard(func() error { return decodeBRM(data, &cfg, written) })
	if err != nil {
		return brm.Config{}, nil, yamlfile.Error(data, file, kernel.ErrMalformed, err)
	}
	return cfg, written, nil
}

func onlyComments(data []byte) bool {
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			return false
		}
	}
	return true
}

func decodeBRM(data []byte, cfg *brm.Config, written map[string]bool) error {
	if len(data) > maxBRMFile {
		return fmt.Errorf("it has %d bytes: settings take at most %d", len(data), maxBRMFile)
	}
	return decodeSettings(data, cfg, written, func() (name, what string) {
		if err := cfg.Validate(); err != nil { // "brm: margin is 99: it must be …"
			name, what, _ = strings.Cut(strings.TrimPrefix(err.Error(), "brm: "), " ")
			what = "it " + what
		}
		return name, what
	})
}

// decodeSettings decodes one document over what is there; written gets the settings that it
// has. wrong names one that cannot be, and says why.
func decodeSettings[T any](data []byte, to *T, written map[string]bool, wrong func() (name, what string)) error {
	body, err := yamlfile.Body(data)
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
		return yamlfile.At(body, name, what)
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
