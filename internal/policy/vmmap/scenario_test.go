// SPDX-License-Identifier: Apache-2.0

package vmmap

import (
	"flag"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"homenode/internal/machine"
	"homenode/internal/render/words"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window/windowtest"
)

var update = flag.Bool("update", false, "rewrite the outputs in testdata")

// script plays windows to the policy, and carries out its actions at once, without actuate.
type script struct {
	cfg Config
	st  State
}

func (s *script) Line(h *windowtest.Host, line []string) (string, error) {
	switch line[0] {
	case "config":
		if err := windowtest.Configure(&s.cfg, line[1:]); err != nil {
			return "", err
		}
		return "", s.cfg.Validate()
	case "caches": // one of this size for each node
		size, err := unit.ParseBytes(line[1])
		giveCaches(&h.Machine, size)
		return "", err
	case "is": // is ID CLASS: counters of a program of that class, of 4 MiB of cache
		return "", is(h, line[1], line[2])
	case "tick", "skip": // skip prints nothing
		n := 1
		if len(line) > 1 {
			n, _ = strconv.Atoi(line[1])
		}
		out := s.tick(h, n)
		if line[0] == "skip" {
			out = ""
		}
		return out, nil
	}
	return "", fmt.Errorf("unknown line")
}

// giveCaches gives each node a last-level cache.
func giveCaches(m *machine.Machine, size unit.Bytes) {
	m.LLCs = nil
	for i := range m.Nodes {
		m.LLCs = append(m.LLCs, machine.Cache{Level: 3, CPUs: m.Nodes[i].CPUs, Size: unit.Some(size)})
		for k := range m.CPUs {
			if m.Nodes[i].CPUs.Has(m.CPUs[k].ID) {
				m.CPUs[k].LLC = unit.Some(i)
			}
		}
	}
}

// is gives a workload the counters of 10⁹ cycles with a cache of 4 MiB: its requests beyond
// its private caches, how many of them reach memory, how long it waits, and what it holds.
func is(h *windowtest.Host, id, what string) error {
	figures := map[string]string{
		"sheep":  "cycles=1000000000 instructions=1000000000 requests=100000 local=10000 remote=0 waits=10000000 llc=256KiB",
		"rabbit": "cycles=1000000000 instructions=800000000 requests=8000000 local=100000 remote=0 waits=500000000 llc=3MiB",
		"hurt":   "cycles=1000000000 instructions=500000000 requests=5000000 local=3000000 remote=0 waits=750000000 llc=1200KiB",
		"devil":  "cycles=1000000000 instructions=500000000 requests=20000000 local=19800000 remote=0 waits=500000000 llc=3MiB",
	}
	line, ok := figures[what]
	if !ok {
		return fmt.Errorf("unknown program %q", what)
	}
	_, err := h.Line("workload " + id + " " + line)
	return err
}

func (s *script) tick(h *windowtest.Host, n int) string {
	var out strings.Builder
	for range n {
		w := h.Window()
		st, actions, reasons := Step(h.Machine, s.cfg, s.st, w)
		s.st = st
		for _, a := range actions {
			fmt.Fprintf(&out, "%d: %v (%s)\n", w.Seq, a, a.Reason.Rule)
		}
		if n == 1 {
			for _, r := range reasons {
				fmt.Fprintf(&out, "  %s %s: %s\n", r.Workload, r.Rule, words.Sentence(r))
			}
		}
		for _, a := range actions {
			obey(h, a.Workload, a.Nodes, a.CPUs)
		}
	}
	return out.String()
}

// obey carries out an action at once: CPUs, memory and all.
func obey(h *windowtest.Host, id string, nodes set.NodeSet, cpus set.CPUSet) {
	l := h.Load(id)
	if nodes.IsEmpty() {
		l.Binding.CPUs, l.Binding.Mems = h.Machine.OnlineCPUs(), h.Machine.NodeIDs()
		l.Binding.OursCPUs, l.Binding.OursMems = false, false
		return
	}
	l.Binding.CPUs, l.Binding.Mems, l.Binding.OursCPUs, l.Binding.OursMems = cpus, nodes, true, true
	var all unit.Bytes
	for k := range l.AnonByNode {
		all += l.AnonByNode[k].Or(0)
	}
	for k, n := range h.Machine.Nodes[:min(len(h.Machine.Nodes), len(l.AnonByNode))] {
		part := unit.Bytes(0)
		if nodes.Has(n.ID) {
			part = all / unit.Bytes(nodes.Len())
		}
		l.AnonByNode[k] = unit.Measured(part, "script")
	}
}

func TestScenarios(t *testing.T) {
	windowtest.Run(t, "testdata/*.txt", *update, func() windowtest.Script { return &script{cfg: DefaultConfig()} })
}
