// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"

	"homenode/internal/render"
	"homenode/internal/snapshot"
	"homenode/internal/unit"
)

// The firmware contradicts itself about the topology (machine.Doubts). A policy that
// places by it does harm, so homenode's policies do not bind there.
//
//  1. One finding for all doubts.
//  2. Cost: unknown.
func firmwareDoubts(s snapshot.Snapshot, _ Config) ([]Finding, []Skipped) {
	if len(s.Machine.Doubts) == 0 {
		return nil, nil
	}
	f := Finding{
		Title:   fmt.Sprintf("The firmware contradicts itself about the topology: %s", render.ListFew(s.Machine.Doubts, 1)),
		Subject: Subject{Kind: SubjectHost}, Cost: unit.UnknownValue[float64]("a wrong map, not a loss"),
		Cause:      "The tables that the firmware hands over (SRAT, SLIT, the caches of CPUID) do not agree with each other, or the kernel could not read them.",
		Remedy:     "Update the firmware, and look into its setup for node interleaving and sub-NUMA clustering. Until then homenode binds nothing here.",
		Commands:   []string{"dmesg | grep -iE 'srat|slit|numa'", "numactl --hardware"},
		Afterwards: onlyShow("the firmware's tables agree"),
	}
	for _, d := range s.Machine.Doubts {
		f.Evidence = append(f.Evidence, fact("contradiction", d, unit.HowMeasured, s.Machine.Origin))
	}
	return []Finding{f}, nil
}
