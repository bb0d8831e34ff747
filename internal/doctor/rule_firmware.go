// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"

	"homenode/internal/render"
	"homenode/internal/snapshot"
	"homenode/internal/unit"
)

// The firmware contradicts itself about the topology (machine.Doubts). A policy that
// places by it does harm, so homenode's policies do not bind there. Packages alone may be in
// doubt: then only what is said of packages is.
//
//  1. One finding for all doubts.
//  2. Cost: unknown.
func firmwareDoubts(s snapshot.Snapshot, _ Config) ([]Finding, []Skipped) {
	doubts := s.Machine.AllDoubts()
	if len(doubts) == 0 {
		return nil, nil
	}
	until := "Until then homenode binds nothing here."
	if len(s.Machine.Doubts) == 0 {
		until = "Nodes are not in doubt, and homenode binds by them; what it says of packages may be wrong."
	}
	f := Finding{
		Title:   fmt.Sprintf("The firmware contradicts itself about the topology: %s", render.ListFew(doubts, 1)),
		Subject: Subject{Kind: SubjectHost}, Cost: unit.UnknownValue[float64]("a wrong map, not a loss"),
		Cause:      "The tables that the firmware hands over (SRAT, SLIT, the caches of CPUID) do not agree with each other, or the kernel could not read them.",
		Remedy:     "Update the firmware, and look into its setup for node interleaving and sub-NUMA clustering. " + until,
		Commands:   []string{"dmesg | grep -iE 'srat|slit|numa'", "numactl --hardware"},
		Afterwards: onlyShow("the firmware's tables agree"),
	}
	for _, d := range doubts {
		f.Evidence = append(f.Evidence, fact("contradiction", d, unit.HowMeasured, s.Machine.Origin))
	}
	return []Finding{f}, nil
}
