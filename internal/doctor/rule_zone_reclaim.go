// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"strings"

	"homenode/internal/render"
	"homenode/internal/snapshot"
	"homenode/internal/unit"
)

// zone_reclaim_mode makes a full node reclaim before it takes memory of another node.
// The kernel's own advice (Documentation/admin-guide/sysctl/vm.rst) is to leave it off
// where data is cached; it pays only for workloads that fit their nodes. It has been
// off by default since Linux 3.16.
//
//  1. It is on.
//  2. Page cache is ReclaimCache of the memory.
//  3. Cost: unknown; dropping and reading again is waiting, not CPU time.
func zoneReclaim(s snapshot.Snapshot, c Config) ([]Finding, []Skipped) {
	l := view{s, c}
	mode, ok := s.Settings.ZoneReclaim.Get()
	if !ok {
		return nil, []Skipped{skip("zone_reclaim_mode is unknown: " + because(s.Settings.ZoneReclaim))}
	}
	if mode == 0 { // 1
		return nil, nil
	}
	var file, total unit.Bytes
	for i, n := range s.Machine.Nodes {
		f, ok1 := l.file(i).Get()
		t, ok2 := l.total(i).Get()
		if !ok1 || !ok2 {
			return nil, []Skipped{skip(fmt.Sprintf("it is on, but the page cache of node %d is unknown", n.ID))}
		}
		file, total = file+f, total+t
	}
	if float64(file) < c.ReclaimCache*float64(total) || total <= 0 { // 2
		return nil, nil
	}
	return []Finding{{
		Title:   fmt.Sprintf("zone_reclaim_mode is %d on a host that caches %v", mode, file),
		Subject: Subject{Kind: SubjectHost}, Cost: unit.UnknownValue[float64]("what is dropped is read again: waiting, not CPU time"), // 3
		Evidence: []Evidence{
			shown("zone_reclaim_mode", s.Settings.ZoneReclaim),
			fact("means", reclaimBits(mode), unit.HowMeasured, "Documentation/admin-guide/sysctl/vm.rst"),
			fact("page cache", fmt.Sprintf("%v, %s of the memory", file, render.Percent(float64(file)/float64(total))), l.file(0).How, l.file(0).From),
		},
		Cause:    "A node that is full reclaims, page cache first, before it takes free memory of another node: what is cached is thrown away next to free memory.",
		Remedy:   "Switch it off, unless every workload is known to fit its node.",
		Commands: []string{"sysctl vm.zone_reclaim_mode=0"},
	}}, nil
}

func reclaimBits(mode int) string {
	out := []string{"reclaim before using another node"}
	if mode&2 != 0 {
		out = append(out, "write dirty pages out for that")
	}
	if mode&4 != 0 {
		out = append(out, "swap pages out for that")
	}
	return strings.Join(out, ", ")
}
