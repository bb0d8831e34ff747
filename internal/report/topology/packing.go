// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"homenode/internal/machine"
	"homenode/internal/packing"
	"homenode/internal/render"
	"homenode/internal/schema"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// Packing is what the policies make of some containers, for people and programs.
type Packing struct {
	Schema     int               `json:"schema"` // 1
	Machine    string            `json:"origin"`
	Tolerance  float64           `json:"tolerance"`
	Confidence float64           `json:"confidence"` // of each bound of a prediction
	Containers []PackedContainer `json:"containers"`
	Policies   []PackedPolicy    `json:"policies"`

	m machine.Machine
}

// PackedContainer is a container and what is known of its speed.
type PackedContainer struct {
	Name  string  `json:"name"`
	VCPUs int     `json:"vcpus"`
	Goal  float64 `json:"goal"`
	Count int     `json:"count"`
	From  string  `json:"from"` // where its speeds come from; "": unknown
	// Speeds are by placement, relative to the baseline; empty: unknown.
	Speeds   []packing.Speed `json:"speeds"`
	Feasible bool            `json:"feasible"` // some placement meets the goal
	// Probe is the placement (from 1) whose measurement could decide that fewer nodes are
	// enough; 0: none.
	Probe int `json:"probe"`
}

// PackedPolicy is one policy's packing. A container without a known speed counts as unknown.
type PackedPolicy struct {
	Policy  string      `json:"policy"`
	Packed  int         `json:"packed"`
	Meet    int         `json:"meet"`
	Miss    int         `json:"miss"`
	Unknown int         `json:"unknown"`
	Nodes   int         `json:"nodes_in_use"`
	Exact   bool        `json:"exact"` // it is the most that there can be, by these speeds
	Placed  []PackedOne `json:"placed"`
	Left    []int       `json:"left"` // copies, by container
}

// PackedOne is one copy of a container.
type PackedOne struct {
	Container string                  `json:"container"`
	Copy      int                     `json:"copy"`
	Pinned    bool                    `json:"pinned"`
	Nodes     set.NodeSet             `json:"nodes"`
	CPUs      set.CPUSet              `json:"cpus"`
	Placement int                     `json:"placement"` // from 1; 0: none that is important
	Speed     unit.Opt[packing.Speed] `json:"expected_speed"`
	Meets     unit.Opt[bool]          `json:"meets"`

	of int // container
}

// PackingForm is a value of what Packing.JSON writes.
var PackingForm any = Packing{}

// NewPacking packs by every policy. from is where containers' speeds come from, by name.
func NewPacking(p *packing.Problem, confidence float64, from map[string]string) Packing {
	k := Packing{Schema: 1, Machine: p.Machine.Origin, Tolerance: p.Tolerance, Confidence: confidence, m: p.Machine}
	for _, c := range p.Containers {
		one := PackedContainer{Name: c.Name, VCPUs: c.VCPUs, Goal: c.Goal, Count: c.Count, From: from[c.Name], Speeds: c.Speeds}
		one.Feasible = slices.ContainsFunc(c.Speeds, func(s packing.Speed) bool { return p.Meets(s, c.Goal) })
		if at, ok := p.Undecided(c); ok {
			one.Probe = at + 1
		}
		k.Containers = append(k.Containers, one)
	}
	for _, one := range p.All() {
		k.Policies = append(k.Policies, policyOf(p, one))
	}
	return k
}

func policyOf(p *packing.Problem, k packing.Packing) PackedPolicy {
	out := PackedPolicy{Policy: k.Policy, Packed: len(k.Placed), Nodes: k.UsedNodes(), Left: k.Left, Exact: k.Policy == packing.NameExact && !k.Partial, Placed: []PackedOne{}}
	for _, one := range k.Placed {
		meets, known := p.Verdict(one)
		switch {
		case !known:
			out.Unknown++
		case meets:
			out.Meet++
		default:
			out.Miss++
		}
		out.Placed = append(out.Placed, PackedOne{
			Container: p.Containers[one.Container].Name, Copy: one.Copy, Pinned: one.Pinned, Nodes: one.Nodes, CPUs: one.CPUs, Placement: one.Placement + 1,
			Speed: unit.OptOf(one.Speed, known), Meets: unit.OptOf(meets, known), of: one.Container,
		})
	}
	return out
}

// JSON writes it for programs.
func (k Packing) JSON(w io.Writer) error {
	e := schema.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(k)
}

// Text writes it for a terminal: the policies side by side, which nodes each container has, and
// the containers of each policy.
func (k Packing) Text(w io.Writer, o render.TextOptions) error {
	p := o.Terminal()
	copies := 0
	for _, c := range k.Containers {
		copies += c.Count
	}
	p.Line(fmt.Sprintf("%s to pack onto %s", render.Count(copies, "container"), render.Printable(k.Machine)))
	p.Line("")
	p.Table(k.policyTable())
	p.Section("Containers")
	p.Table(k.containerTable())
	for i, c := range k.Containers {
		for _, line := range c.notes() {
			p.Hanging("  "+letter(i)+"  ", line)
		}
	}
	p.Section("Nodes")
	p.Table(k.nodeTable())
	for _, one := range k.Policies {
		p.Section(one.Policy)
		p.Table(one.table())
		for _, line := range k.leftLines(one) {
			p.Wrapped("  ", line)
		}
	}
	p.Line("")
	p.Wrapped("", fmt.Sprintf("A goal is met by a speed that is at least the goal, and whose low end misses it by %s at most; each end of a prediction has a confidence of %s. Speeds are those of a container that shares no node. Of unpinned containers nothing is predicted.",
		render.Percent(k.Tolerance), render.Percent(k.Confidence)))
	return p.Flush(w, "packing")
}

