// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"time"

	"homenode/internal/model/gain"
	"homenode/internal/sim/linux"
	"homenode/internal/sim/memsys"
)

// Demo is `make demo-loop`: four services of a catalogue that no model was trained on (seed 1052;
// trials begin at 1), on hosts that are as busy as those of the trials. Of 75 seeds that were tried it
// was chosen because all that can happen does: one service gains, one would be hurt, and one has a fault.
func Demo(m *gain.Model, dir string) Config {
	l := linux.DefaultSettings()
	l.NUMABalancing = true
	c := Config{
		Linux: l, Seed: 1052, Hosts: 16, Model: m, Least: 0.02, Dir: dir,
		Services: []string{"router-001", "cache-000", "search-006", "predictor-004"},
		Fault:    Fault{Service: "predictor-004", Slower: 0.2},
		Start:    time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC),
	}
	c.Machine, c.System = memsys.DualSkylake()
	return c
}
