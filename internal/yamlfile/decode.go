// SPDX-License-Identifier: Apache-2.0

package yamlfile

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// Decode puts the document over *to, which holds the defaults. Names are those of the
// fields' yaml tags; inline fields are supported.
//
//  1. A value that is missing or null leaves what is there.
//  2. A list or a map replaces the one before. A new element of a list has its own
//     defaults where its type has the method SetDefaults.
//  3. A type that reads text (UnmarshalText, or UnmarshalYAML with a []byte) gets the text
//     of one value.
//  4. Text is not a number, a number in quotes is text, and a fraction is not a whole
//     number: the library would convert and round.
//
// After an error *to holds a part of the file. The error joins all that is wrong, up to
// mostFound (Problems).
func (d *Document) Decode(to any) error { return d.DecodeAt("", to) }

// DecodeAt decodes what the file has at a path that Decode has read, over *to.
func (d *Document) DecodeAt(path string, to any) error {
	n := d.root
	if path != "" {
		n = d.written[path]
	}
	if n == nil {
		return nil
	}
	d.found = nil
	if err := d.decode(path, n, reflect.ValueOf(to).Elem()); err != nil {
		return errors.Join(append(d.found, err)...)
	}
	return errors.Join(d.found...)
}

// mostFound bounds the problems of one file: more say nothing new.
const mostFound = 50

// note keeps a problem, so that the others are found too. It returns an error when there
// are too many.
func (d *Document) note(err error) error {
	if err == nil || len(d.found) >= mostFound {
		return err
	}
	d.found = append(d.found, err)
	return nil
}

func (d *Document) decode(path string, n *yaml.Node, to reflect.Value) error {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if isNull(n) { // 1
		return nil
	}
	d.written[path] = n
	if read := textReader(to); read != nil {
		return d.scalarText(path, n, read)
	}
	switch to.Kind() {
	case reflect.Pointer:
		return d.pointer(path, n, to)
	case reflect.Struct:
		return d.fields(path, n, to)
	case reflect.Slice, reflect.Array:
		return d.list(path, n, to)
	case reflect.Map:
		return d.entries(path, n, to)
	}
	return d.one(path, n, to)
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// textReader is number 3 of Decode; nil: the type has none.
func textReader(to reflect.Value) func([]byte) error {
	switch r := to.Addr().Interface().(type) {
	case interface{ UnmarshalYAML(text []byte) error }:
		return r.UnmarshalYAML
	case encoding.TextUnmarshaler:
		return r.UnmarshalText
	}
	return nil
}

func (d *Document) scalarText(path string, n *yaml.Node, read func([]byte) error) error {
	if n.Kind != yaml.ScalarNode {
		return d.want(path, n, `one value, such as 0-3, "0-1,8" or 512MiB`)
	}
	if err := read([]byte(n.Value)); err != nil {
		return d.refuse(path, n, err.Error())
	}
	return nil
}

func (d *Document) pointer(path string, n *yaml.Node, to reflect.Value) error {
	v := fresh(to.Type().Elem())
	if !to.IsNil() {
		v.Set(to.Elem())
	}
	err := d.decode(path, n, v)
	to.Set(v.Addr())
	return err
}

// fresh is a new value with its own defaults (2).
func fresh(t reflect.Type) reflect.Value {
	p := reflect.New(t)
	if x, ok := p.Interface().(interface{ SetDefaults() }); ok {
		x.SetDefaults()
	}
	return p.Elem()
}

func (d *Document) fields(path string, n *yaml.Node, to reflect.Value) error {
	if n.Kind != yaml.MappingNode {
		return d.want(path, n, "settings, each a name and its value, such as name: 0.05")
	}
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		f, ok := fieldOf(to, key.Value)
		if !ok {
			err := d.failAt(key, path, fmt.Sprintf("unknown field %.100q%s", key.Value, didYouMean(Nearest(key.Value, namesOf(to.Type())))))
			if err := d.note(err); err != nil {
				return err
			}
			continue
		}
		if err := d.note(d.decode(strings.TrimPrefix(path+"."+key.Value, "."), value, f)); err != nil {
			return err
		}
	}
	return nil
}

// fieldOf is the field of that name: a struct's own before those of its inline fields.
func fieldOf(to reflect.Value, name string) (reflect.Value, bool) {
	var inline []reflect.Value
	for i := range to.NumField() {
		tag, option, _ := strings.Cut(to.Type().Field(i).Tag.Get("yaml"), ",")
		if tag == name && tag != "-" && tag != "" {
			return to.Field(i), true
		}
		if option == "inline" {
			inline = append(inline, to.Field(i))
		}
	}
	for _, in := range inline {
		if f, ok := fieldOf(in, name); ok {
			return f, true
		}
	}
	return reflect.Value{}, false
}

