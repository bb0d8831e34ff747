// SPDX-License-Identifier: Apache-2.0

package yamlfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"
)

// FromJSON writes a JSON value as a YAML document: the same names in the same order, and
// the same values. Names come from processes and cgroups: what a terminal would obey is
// written as an escape.
func FromJSON(w io.Writer, text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	root, err := nodeOf(d)
	if err != nil {
		return fmt.Errorf("write YAML: %w", err)
	}
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := errors.Join(e.Encode(root), e.Close()); err != nil {
		return fmt.Errorf("write YAML: %w", err)
	}
	_, err = io.WriteString(w, plain(out.String()))
	return err
}

func nodeOf(d *json.Decoder) (*yaml.Node, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch x := token.(type) {
	case json.Delim:
		return listOf(d, x)
	case string:
		return textOf(x), nil
	case json.Number:
		tag := "!!int"
		if strings.ContainsAny(x.String(), ".eE") {
			tag = "!!float"
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: x.String()}, nil
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: fmt.Sprint(x)}, nil
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}, nil
}

// listOf reads an object or an array after its first delimiter. An empty one is {} or [].
func listOf(d *json.Decoder, open json.Delim) (*yaml.Node, error) {
	n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	if open == '[' {
		n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
	}
	for d.More() {
		x, err := nodeOf(d)
		if err != nil {
			return nil, err
		}
		n.Content = append(n.Content, x)
	}
	if len(n.Content) == 0 {
		n.Style = yaml.FlowStyle
	}
	_, err := d.Token() // the last delimiter
	return n, err
}

// truths are texts that readers of YAML 1.1, such as PyYAML, take for something else. The
// library quotes those of YAML 1.2.
var truths = []string{"y", "n", "yes", "no", "on", "off"}

// textOf quotes what a reader would take for a number, a date or a truth value, and what
// has characters to be escaped.
func textOf(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	if slices.Contains(truths, strings.ToLower(s)) || s != "" && strings.ContainsRune("+-.0123456789", rune(s[0])) ||
		strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// plain escapes what is left of characters that are not printed; they are in double quotes.
func plain(s string) string {
	var out strings.Builder
	for _, r := range s {
		switch {
		case r == '\n' || unicode.IsPrint(r):
			out.WriteRune(r)
		case r <= 0xffff:
			fmt.Fprintf(&out, `\u%04X`, r)
		default:
			fmt.Fprintf(&out, `\U%08X`, r)
		}
	}
	return out.String()
}
