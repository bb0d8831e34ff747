// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"homenode/internal/policy/mao"
	"homenode/internal/sim"
)

// mostNumber is beyond every figure of a scenario, and far from where sums overflow.
const mostNumber = 1e18

// kinds goes over a document beside the Go type that it is decoded into. The library
// takes 4.7 and "4" for a whole number, and rounds: here they are refused.
type kinds struct {
	names
	written map[string]bool // paths of all values, aliases replaced
	err     error           // the first problem
}

func (k *kinds) refuse(n ast.Node, path, format string, args ...any) {
	if k.err == nil {
		k.err = refuse(n, path+": "+format, args...)
	}
}

var (
	ownReader = []reflect.Type{reflect.TypeFor[yaml.InterfaceUnmarshaler](), reflect.TypeFor[yaml.BytesUnmarshaler](), reflect.TypeFor[encoding.TextUnmarshaler]()}
	// readAs are types whose readers decode another.
	readAs = map[reflect.Type]reflect.Type{reflect.TypeFor[workloadDoc](): reflect.TypeFor[sim.Spec](), reflect.TypeFor[later](): reflect.TypeFor[mao.Config]()}
)

// check is of the value at a path, which becomes a t. What is no number is the
// library's to judge.
func (k *kinds) check(path string, t reflect.Type, n ast.Node) {
	n = k.value(n)
	if n == nil || n.Type() == ast.NullType || k.err != nil {
		return
	}
	k.written[path] = true
	if as, ok := readAs[t]; ok {
		t = as
	}
	for _, reader := range ownReader {
		if reflect.PointerTo(t).Implements(reader) {
			return
		}
	}
	switch t.Kind() {
	case reflect.Pointer:
		k.check(path, t.Elem(), n)
	case reflect.Struct:
		k.fields(path, t, n)
	case reflect.Slice:
		if list, ok := n.(*ast.SequenceNode); ok {
			for i, v := range list.Values {
				k.check(fmt.Sprintf("%s[%d]", path, i), t.Elem(), v)
			}
		}
	case reflect.Map:
		for _, v := range pairs(n) {
			k.check(path, t.Key(), v.Key)
			k.check(path+"."+v.Key.GetToken().Value, t.Elem(), v.Value)
		}
	case reflect.Int, reflect.Int64, reflect.Uint, reflect.Uint64:
		k.whole(path, t, n)
	case reflect.Float64:
		k.number(path, n)
	}
}

// pairs are those of a mapping; of one pair, too, which has a node of its own.
func pairs(n ast.Node) []*ast.MappingValueNode {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}
	}
	return nil
}

func (k *kinds) fields(path string, t reflect.Type, n ast.Node) {
	for _, v := range pairs(n) {
		name := v.Key.GetToken().Value
		if f, ok := fieldOf(t, name); ok {
			k.check(strings.TrimPrefix(path+"."+name, "."), f, v.Value)
		}
	}
}

func fieldOf(t reflect.Type, name string) (reflect.Type, bool) {
	var inside reflect.Type
	for f := range t.Fields() {
		tag, rest, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if tag == name && tag != "-" {
			return f.Type, true
		}
		if rest == "inline" {
			inside = f.Type
		}
	}
	if inside != nil {
		return fieldOf(inside, name)
	}
	return nil, false
}

// whole is a number without a fraction, in the range of its type.
func (k *kinds) whole(path string, t reflect.Type, n ast.Node) {
	if t == reflect.TypeFor[time.Duration]() {
		if n.Type() == ast.IntegerType || n.Type() == ast.FloatType {
			k.refuse(n, path, "it is %.40s: want a duration with its unit, such as 90s, 1.5h or 0s", n.GetToken().Value)
		}
		return
	}
	text := n.GetToken().Value
	v, ok := n.(*ast.IntegerNode)
	switch {
	case t.Kind() == reflect.Uint64 || t.Kind() == reflect.Uint:
		u, fits := asUint(v)
		if ok = ok && fits && !reflect.Zero(t).OverflowUint(u); !ok {
			k.refuse(n, path, "it is %.40s: want a whole number, 0 to %d", shown(n, text), uint64(math.MaxUint64))
		}
	default:
		i, fits := asInt(v)
		if ok = ok && fits && !reflect.Zero(t).OverflowInt(i); !ok {
			k.refuse(n, path, "it is %.40s: want a whole number", shown(n, text))
		}
	}
}

// shown quotes what was written as text.
func shown(n ast.Node, text string) string {
	if n.Type() == ast.StringType || n.Type() == ast.LiteralType {
		return strconv.Quote(text)
	}
	return text
}

func asUint(n *ast.IntegerNode) (uint64, bool) {
	if n == nil {
		return 0, false
	}
	switch v := n.Value.(type) {
	case uint64:
		return v, true
	case int64:
		return uint64(v), v >= 0
	}
	return 0, false
}

func asInt(n *ast.IntegerNode) (int64, bool) {
	if n == nil {
		return 0, false
	}
	switch v := n.Value.(type) {
	case uint64:
		return int64(v), v <= math.MaxInt64
	case int64:
		return v, true
	}
	return 0, false
}

// number is any; the library makes 1e5 and 1e309 words, which it reads as numbers
// later.
func (k *kinds) number(path string, n ast.Node) {
	v, ok := 0.0, true
	switch n := n.(type) {
	case *ast.IntegerNode:
		i, fits := asInt(n)
		if v = float64(i); !fits {
			v = math.Inf(1)
		}
	case *ast.FloatNode:
		v = n.Value
	case *ast.InfinityNode:
		v = math.Inf(1)
	case *ast.StringNode:
		var err error
		v, err = strconv.ParseFloat(n.Value, 64)
		ok = n.Token.Type == token.StringType && (err == nil || math.IsInf(v, 0))
	default:
		ok = false
	}
	switch text := n.GetToken().Value; {
	case !ok:
		k.refuse(n, path, "it is %.40s: want a number", shown(n, text))
	case !(math.Abs(v) <= mostNumber):
		k.refuse(n, path, "it is %.40s: want a number, at most %g", text, mostNumber)
	}
}