func (d *Document) list(path string, n *yaml.Node, to reflect.Value) error {
	if n.Kind != yaml.SequenceNode {
		return d.want(path, n, "a list, such as [a, b]")
	}
	if to.Kind() == reflect.Slice {
		to.Set(reflect.MakeSlice(to.Type(), len(n.Content), len(n.Content)))
	} else if len(n.Content) != to.Len() {
		return d.refuse(path, n, fmt.Sprintf("it has %d values: want %d", len(n.Content), to.Len()))
	}
	for i, value := range n.Content {
		v := fresh(to.Type().Elem())
		if err := d.note(d.decode(fmt.Sprintf("%s[%d]", path, i), value, v)); err != nil {
			return err
		}
		to.Index(i).Set(v)
	}
	return nil
}

func (d *Document) entries(path string, n *yaml.Node, to reflect.Value) error {
	if n.Kind != yaml.MappingNode {
		return d.want(path, n, "names and values, such as {a: 1, b: 2}")
	}
	to.Set(reflect.MakeMap(to.Type()))
	for i := 0; i < len(n.Content); i += 2 {
		key, value := fresh(to.Type().Key()), fresh(to.Type().Elem())
		if err := d.decode(path, n.Content[i], key); err != nil {
			return err
		}
		if err := d.decode(path+"."+n.Content[i].Value, n.Content[i+1], value); err != nil {
			return err
		}
		to.SetMapIndex(key, value)
	}
	d.written[path] = n // and not the last key
	return nil
}

// mostNumber is beyond every figure of a file, and far from where sums overflow.
const mostNumber = 1e18

// one is number 4 of Decode.
func (d *Document) one(path string, n *yaml.Node, to reflect.Value) error {
	want := ""
	switch {
	case to.Type() == reflect.TypeFor[time.Duration]():
		v, err := time.ParseDuration(n.Value)
		if to.SetInt(int64(v)); err != nil || isNumber(n) || n.Kind != yaml.ScalarNode {
			want = "a duration with its unit, such as 90s, 1.5h or 0s"
		}
	case to.Kind() == reflect.String:
		if to.SetString(n.Value); n.Kind != yaml.ScalarNode {
			want = "a text"
		}
	case to.Kind() == reflect.Bool:
		if to.SetBool(strings.EqualFold(n.Value, "true")); n.ShortTag() != "!!bool" || !isPlain(n) {
			want = "true or false"
		}
	case to.CanInt():
		v := int64(0)
		if !isWhole(n) || n.Decode(&v) != nil || to.OverflowInt(v) {
			want = "a whole number"
		}
		to.SetInt(v)
	case to.CanUint():
		v := uint64(0)
		if !isWhole(n) || n.Decode(&v) != nil || to.OverflowUint(v) {
			want = fmt.Sprintf("a whole number, 0 to %d", uint64(math.MaxUint64)>>(64-to.Type().Bits()))
		}
		to.SetUint(v)
	case to.CanFloat():
		v, ok := number(n)
		if to.SetFloat(v); !ok {
			want = "a number"
		} else if !(math.Abs(v) <= mostNumber) {
			return d.refuse(path, n, fmt.Sprintf("it is %.40s: want a number, at most %g", n.Value, mostNumber))
		}
	default:
		return d.refuse(path, n, "this program cannot read a "+to.Type().String())
	}
	if want != "" {
		return d.want(path, n, want)
	}
	return nil
}

// number is any; 1e309 is text to the library.
func number(n *yaml.Node) (v float64, ok bool) {
	if isNumber(n) {
		return v, n.Decode(&v) == nil
	}
	v, err := strconv.ParseFloat(n.Value, 64)
	return v, err != nil && math.IsInf(v, 0) && isPlain(n)
}

func isWhole(n *yaml.Node) bool  { return n.ShortTag() == "!!int" && isPlain(n) }
func isNumber(n *yaml.Node) bool { return isWhole(n) || n.ShortTag() == "!!float" && isPlain(n) }

// isPlain says that a value has no quotes.
func isPlain(n *yaml.Node) bool {
	const quoted = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	return n.Kind == yaml.ScalarNode && n.Style&quoted == 0
}

// want says what is there, and what should be.
func (d *Document) want(path string, n *yaml.Node, want string) error {
	is := fmt.Sprintf("%.40s", n.Value)
	switch {
	case n.Kind == yaml.SequenceNode:
		is = "a list"
	case n.Kind == yaml.MappingNode:
		is = "a group of settings"
	case !isPlain(n) || n.ShortTag() == "!!str":
		is = fmt.Sprintf("%.40q", n.Value)
	}
	return d.refuse(path, n, fmt.Sprintf("it is %s: want %s%s", is, want, didYouMean(meant(n, want))))
}

func (d *Document) refuse(path string, n *yaml.Node, text string) error {
	return d.failAt(n, path, text)
}
