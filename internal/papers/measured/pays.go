// SPDX-License-Identifier: Apache-2.0

package measured

import (
	"fmt"
	"time"

	"homenode/internal/machine"
	"homenode/internal/migration"
	"homenode/internal/render"
	"homenode/internal/unit"
)

// The machine of the placements: CPUs, and the distance of its nodes as firmware says it of
// such machines; a load from the own node takes 80 ns where nothing was measured.
const (
	cpus     = 128.0
	distance = 21
	local    = 80e-9
	gigabyte = 1024e6 // as the counters print it
)

// Saves compares what Pays says that making all reads local saves with the CPU time.
func Saves(d Data) Section {
	s := Section{
		Title: "Pays: CPU time that local memory would save",
		About: "Input: reads a second, the share that stays on its node, and SLIT distances; no stall cycles. There is no run with all memory local, so this shows the bound only: nothing saves more than the CPU time.",
		Heads: []string{"largest", "workload", "policy"},
	}
	slower := machine.LatencyRatio(distance, machine.SLITExcess)
	most, literal, name, policy := 0.0, 0.0, "", ""
	for _, r := range d.Placements {
		v, ok := r.numbers("mem_read", "local_pct")
		if !ok {
			continue
		}
		part := 1 - v[1]/100
		rate := v[0] * gigabyte / 64 * part
		gain := migration.Pays(migration.Stake{
			Bytes: unit.GiB, RemoteRate: unit.Measured(rate, "counters"), Difference: unit.Estimated(local*(slower-1), "SLIT"), Horizon: time.Second,
			PerByte: unit.Estimated(0.65e-9, "MAO"), CPU: unit.Estimated(cpus, "all CPUs"), Part: unit.Some(part), Slower: unit.Estimated(slower, "SLIT"),
		}).Gain.Or(0) / cpus
		literal = max(literal, rate*88e-9/cpus)
		if gain > most {
			most, name, policy = gain, r["family"]+" "+r["workload"], r["policy"]
		}
	}
	s.Rows = [][]string{{render.Percent(most), name, policy}}
	s.Figures = map[string]float64{"most": most}
	s.Summary = []string{fmt.Sprintf("At most %s of the CPU time; by loads × 88 ns, as before, it was %s.", render.Percent(most), render.Percent(literal))}
	return s
}
