// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"bytes"
	"testing"

	"homenode/internal/golden"
	"homenode/internal/machine"
	"homenode/internal/machine/machinetest"
	"homenode/internal/placement"
	"homenode/internal/render"
)

// The paper's AMD machine, as people see its placements.
func TestPlacements(t *testing.T) {
	m, err := machine.ParseSysfs(machinetest.Unpack(t, machinetest.Dir(t)+"/64amd64-4p2n4ca2co-opteron6272.tar.bz2"), "recorded:opteron")
	if len(m.Nodes) != 8 {
		t.Fatal(err)
	}
	l, err := placement.Important(m, placement.Options{VCPUs: 16})
	if err != nil {
		t.Fatal(err)
	}
	var text, svg, json bytes.Buffer
	if err := PlacementsText(&text, render.TextOptions{Width: 100, UTF8: true}, m.Origin, l); err != nil {
		t.Fatal(err)
	}
	if err := PlacementsSVG(&svg, m, l); err != nil {
		t.Fatal(err)
	}
	if err := PlacementsJSON(&json, m.Origin, l); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "testdata/placements.txt.golden", text.Bytes())
	golden.Check(t, "testdata/placements.svg.golden", svg.Bytes())
	golden.Check(t, "testdata/placements.json.golden", json.Bytes())
}
