// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"time"

	"homenode/internal/model/gain"
	"homenode/internal/sim/linux"
	"homenode/internal/sim/memsys"
)

// Demo is `make demo-loop`: four services of a catalogue that no model was trained on (seed 1004;
// trials begin at 1), on hosts that are nearly full. Of fifteen mixes that were tried it was chosen
// because all that can happen does: one service gains, one would be hurt, and one has a fault.
func Demo(m *gain.Model, dir string) Config {
	l := linux.DefaultSettings()
	l.NUMABalancing = true
	c := Config{
		Linux: l, Seed: 1004, Hosts: 16, Model: m, Least: 0.02, Dir: dir,
		Services: []string{"router-000", "storage-001", "search-002", "predictor-003"},
		Fault:    Fault{Service: "search-002", Slower: 0.2},
		Start:    time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC),
	}
	c.Machine, c.System = memsys.DualSkylake()
	return c
}
