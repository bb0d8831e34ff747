// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// mostNodes is of a document in which every alias is replaced by what it names: the
// library does that while it decodes, and takes seconds for a million.
const mostNodes = 200_000

// names are what a document's anchors stand for.
type names struct {
	nodes map[string]ast.Node
	sizes map[string]int // with all aliases inside replaced
}

// namesOf bounds what the library will decode. Aliases of aliases grow with a power
// of their depth: 800 bytes are 9^11 nodes. Merge keys are refused: goccy/go-yaml
// 1.19.2 expands them again and again, and a scenario needs none.
func namesOf(body ast.Node) (names, error) {
	all := names{map[string]ast.Node{}, map[string]int{}}
	_, err := all.count(body)
	return all, err
}

func refuse(n ast.Node, format string, args ...any) error {
	return &yaml.SyntaxError{Message: fmt.Sprintf(format, args...), Token: n.GetToken()}
}

// count is how many nodes n is with every alias replaced.
func (a names) count(n ast.Node) (int, error) {
	switch n := n.(type) {
	case nil:
		return 0, nil
	case *ast.AnchorNode:
		return a.anchor(n)
	case *ast.AliasNode:
		name := n.Value.GetToken().Value
		if _, ok := a.nodes[name]; !ok {
			return 0, refuse(n, "alias *%.40s: nothing before it is called &%.40s", name, name)
		}
		return a.sizes[name], nil
	case *ast.MappingNode:
		return sum(n, n.Values, a.count)
	case *ast.MappingValueNode:
		if err := plainKey(n.Key); err != nil {
			return 0, err
		}
		return a.count(n.Value)
	case *ast.SequenceNode:
		return sum(n, n.Values, a.count)
	case *ast.TagNode:
		return a.count(n.Value)
	case *ast.StringNode:
		alone(n.Token)
	case *ast.IntegerNode:
		alone(n.Token)
	case *ast.FloatNode:
		alone(n.Token)
	}
	return 1, nil
}

// alone parts a value from the tokens around it: to hand it to a reader of ours, such
// as unit.Bytes', the library goes over all tokens that hang together with it, which
// took 45 s for 2,000 workloads.
func alone(t *token.Token) { t.Prev, t.Next = nil, nil }

func (a names) anchor(n *ast.AnchorNode) (int, error) {
	name := n.Name.GetToken().Value
	if _, twice := a.nodes[name]; twice {
		return 0, refuse(n, "&%.40s is there twice: give one of them another name", name)
	}
	size, err := a.count(n.Value)
	if err != nil {
		return 0, err
	}
	if _, twice := a.nodes[name]; twice { // inside of itself
		return 0, refuse(n, "&%.40s is there twice: give one of them another name", name)
	}
	a.nodes[name], a.sizes[name] = n.Value, size
	return size, nil
}

func sum[N ast.Node](at ast.Node, nodes []N, count func(ast.Node) (int, error)) (int, error) {
	total := 1
	for _, n := range nodes {
		size, err := count(n)
		if err != nil {
			return 0, err
		}
		if total += size; total > mostNodes {
			return 0, refuse(at, "it has more than %d values, with what its aliases stand for", mostNodes)
		}
	}
	return total, nil
}

// plainKey refuses what is no key of a scenario: merge keys, aliases, and lists.
func plainKey(key ast.MapKeyNode) error {
	if key.IsMergeKey() || key.GetToken().Value == "<<" {
		return refuse(key, "merge keys (<<) are not read: write out what is the same, or name a whole value with & and *")
	}
	if _, ok := key.(ast.ScalarNode); !ok {
		return refuse(key, "it is no name of a setting")
	}
	return nil
}

// value is what a node stands for: behind its anchor, its tag, or as an alias.
func (a names) value(n ast.Node) ast.Node {
	for {
		switch v := n.(type) {
		case *ast.AnchorNode:
			n = v.Value
		case *ast.AliasNode:
			n = a.nodes[v.Value.GetToken().Value]
		default:
			return n
		}
	}
}
