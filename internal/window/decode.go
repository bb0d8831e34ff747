// SPDX-License-Identifier: Apache-2.0

package window

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"homenode/internal/unit"
)

// ErrNewer is wrapped when a window was written by a newer homenode.
var ErrNewer = errors.New("written by a newer homenode")

// Decode reads one window in its wire form (JSON). It is strict: a newer schema,
// an unknown field, trailing text, and figures that cannot be (Validate) are
// refused. On error the window is the zero Window.
func Decode(data []byte) (Window, error) {
	var head struct {
		Schema int `json:"schema"`
	}
	if err := json.Unmarshal(data, &head); err != nil { // also finds trailing text
		return Window{}, fmt.Errorf("parse window: %w", err)
	}
	if head.Schema > Schema { // before its new fields are called unknown
		return Window{}, fmt.Errorf("parse window: schema %d, this homenode reads up to %d: %w", head.Schema, Schema, ErrNewer)
	}
	w, err := decodeStrict(data)
	if err == nil {
		err = w.Validate()
	}
	if err != nil {
		return Window{}, fmt.Errorf("parse window: %w", err)
	}
	return w, nil
}

func decodeStrict(data []byte) (Window, error) {
	var w Window
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&w); err != nil {
		return Window{}, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Window{}, errors.New("text after the window")
	}
	return w, nil
}

// Encode writes the wire form, one line without a newline; what Decode would
// refuse is refused here.
func Encode(w Window) ([]byte, error) {
	if err := w.Validate(); err != nil {
		return nil, fmt.Errorf("write window: %w", err)
	}
	data, err := json.Marshal(w)
	if err != nil {
		return nil, fmt.Errorf("write window: %w", err)
	}
	return data, nil
}

// Validate says what of a window cannot be: the invariants that policies rely on.
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
