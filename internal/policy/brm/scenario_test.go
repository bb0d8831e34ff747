// SPDX-License-Identifier: Apache-2.0

package brm

import (
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"homenode/internal/action"
	"homenode/internal/machine"
	"homenode/internal/render/words"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
	"homenode/internal/window/windowtest"
)

var update = flag.Bool("update", false, "rewrite the outputs in testdata")

// script plays windows to brm. Threads stay where the script, or a Pin, puts them.
//
//	tag ID yes|no                         numa_sensitive
//	thread ID TID KEY=VALUE …             cpu= used= penalty=A,B by node requests= cycles= allowed= ours pinned
//	end ID TID                            it is gone
//	core CPUS                             these share a core
//	refused ID TID                        its Pin was not done
//	config KEY=VALUE …
//	tick [N]                              actions of each window; of one window, reasons too
//	state                                 what is remembered
type script struct {
	cfg Config
	st  State
	// The penalty of threads by node, by "ID TID"; none: their counters are unknown.
	penalty map[string][]float64
	counts  map[string][2]float64 // requests and cycles a window
}

func (s *script) Line(h *windowtest.Host, line []string) (string, error) {
	switch line[0] {
	case "config":
		if err := windowtest.Configure(&s.cfg, line[1:]); err != nil {
			return "", err
		}
		return "", s.cfg.Validate()
	case "tag":
		h.Load(line[1]).Sensitive = unit.Some(line[2] == "yes")
		return "", nil
	case "thread":
		return "", s.thread(h, line[1:])
	case "refused": // refused ID TID: its last action was not done
		id, err := strconv.Atoi(line[2])
		h.Report(action.Outcome{Step: action.Step{Kind: action.PinThread, Workload: line[1], Thread: id}, Status: action.Refused, Detail: "EPERM"})
		return "", err
	case "end": // a thread
		id, err := strconv.Atoi(line[2])
		l := h.Load(line[1])
		l.Threads = slices.DeleteFunc(l.Threads, func(t window.Thread) bool { return t.ID == id })
		return "", err
	case "core": // CPUs that share one
		cpus, err := set.ParseCPUs(line[1])
		for i := range h.Machine.CPUs {
			if cpus.Has(h.Machine.CPUs[i].ID) {
				h.Machine.CPUs[i].Core = unit.Some(len(h.Machine.Cores))
			}
		}
		h.Machine.Cores = append(h.Machine.Cores, cpus)
		return "", err
	case "tick":
		n := 1
		if len(line) > 1 {
			n, _ = strconv.Atoi(line[1])
		}
		return s.tick(h, n), nil
	case "state":
		return s.state(), nil
	}
	return "", fmt.Errorf("unknown line")
}

func (s *script) thread(h *windowtest.Host, words []string) error {
	l := h.Load(words[0])
	id, err := strconv.Atoi(words[1])
	if err != nil {
		return err
	}
	if !l.Binding.CPUs.Overlaps(h.Machine.OnlineCPUs()) {
		l.Binding.CPUs = h.Machine.OnlineCPUs()
	}
	i := slices.IndexFunc(l.Threads, func(t window.Thread) bool { return t.ID >= id })
	if i < 0 || l.Threads[i].ID != id {
		if i < 0 {
			i = len(l.Threads)
		}
		l.Threads = slices.Insert(slices.Clone(l.Threads), i, window.Thread{ID: id, Used: unit.Measured(1.0, "script"), Allowed: l.Binding.CPUs})
		s.counts[key(l.ID, id)] = [2]float64{10000, 2e7}
	}
	for _, word := range words[2:] {
		if err := s.set(&l.Threads[i], l.ID, word); err != nil {
			return fmt.Errorf("%s: %w", word, err)
		}
	}
	return nil
}

func key(workload string, id int) string { return fmt.Sprint(workload, " ", id) }

