// SPDX-License-Identifier: Apache-2.0

package views

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"homenode/internal/kernel/launch"
	"homenode/internal/migration"
	"homenode/internal/render"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// Segment prints what was set on shared memory.
func Segment(w io.Writer, q launch.SegmentRequest, res launch.SegmentResult) error {
	what, policy := "", string(q.Policy)
	if res.Created {
		what = "made, "
	}
	if !q.Nodes.IsEmpty() {
		policy += " " + q.Nodes.String()
	}
	fmt.Fprintf(w, "%s: %s%v, %s\n", render.Printable(res.Name), what, res.Bytes, policy)
	present, ok := res.Present.Get()
	switch {
	case !ok || present == 0:
	case q.Touch:
		fmt.Fprintf(w, "all its pages exist\n")
	case !q.Move && !q.Strict:
		fmt.Fprintf(w, "%v of it existed and stays where it is: --move moves it\n", present)
	case len(res.Elsewhere) == 0:
		fmt.Fprintf(w, "the %v of it that exist are on nodes %v\n", present, q.Nodes)
	}
	return nil
}

// SegmentReport is what -o json prints of shared memory.
type SegmentReport struct {
	Schema  int           `json:"schema"` // 1
	Name    string        `json:"name"`
	ID      unit.Opt[int] `json:"segment_id"` // of a System V segment
	Created bool          `json:"created"`
	Policy  launch.Policy `json:"policy"`
	Nodes   set.NodeSet   `json:"nodes"` // of the policy
	Bytes   unit.Bytes    `json:"bytes"` // for which the policy is set
	Page    unit.Bytes    `json:"page_bytes"`
	// Present is unknown for huge pages. Elsewhere is the part of it on other nodes, which is
	// counted for --strict and --move only: null without.
	Present   unit.Opt[unit.Bytes]  `json:"present_bytes"`
	Elsewhere []migration.NodeBytes `json:"elsewhere"`
}

// ReportSegment is that of a result.
func ReportSegment(q launch.SegmentRequest, res launch.SegmentResult) SegmentReport {
	out := SegmentReport{1, res.Name, res.ID, res.Created, q.Policy, q.Nodes, res.Bytes, res.Page, res.Present, nil}
	if q.Strict || q.Move {
		out.Elsewhere = []migration.NodeBytes{}
	}
	for node, bytes := range res.Elsewhere {
		out.Elsewhere = append(out.Elsewhere, migration.NodeBytes{Node: node, Bytes: bytes})
	}
	slices.SortFunc(out.Elsewhere, func(a, b migration.NodeBytes) int { return cmp.Compare(a.Node, b.Node) })
	return out
}
