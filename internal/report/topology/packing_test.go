// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"bytes"
	"testing"

	"homenode/internal/golden"
	"homenode/internal/machine/shapetest"
	"homenode/internal/packing"
	"homenode/internal/render"
	"homenode/internal/unit"
)

// Measured, modelled and unknown containers, some of them without room.
func TestPacking(t *testing.T) {
	modelled := func(low, speed, high float64) packing.Speed {
		return packing.Speed{Speed: speed, Low: low, High: high, How: unit.HowModelled}
	}
	m := shapetest.Shape(t, "opteron").Machine()
	measured, err := packing.Measured([]float64{9.8, 10.2, 10.3, 10.1}, 0)
	if err != nil {
		t.Fatal(err)
	}
	p, err := packing.New(m, nil, []packing.Container{
		{Name: "web", VCPUs: 4, Goal: 0.9, Count: 3, Speeds: measured},
		{Name: "batch", VCPUs: 4, Goal: 1, Count: 2, Speeds: []packing.Speed{modelled(0.9, 0.96, 1.02), modelled(0.98, 1.01, 1.05), modelled(0.98, 1.01, 1.05), modelled(0.8, 1, 1.3)}},
		{Name: "never", VCPUs: 4, Goal: 2, Count: 1, Speeds: measured},
		{Name: "other", VCPUs: 2, Goal: 1, Count: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	k := NewPacking(p, 0.95, map[string]string{"web": "measured in each placement", "batch": "predicted by m.json, which was trained in the simulator", "never": "measured in each placement"})
	var text, svg, json bytes.Buffer
	if err := k.Text(&text, render.TextOptions{Width: 100, UTF8: true}); err != nil {
		t.Fatal(err)
	}
	if err := k.SVG(&svg); err != nil {
		t.Fatal(err)
	}
	if err := k.JSON(&json); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "testdata/packing.txt.golden", text.Bytes())
	golden.Check(t, "testdata/packing.svg.golden", svg.Bytes())
	golden.Check(t, "testdata/packing.json.golden", json.Bytes())
}
