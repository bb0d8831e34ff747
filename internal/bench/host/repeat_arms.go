// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"homenode/internal/kernel/launch"
	"homenode/internal/machine"
	"homenode/internal/set"
	"homenode/internal/source"
)

// arm is one placement to run the command under.
type arm struct {
	name, about string
	run         []string // the flags of 'homenode run'
	placement   launch.Placement
}

// mostNodeArms bounds the arms of "nodes": each of them costs as many runs as
// the first arm.
const mostNodeArms = 4

// armChoice collects the arms.
type armChoice struct {
	m      machine.Machine
	limits launch.Limits
	nodes  set.NodeSet // those of --nodes that have memory and may be used
	arms   []arm
	notes  []string
}

// choose makes the arms that the flags name. Arms that are impossible on this
// machine are left out with a note.
func (f RepeatOptions) choose(m machine.Machine, l launch.Limits) ([]arm, []string, error) {
	nodes, err := source.NodesOf(m, "nodes", f.Nodes)
	if err != nil {
		return nil, nil, err
	}
	if f.Nodes == "all" && !l.Mems.IsEmpty() {
		nodes = nodes.Intersect(l.Mems)
	}
	c := &armChoice{m: m, limits: l, nodes: nodes}
	if err := c.checkNodes(f); err != nil {
		return nil, nil, err
	}
	for _, name := range f.Arms {
		if err := c.addArm(strings.TrimSpace(name)); err != nil {
			return nil, nil, err
		}
	}
	if len(m.Nodes) == 1 {
		return []arm{asIs()}, []string{"This machine has one node: there is nothing to place, and only as-is was measured."}, nil
	}
	if len(c.arms) == 0 {
		return nil, nil, fmt.Errorf("--arms %s: none of them is possible here: %s", strings.Join(f.Arms, ","), strings.Join(c.notes, " "))
	}
	return c.arms, c.notes, nil
}

func asIs() arm { return arm{name: "as-is", about: "not placed"} }

// checkNodes requires that named nodes exist, even if no arm would use them.
func (c *armChoice) checkNodes(f RepeatOptions) error {
	if f.Nodes == "all" {
		return nil
	}
	if c.nodes.IsEmpty() {
		return fmt.Errorf("--nodes is empty: name nodes, or all")
	}
	_, err := launch.Resolve(launch.Request{Policy: launch.Interleave, Nodes: c.nodes}, c.m, c.limits)
	return err
}

func (c *armChoice) addArm(name string) error {
	if name == "default" {
		name = "as-is"
	}
	if c.has(name) {
		return nil
	}
	id, isNode := strings.CutPrefix(name, "node-")
	node, err := strconv.Atoi(id)
	switch {
	case name == "as-is":
		c.arms = append(c.arms, asIs())
	case name == "nodes":
		c.addNodes()
	case name == "local":
		return c.addLocal()
	case name == "interleave":
		return c.addInterleave()
	case isNode && err == nil && node >= 0 && node <= set.MaxNode:
		return c.addNode(node)
	default:
		return fmt.Errorf("--arms %q: unknown arm: want some of as-is, nodes, node-N, local, interleave", name)
	}
	return nil
}

func (c *armChoice) has(name string) bool {
	return slices.ContainsFunc(c.arms, func(a arm) bool { return a.name == name })
}

// addNodes takes the nodes that have CPUs, up to mostNodeArms: the first, then one
// for each distance from it, nearest first, then by number.
func (c *armChoice) addNodes() {
	var able, skipped set.NodeSet
	for id := range c.nodes.All() {
		if c.cpusOf(id).IsEmpty() {
			skipped = skipped.With(id)
		} else {
			able = able.With(id)
		}
	}
	if !skipped.IsEmpty() {
		c.notes = append(c.notes, fmt.Sprintf("No arm binds to nodes %s: none of their CPUs may be used.", skipped))
	}
	picked := c.pick(able)
	if left := able.Minus(picked); !left.IsEmpty() {
		c.notes = append(c.notes, fmt.Sprintf("Of %d nodes, %s were tried: '--arms as-is,node-%d' tries another.", able.Len(), picked, left.IDs()[0]))
	}
	for id := range picked.All() {
		// Its errors were checked before: the node has CPUs and memory, and may be used.
		_ = c.addNode(id)
	}
}

func (c *armChoice) pick(able set.NodeSet) (picked set.NodeSet) {
	first, ok := able.First()
	if !ok || able.Len() <= mostNodeArms {
		return able
	}
	distance := func(id int) int {
		d, _ := c.m.Distance(first, id).Get()
		return d
	}
	order := able.IDs()
	slices.SortStableFunc(order, func(a, b int) int { return distance(a) - distance(b) })
	picked = set.FromNodes(first)
	seen := map[int]bool{}
	for _, id := range order[1:] {
		if d := distance(id); !seen[d] && picked.Len() < mostNodeArms {
			seen[d], picked = true, picked.With(id)
		}
	}
	for _, id := range order {
		if picked.Len() < mostNodeArms {
			picked = picked.With(id)
		}
	}
	return picked
}

func (c *armChoice) cpusOf(id int) set.CPUSet {
	for _, n := range c.m.Nodes {
		if n.ID == id {
			return n.CPUs.Intersect(c.limits.CPUs)
		}
	}
	return set.CPUSet{}
}

func (c *armChoice) addNode(id int) error {
	return c.resolved(fmt.Sprintf("node-%d", id), fmt.Sprintf("CPUs and memory of node %d", id),
		launch.Request{Policy: launch.Bind, Nodes: set.FromNodes(id)})
}

func (c *armChoice) addLocal() error {
	for id := range c.nodes.All() {
		if !c.cpusOf(id).IsEmpty() {
			return c.resolved("local", fmt.Sprintf("CPUs of node %d, memory where it runs", id), launch.Request{Policy: launch.Local, Nodes: set.FromNodes(id)})
		}
	}
	c.notes = append(c.notes, fmt.Sprintf("No local arm: nodes %s have no CPU that may be used.", c.nodes))
	return nil
}

func (c *armChoice) addInterleave() error {
	if c.nodes.Len() < 2 {
		c.notes = append(c.notes, fmt.Sprintf("No interleave arm: it needs two nodes, and there is only %s.", c.nodes))
		return nil
	}
	return c.resolved("interleave", fmt.Sprintf("memory interleaved over nodes %s, any CPU", c.nodes), launch.Request{Policy: launch.Interleave, Nodes: c.nodes})
}

func (c *armChoice) resolved(name, about string, q launch.Request) error {
	if c.has(name) {
		return nil
	}
	p, err := launch.Resolve(q, c.m, c.limits)
	if err != nil {
		return fmt.Errorf("arm %s: %w", name, err)
	}
	c.arms = append(c.arms, arm{name: name, about: about, placement: p,
		run: []string{"--nodes", q.Nodes.String(), "--policy", string(q.Policy)}})
	return nil
}
