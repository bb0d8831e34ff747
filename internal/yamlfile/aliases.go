// SPDX-License-Identifier: Apache-2.0

package yamlfile

import (
	"fmt"

	"go.yaml.in/yaml/v4"
)

// mostValues is of a document in which every alias is replaced by what it stands for.
// Aliases of aliases grow with a power of their depth: 800 bytes can be 9^11 values.
const mostValues = 200_000

// counter goes over a document once. It refuses what no file here needs: too many values,
// merge keys, keys that are not names, names that are there twice, and an alias inside
// what it stands for.
type counter struct {
	d       *Document
	sizes   map[*yaml.Node]int // with all aliases replaced; 0: not yet known
	anchors map[string]bool
	twice   []error // names that are there twice
}

// count is how many values n is with every alias replaced.
func (c *counter) count(n *yaml.Node) (int, error) {
	if n.Kind == yaml.AliasNode {
		size := c.sizes[n.Alias]
		if size == 0 {
			return 0, c.d.failAt(n, "", fmt.Sprintf("alias *%.40s is inside the value that it stands for", n.Value))
		}
		return size, nil
	}
	if err := c.anchor(n); err != nil {
		return 0, err
	}
	if n.Kind == yaml.MappingNode {
		if err := c.names(n); err != nil {
			return 0, err
		}
	}
	total := 1
	for _, v := range n.Content {
		size, err := c.count(v)
		if err != nil {
			return 0, err
		}
		if total += size; total > mostValues {
			return 0, c.d.failAt(n, "", fmt.Sprintf("it has more than %d values, with what its aliases stand for", mostValues))
		}
	}
	c.sizes[n] = total
	return total, nil
}

func (c *counter) anchor(n *yaml.Node) error {
	if n.Anchor == "" {
		return nil
	}
	if c.anchors[n.Anchor] {
		return c.d.failAt(n, "", fmt.Sprintf("&%.40s is there twice: give one of them another name", n.Anchor))
	}
	c.anchors[n.Anchor] = true
	return nil
}

func (c *counter) names(n *yaml.Node) error {
	lines := map[string]int{}
	for i := 0; i < len(n.Content); i += 2 {
		key := n.Content[i]
		switch first := lines[key.Value]; {
		case key.Kind != yaml.ScalarNode:
			return c.d.failAt(key, "", "want a name here, not a list, an alias or other settings")
		case key.Value == "<<":
			return c.d.failAt(key, "", "merge keys (<<) are not supported: repeat the settings, or use & and * for a whole value")
		case first > 0:
			if len(c.twice) < mostFound {
				c.twice = append(c.twice, c.d.failAt(key, "", fmt.Sprintf("%.40q is already defined in line %d: remove one of them", key.Value, first)))
			}
			continue
		}
		lines[key.Value] = key.Line
	}
	return nil
}
