// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"homenode/internal/placement"
	"homenode/internal/render"
	"homenode/internal/schema"
	"homenode/internal/set"
)

// placementsDoc is the JSON form of a list of placements.
type placementsDoc struct {
	Schema  int    `json:"schema"`
	Machine string `json:"machine_name"`
	Exact   bool   `json:"exact"`
	placement.List
}

const placementsSchema = 1

// PlacementsForm is a value of what PlacementsJSON writes.
var PlacementsForm any = placementsDoc{}

// PlacementsJSON writes the important placements; sets of CPUs and nodes are text.
func PlacementsJSON(w io.Writer, origin string, l placement.List) error {
	e := schema.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(placementsDoc{placementsSchema, origin, l.Cut == 0, l})
}

// PlacementsText writes the important placements for a terminal: a table, an example of
// each, and the packings that need it.
func PlacementsText(w io.Writer, o render.TextOptions, origin string, l placement.List) error {
	p := o.Terminal()
	p.Line(fmt.Sprintf("%s of %s on %s", render.Count(len(l.Placements), "important placement"), render.Count(l.VCPUs, "vCPU"), render.Printable(origin)))
	p.Line("")
	p.Table(render.Table{Columns: placementColumns(l), Rows: placementRows(l)})
	p.Section("What the scores count")
	for _, c := range l.Concerns {
		p.Wrapped("  ", c.Name+": "+c.Help)
	}
	if l.Links != "" {
		p.Wrapped("  ", "interconnect from: "+render.Printable(l.Links))
	}
	for _, line := range droppedText(l.Dropped) {
		p.Wrapped("  ", line)
	}
	p.Section("Examples, and the packings that need them")
	for i, one := range l.Placements {
		p.Hanging(fmt.Sprintf("  %d  ", i+1), fmt.Sprintf("CPUs %s", one.CPUs))
		for _, k := range one.Packings[:min(len(one.Packings), fewPackings)] {
			p.Wrapped("     ", "in "+packingText(k))
		}
		if more := len(one.Packings) - fewPackings; more > 0 {
			p.Line(fmt.Sprintf("     and %s (all: -o json)", render.Count(more, "more packing")))
		}
	}
	p.Line("")
	p.Wrapped("", placementsWhy(l))
	return p.Flush(w, "placements")
}

// droppedText names the concerns that were left out, those with the same reason together.
func droppedText(all []placement.Dropped) (lines []string) {
	names := map[string][]string{}
	for _, d := range all {
		names[d.Why] = append(names[d.Why], d.Concern)
	}
	for _, why := range slices.Sorted(maps.Keys(names)) {
		lines = append(lines, "not scored: "+render.List(names[why])+" ("+why+")")
	}
	return lines
}

// fewPackings are printed of each placement.
const fewPackings = 3

func placementsWhy(l placement.List) string {
	why := fmt.Sprintf("A placement is listed if a packing of the machine needs it that no other packing with blocks of the same sizes beats in every score that cannot help when it is lower (%s of them). Placements with equal scores are taken to perform alike.",
		render.Integer(l.Packings))
	if l.Cut > 0 {
		why += fmt.Sprintf(" The list may lack some: for %s of nodes there were too many blocks to try, and only the best of each size was.", render.Count(l.Cut, "set"))
	}
	return why
}

func packingText(k placement.Packing) string {
	text := strings.Join(render.Each(k.Blocks, func(n set.NodeSet) string { return "{" + n.String() + "}" }), " + ")
	if !k.Empty.IsEmpty() {
		text += ", nodes " + k.Empty.String() + " empty"
	}
	return text
}

func placementColumns(l placement.List) []render.Column {
	columns := []render.Column{{Head: "#"}}
	for _, c := range l.Concerns {
		columns = append(columns, render.Column{Head: c.Name})
	}
	return append(columns, render.Column{Head: "vCPUs/node"}, render.Column{Head: "nodes", Left: true}, render.Column{Head: "packings"})
}

func placementRows(l placement.List) (rows [][]string) {
	for i, one := range l.Placements {
		row := []string{fmt.Sprint(i + 1)}
		for _, s := range one.Scores {
			row = append(row, scoreText(s))
		}
		rows = append(rows, append(row, fmt.Sprint(one.PerNode), one.Nodes.String(), fmt.Sprint(len(one.Packings))))
	}
	return rows
}

// scoreText is a score with its unit, where that is not a count.
func scoreText(s placement.Score) string {
	if s.Unit == "bytes/s" {
		return render.Rate(float64(s.Value))
	}
	return render.Integer(s.Value)
}
