// SPDX-License-Identifier: Apache-2.0

package window

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"homenode/internal/schema"
	"homenode/internal/unit"
)

// Decode reads one window in its wire form (JSON). It is strict: it refuses a newer
// schema, an unknown field, trailing text, and impossible values (Validate). On error the
// window is the zero Window.
func Decode(data []byte) (Window, error) {
	w, err := schema.Decode[Window](data, "window", Schema)
	if err != nil || !w.anyName(func(name string) bool { return schema.Path(name) != name }) {
		return w, err
	}
	w = w.renamed(schema.Path)
	if err := w.Validate(); err != nil {
		return Window{}, fmt.Errorf("parse window: %w", err)
	}
	return w, nil
}

// Encode writes the wire form, one line without a newline. It refuses what Decode would
// refuse. Workloads whose paths are no text have their names of package schema, and their
// place by these.
func Encode(w Window) ([]byte, error) {
	if w.anyName(func(path string) bool { return !utf8.ValidString(path) }) {
		if err := w.Validate(); err != nil {
			return nil, fmt.Errorf("write window: %w", err)
		}
		w = w.renamed(schema.Name)
	}
	return schema.Encode(w, "window")
}

// anyName reports that is holds for a workload's path, or for one in an outcome.
func (w Window) anyName(is func(string) bool) bool {
	found := slices.ContainsFunc(w.Workloads, func(wl Workload) bool { return is(wl.ID) })
	ask := func(name string) string {
		found = found || is(name)
		return name
	}
	for i := 0; i < len(w.Outcomes) && !found; i++ {
		w.Outcomes[i].Renamed(ask)
	}
	return found
}

// renamed is the window with other names for its workloads, in their order.
func (w Window) renamed(name func(string) string) Window {
	w.Workloads, w.Outcomes = slices.Clone(w.Workloads), slices.Clone(w.Outcomes)
	for i := range w.Workloads {
		w.Workloads[i].ID = name(w.Workloads[i].ID)
	}
	for i, o := range w.Outcomes {
		w.Outcomes[i] = o.Renamed(name)
	}
	slices.SortStableFunc(w.Workloads, func(a, b Workload) int { return cmp.Compare(a.ID, b.ID) })
	return w
}

// Validate checks the invariants that policies rely on, and returns what is impossible.
//
//  1. the schema is one we know, the length is not negative,
//  2. nodes ascend by id, workloads by ID, none twice,
//  3. slices by node are empty (unknown) or parallel to Nodes,
//  4. no amount is negative, targets are shares.
func (w Window) Validate() error {
	if w.Schema < 1 || w.Schema > Schema { // 1
		return fmt.Errorf("schema %d: want 1 to %d", w.Schema, Schema)
	}
	if w.Length < 0 {
		return fmt.Errorf("length %v is negative", w.Length)
	}
	for i, n := range w.Nodes {
		if n.ID < 0 || i > 0 && n.ID <= w.Nodes[i-1].ID { // 2
			return fmt.Errorf("node %d at position %d: ids must ascend from 0", n.ID, i)
		}
		if n.CPUBusy.Or(0) < 0 || anyNegative(n.Memory, n.Free, n.File, n.Anon) { // 4
			return fmt.Errorf("node %d: a figure is negative", n.ID)
		}
	}
	for i, wl := range w.Workloads {
		if wl.ID == "" || i > 0 && wl.ID <= w.Workloads[i-1].ID { // 2
			return fmt.Errorf("workload %q at position %d: IDs must ascend", wl.ID, i)
		}
		if err := wl.validate(len(w.Nodes)); err != nil {
			return fmt.Errorf("workload %q: %w", wl.ID, err)
		}
	}
	return nil
}

func (w Workload) validate(nodes int) error {
	for _, n := range []int{len(w.CPUByNode), len(w.AnonByNode), len(w.FileByNode)} { // 3
		if n != 0 && n != nodes {
			return fmt.Errorf("%d figures by node for %d nodes", n, nodes)
		}
	}
	if t, ok := w.Target.Get(); ok && !t.Valid() { // 4
		return fmt.Errorf("target %v is not a share", float64(t))
	}
	bad := w.Tasks.Or(0) < 0 || w.CPU.Or(0) < 0 || w.Quota.Or(0) < 0
	for _, c := range w.CPUByNode {
		bad = bad || c.Or(0) < 0
	}
	if bad || anyNegative(w.AnonByNode...) || anyNegative(w.FileByNode...) {
		return errors.New("a figure is negative")
	}
	return nil
}

func anyNegative(values ...unit.Value[unit.Bytes]) bool {
	for _, v := range values {
		if v.Or(0) < 0 {
			return true
		}
	}
	return false
}