func (s *script) set(t *window.Thread, workload, word string) (err error) {
	k, value, _ := strings.Cut(word, "=")
	c := s.counts[key(workload, t.ID)]
	switch k {
	case "cpu":
		n, bad := strconv.Atoi(value)
		t.CPU = unit.OptOf(n, bad == nil)
	case "used":
		f, bad := strconv.ParseFloat(value, 64)
		t.Used = unit.Value[float64]{From: "script"}
		if bad == nil {
			t.Used = unit.Measured(f, "script")
		}
	case "penalty":
		s.penalty[key(workload, t.ID)] = nil
		for _, field := range strings.Split(value, ",") {
			if field == "?" {
				break
			}
			f, bad := strconv.ParseFloat(field, 64)
			s.penalty[key(workload, t.ID)], err = append(s.penalty[key(workload, t.ID)], f), bad
		}
	case "requests":
		c[0], err = strconv.ParseFloat(value, 64)
	case "cycles":
		c[1], err = strconv.ParseFloat(value, 64)
	case "allowed":
		t.Allowed, err = set.ParseCPUs(value)
	case "ours":
		t.Ours = value != "no"
	case "pinned":
		t.Pinned = value != "no"
	default:
		err = fmt.Errorf("unknown key %q", k)
	}
	s.counts[key(workload, t.ID)] = c
	return err
}

// count gives a thread its counters, by the node that it is on.
func (s *script) count(m machine.Machine, workload string, t *window.Thread) {
	t.UncoreRequests, t.UncoreWaits, t.Cycles = unit.UnknownValue[uint64]("script"), unit.UnknownValue[uint64]("script"), unit.UnknownValue[uint64]("script")
	by, c := s.penalty[key(workload, t.ID)], s.counts[key(workload, t.ID)]
	cpu, ok := t.CPU.Get()
	node, ok2 := m.NodeOf(cpu)
	at := slices.Index(m.NodeIDs().IDs(), node)
	if !ok || !ok2 || at >= len(by) {
		return
	}
	t.UncoreRequests, t.Cycles = unit.Modelled(uint64(c[0]), "script"), unit.Modelled(uint64(c[1]), "script")
	t.UncoreWaits = unit.Modelled(uint64(c[0]*by[at]), "script")
}

func (s *script) tick(h *windowtest.Host, n int) string {
	var out strings.Builder
	for range n {
		w := h.Window()
		w.Length = 10 * time.Millisecond
		for i := range w.Workloads {
			w.Workloads[i].Threads = slices.Clone(w.Workloads[i].Threads)
			for k := range w.Workloads[i].Threads {
				s.count(h.Machine, w.Workloads[i].ID, &w.Workloads[i].Threads[k])
			}
		}
		var actions []action.Action
		var reasons []action.Reason
		s.st, actions, reasons = Step(h.Machine, s.cfg, s.st, w)
		for _, a := range actions {
			fmt.Fprintf(&out, "%d: %v (%s)\n", w.Seq, a, a.Reason.Rule)
			pin(h, a)
		}
		for _, r := range reasons {
			if n == 1 {
				fmt.Fprintf(&out, "  %s %s\n", r.Workload, words.Full(r))
			}
		}
	}
	return out.String()
}

func pin(h *windowtest.Host, a action.Action) {
	l := h.Load(a.Workload)
	l.Threads = slices.Clone(l.Threads)
	for i := range l.Threads {
		t := &l.Threads[i]
		if cpu, ok := a.CPUs.First(); ok && t.ID == a.Thread {
			t.CPU = unit.Some(cpu)
		}
		if t.ID == a.Thread && !a.Release {
			t.Ours = !a.CPUs.IsEmpty()
		}
	}
}

func (s *script) state() string {
	var out strings.Builder
	for _, m := range s.st.Workloads {
		fmt.Fprintf(&out, "  %s %s\n", m.Workload, m.Verdict)
	}
	for i, t := range s.st.Threads {
		fmt.Fprintf(&out, "  %s %d: node %s, bias %s at %d;", t.Workload, t.ID, s.st.node(t.Node), s.st.node(t.Bias), t.Prob)
		for k, v := range s.st.visits(i) {
			if v.Known {
				fmt.Fprintf(&out, " node %d %.0f", s.st.Nodes[k], v.Own)
			}
		}
		fmt.Fprintln(&out)
	}
	return out.String()
}

// node is its id in words.
func (s State) node(k int) string {
	if k == none {
		return "none"
	}
	return strconv.Itoa(s.Nodes[k])
}

func TestScenarios(t *testing.T) {
	windowtest.Run(t, "testdata/*.txt", *update, func() windowtest.Script {
		return &script{cfg: DefaultConfig(), penalty: map[string][]float64{}, counts: map[string][2]float64{}}
	})
}
