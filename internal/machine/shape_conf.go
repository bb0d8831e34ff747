// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"strings"
)

// ModelConf prints the shape as the plugin's configuration (read by
// homenode_conf_read in lab/plugin/model.c): one statement per line, decimal
// numbers, sizes in bytes, times in model cycles.
//
//	homenode-lab 3
//	mhz 50
//	…
//	node <id> <bytes>
//	cpu <id> <node> <core>
//	fast <id> <factor>                   a CPU kept for daemons: factor of its cycles count as one
//	lat <src> <dst> <cycles>             all pairs: a CPU of src reads dst's memory
//	transfer <src> <dst> <cycles>        all pairs: a CPU of src takes a line that one of dst modified
//	link <index> <from> <to>             directed
//	path <src> <dst> <link> [<link>…]    the data's way, from dst's memory to src
//	end
func (s Shape) ModelConf() string {
	var out strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	say("homenode-lab 3")
	s.Model.conf(say)
	s.confNodes(say)
	s.confLinks(say)
	say("end")
	return out.String()
}

func (m Model) conf(say func(string, ...any)) {
	say("mhz %d", m.MHz)
	say("time_factor %d", m.TimeFactor)
	say("l1 %d", int64(m.L1))
	say("l2 %d", int64(m.L2))
	say("llc %d", int64(m.LLC))
	say("l2_cycles %d", m.L2Cycles)
	say("llc_cycles %d", m.LLCCycles)
	say("stream_parallelism %d", m.StreamParallelism)
	say("mc_cycles %d", m.MCCycles)
	say("link_cycles %d", m.LinkCycles)
	say("atomic_cycles %d", m.AtomicCycles)
	coherence := 0
	if m.Coherence {
		coherence = 1
	}
	say("coherence %d", coherence)
}

func (s Shape) confNodes(say func(string, ...any)) {
	for id, n := range s.Nodes {
		say("node %d %d", id, int64(n.Memory))
	}
	for _, c := range s.Machine().CPUs {
		say("cpu %d %d %d", c.ID, c.Node.Or(0), c.Core.Or(0))
	}
	for cpu := range s.Housekeeping.All() {
		say("fast %d %d", cpu, s.Model.TimeFactor)
	}
	for src, row := range s.Distances {
		for dst, d := range row {
			say("lat %d %d %d", src, dst, s.Model.DRAMCycles[d])
			say("transfer %d %d %d", src, dst, s.Model.Transfer(d))
		}
	}
}

func (s Shape) confLinks(say func(string, ...any)) {
	for i, p := range s.LinkPairs() {
		say("link %d %d %d", 2*i, p[0], p[1])
		say("link %d %d %d", 2*i+1, p[1], p[0])
	}
	for src, row := range s.Routes() {
		for dst, links := range row {
			if src != dst {
				say("path %d %d %s", src, dst, strings.Trim(fmt.Sprint(links), "[]"))
			}
		}
	}
}
