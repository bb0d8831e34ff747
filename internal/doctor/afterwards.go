// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"strings"

	"homenode/internal/render"
	"homenode/internal/set"
	"homenode/internal/snapshot"
	"homenode/internal/unit"
)

// What a finding's commands will not change. Where the verdict is not better afterwards,
// the finding says so and why (Finding.Afterwards); the lab runs the commands of every
// rule and judges again (internal/lab, TestLabDoctor).
//
//  1. Some commands only show more: what must change is the firmware, the hypervisor, a
//     program, or a setting of another manager.
//  2. Interleaving over n nodes, or keeping threads and memory on n nodes without saying
//     which belongs where, leaves (n − 1) / n of the reads remote. That is better only
//     if more of them are remote now.
//  3. A policy that a program gives its own memory (mbind) overrules numactl's.
//  4. Pages move only into free memory.
//  5. The verdict counts CPU time. Where no figure gives a finding's cost in CPU time,
//     and the finding does not decide the verdict, the verdict may stay.
//  6. A minor finding costs less than Config.Slight of the busy time: the verdict can
//     hardly show it.

// uncounted is number 5.
const uncounted = "The finding goes away. The verdict may stay as it is, because no figure gives this cost in CPU time."

// slight is number 6.
const slight = "The verdict hardly changes: what this costs is less than repeats of one load differ by."

func (f Finding) afterwards() string {
	switch {
	case f.Afterwards != "" || f.Decides:
		return f.Afterwards
	case !f.Cost.Known():
		return uncounted
	case f.Severity == Minor:
		return slight
	}
	return ""
}

// onlyShow is number 1.
func onlyShow(until string) string {
	return "The commands only show more. The verdict stays as it is until " + until + "."
}

// lessRemote is the least part of the reads that must become local before the verdict is
// called better: less is noise between two looks.
const lessRemote = 0.05

// stillRemote is number 2: "" if it is better.
func stillRemote(now unit.Ratio, nodes set.NodeSet) string {
	left := 1 - 1/float64(max(1, nodes.Len()))
	if float64(now)-left >= lessRemote {
		return ""
	}
	return fmt.Sprintf("The verdict stays about as it is: with its memory spread over %s, about %s of its reads are remote, and %s are now. What is spread is the load of the nodes.",
		nodeNames(nodes), render.Percent(left), render.Percent(float64(now)))
}

// overruled is number 3.
func (l view) overruled(p snapshot.Process) string {
	policies := l.policies(p)
	if len(policies) == 0 {
		return ""
	}
	return fmt.Sprintf("The verdict stays as it is unless the program is changed: %s gives its memory a policy of its own (%s), which overrules numactl's.", processName(p), strings.Join(policies, ", "))
}

// noRoomFor is number 4, for memory that has to come to these nodes; dropped says that
// the commands take page cache back there first.
func (l view) noRoomFor(come unit.Bytes, nodes set.NodeSet, dropped bool) string {
	var room unit.Bytes
	for id := range nodes.All() {
		i, _ := l.index(id)
		free, ok := l.free(i).Get()
		if !ok {
			return ""
		}
		room += max(0, free-l.mem(i).LowFree.Or(0))
		if dropped {
			room += l.file(i).Or(0)
		}
	}
	if room >= come {
		return ""
	}
	return fmt.Sprintf("The verdict stays about as it is: %v would have to move to %s, and %v are free there. Make room first.", come, nodeNames(nodes), room)
}