// letter names a container in small pictures: A … Z, then AA.
func letter(i int) string {
	if i < 26 {
		return string(rune('A' + i))
	}
	return letter(i/26-1) + letter(i%26)
}

func (o PackedOne) label() string { return letter(o.of) + strconv.Itoa(o.Copy) }

func (k Packing) policyTable() render.Table {
	t := render.Table{Columns: []render.Column{{Head: "policy", Left: true}, {Head: "packed"}, {Head: "meet\ntheir goal"}, {Head: "miss it"}, {Head: "unknown"}, {Head: "nodes\nin use"}}}
	for _, one := range k.Policies {
		name := one.Policy
		if one.Policy == packing.NameExact && !one.Exact {
			name += " (stopped: too large)"
		}
		t.Add(name, strconv.Itoa(one.Packed), strconv.Itoa(one.Meet), strconv.Itoa(one.Miss), strconv.Itoa(one.Unknown), strconv.Itoa(one.Nodes))
	}
	return t
}

func (k Packing) containerTable() render.Table {
	t := render.Table{Columns: []render.Column{{Head: ""}, {Head: "container", Left: true}, {Head: "count"}, {Head: "vCPUs"}, {Head: "goal"}, {Head: "speeds", Left: true}}}
	for i, c := range k.Containers {
		t.Add(letter(i), render.Printable(c.Name), strconv.Itoa(c.Count), strconv.Itoa(c.VCPUs), render.Number(c.Goal), render.OrUnknown(render.Printable(c.From)))
	}
	return t
}

func (c PackedContainer) notes() (lines []string) {
	if len(c.Speeds) > 0 && !c.Feasible {
		lines = append(lines, "No placement meets its goal.")
	}
	if c.Probe > 0 {
		lines = append(lines, fmt.Sprintf("Placement %d, on fewer nodes, may meet its goal: measure its speed there.", c.Probe))
	}
	return lines
}

// nodeTable is the packings as a picture: a row for each policy, a column for each node.
func (k Packing) nodeTable() render.Table {
	t := render.Table{Columns: []render.Column{{Head: "", Left: true}}}
	nodes := k.m.NodesWithCPUs().IDs()
	for _, id := range nodes {
		t.Columns = append(t.Columns, render.Column{Head: strconv.Itoa(id), Left: true})
	}
	for _, one := range k.Policies {
		row := []string{one.Policy}
		for _, id := range nodes {
			var here []string
			for _, o := range one.Placed {
				if o.Nodes.Has(id) {
					here = append(here, o.label())
				}
			}
			switch {
			case len(here) == 0:
				row = append(row, "·")
			case len(here) > 2:
				row = append(row, fmt.Sprintf("%s+%d", here[0], len(here)-1))
			default:
				row = append(row, strings.Join(here, " "))
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func (o PackedPolicy) table() render.Table {
	t := render.Table{Columns: []render.Column{{Head: ""}, {Head: "container", Left: true}, {Head: "nodes", Left: true}, {Head: "CPUs", Left: true}, {Head: "placement"}, {Head: "of the\nbaseline"}, {Head: "known", Left: true}, {Head: "goal", Left: true}}}
	for _, one := range o.Placed {
		row := []string{one.label(), render.Printable(one.Container), one.Nodes.String(), one.CPUs.String(), strconv.Itoa(one.Placement), render.Unknown, "", render.Unknown}
		if !one.Pinned {
			row[2], row[3], row[4] = "any", "any", "-"
		}
		if s, ok := one.Speed.Get(); ok {
			row[5], row[6] = speedText(s), s.How.String()
		}
		if meets, ok := one.Meets.Get(); ok {
			row[7] = map[bool]string{true: "met", false: "missed"}[meets]
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func speedText(s packing.Speed) string {
	if s.Low == s.High {
		return render.Fixed(s.Speed, 2)
	}
	return fmt.Sprintf("%s (%s)", render.Fixed(s.Speed, 2), render.Range(render.Fixed(s.Low, 2), render.Fixed(s.High, 2)))
}

func (k Packing) leftLines(o PackedPolicy) (lines []string) {
	for i, n := range o.Left {
		if n > 0 {
			c := k.Containers[i]
			lines = append(lines, fmt.Sprintf("not placed: %d of %s (%s)", n, render.Printable(c.Name), c.whyLeft(o.Policy)))
		}
	}
	return lines
}

// whyLeft is the tightest reason why a policy leaves copies of a container.
func (c PackedContainer) whyLeft(policy string) string {
	switch byGoal := policy == packing.NameML || policy == packing.NameExact; {
	case policy == packing.NameConservative:
		return "one container has the machine"
	case byGoal && len(c.Speeds) == 0:
		return "its speed is unknown"
	case byGoal && !c.Feasible:
		return "no placement meets its goal"
	case byGoal:
		return "no free nodes where it meets its goal"
	}
	return "no room"
}
