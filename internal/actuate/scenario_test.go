// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"homenode/internal/action"
	"homenode/internal/golden"
	"homenode/internal/policy/mao"
	"homenode/internal/profile"
	"homenode/internal/render/words"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
	"homenode/internal/window/windowtest"
)

// script closes the loop: windowtest's toy world applies steps, and their outcomes come
// with the next window. With "mao" MAO makes the actions.
type script struct {
	cfg     Config
	st      State
	maoCfg  mao.Config
	maoSt   mao.State
	useMAO  bool
	sums    bool              // print what each move would bring
	ways    bool              // print what is expected of each bind, and its news
	hits    map[string]string // workload → the node whose memory it reads; else all equally
	actions []action.Action
	leases  map[string]action.Action // isolations, which are renewed by themselves as mao does
}

// renew asks again for the isolations that the script does not mention, unless they
// ended.
func (s *script) renew(outcomes []action.Outcome) {
	for _, o := range outcomes {
		if o.Step.Kind == action.SetClass && (o.Status == action.Refused || o.Status == action.Drifted) {
			delete(s.leases, o.Step.Workload)
		}
	}
	for _, a := range s.actions {
		if a.Kind == action.Isolate {
			delete(s.leases, a.Workload)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(s.leases)) {
		s.actions = append(s.actions, s.leases[id])
	}
	for _, a := range s.actions {
		if a.Kind == action.Isolate && !a.Class.None() {
			a.Renew = true
			s.leases[a.Workload] = a
		}
	}
}

func (s *script) Line(h *windowtest.Host, words []string) (string, error) {
	switch words[0] {
	case "config":
		if err := windowtest.Configure(&s.cfg, words[1:]); err != nil {
			return "", err
		}
		return "", s.cfg.Validate()
	case "mao":
		s.useMAO = true
		return "", windowtest.Configure(&s.maoCfg, words[1:])
	case "bind": // bind ID NODES [cpus-only | CPUS]
		nodes, err := set.ParseNodes(words[2])
		a := action.Action{Kind: action.Bind, Workload: words[1], Nodes: nodes, Reason: action.Reason{Rule: "test.bind"}}
		if a.CPUsOnly = len(words) > 3 && words[3] == "cpus-only"; len(words) > 3 && !a.CPUsOnly {
			a.CPUs, err = set.ParseCPUs(words[3])
		}
		s.actions = append(s.actions, a)
		return "", err
	case "forget": // ID: its isolation is not asked for any more
		delete(s.leases, words[1])
		return "", nil
	case "unbind":
		s.actions = append(s.actions, action.Action{Kind: action.Unbind, Workload: words[1], Reason: action.Reason{Rule: "test.unbind"}})
		return "", nil
	case "pin": // pin ID THREAD CPUS [hold]
		thread, err := strconv.Atoi(words[2])
		if err != nil {
			return "", err
		}
		cpus, err := set.ParseCPUs(words[3])
		s.actions = append(s.actions, action.Action{Kind: action.Pin, Workload: words[1], Thread: thread, CPUs: cpus, Release: len(words) == 4, Reason: action.Reason{Rule: "test.pin"}})
		return "", err
	case "isolate": // isolate ID CACHE BANDWIDTH
		var class action.Class
		if _, err := fmt.Sscan(words[2]+" "+words[3], (*float64)(&class.Cache), (*float64)(&class.Bandwidth)); err != nil {
			return "", err
		}
		s.actions = append(s.actions, action.Action{Kind: action.Isolate, Workload: words[1], Class: &class, Reason: action.Reason{Rule: "test.isolate"}})
		return "", nil
	case "profile": // profile LOCAL REMOTE PAGE: ns of a load, and of moving a page of 4 KiB
		s.cfg.Profile = &profile.Profile{How: unit.HowModelled}
		ns := make([]profile.Figure, 3)
		for i, word := range words[1:] {
			v, err := strconv.ParseFloat(word, 64)
			if err != nil {
				return "", err
			}
			ns[i] = profile.FigureOf([]float64{v})
		}
		for _, from := range h.Machine.Nodes {
			for _, to := range h.Machine.Nodes {
				pair := profile.PairFigure{From: from.ID, To: to.ID, Figure: ns[min(1, max(from.ID-to.ID, to.ID-from.ID))]}
				s.cfg.Profile.Latency = append(s.cfg.Profile.Latency, pair)
				move := profile.Migration{From: from.ID, To: to.ID, PageSize: 4 * unit.KiB, PerPage: ns[2]}
				s.cfg.Profile.Migration = append(s.cfg.Profile.Migration, move)
			}
		}
		return "", nil
	case "sums":
		s.sums = true
		return "", nil
	case "ways":
		s.ways = true
		return "", nil
	case "access": // access ID NODE: from now on it reads only memory on that node
		s.hits[words[1]] = words[2]
		return "", nil
	case "restart": // the state is lost
		s.st, s.maoSt = State{}, mao.State{}
		return "", nil
	case "tick", "skip": // skip prints nothing
		n := 1
		if len(words) > 1 {
			n, _ = strconv.Atoi(words[1])
		}
		if out := s.tick(h, n); words[0] == "tick" {
			return out, nil
		}
		return "", nil
	}
	return "", fmt.Errorf("unknown line")
}

func (s *script) tick(h *windowtest.Host, n int) string {
	var out strings.Builder
	for range n {
		w := h.Window()
		fmt.Fprintf(&out, "window %d\n", w.Seq)
		for _, o := range w.Outcomes {
			fmt.Fprintln(&out, strings.TrimRight(fmt.Sprintf("  was: %v: %s %s", o.Step, o.Status, words.Became(o)), " "))
		}
		if s.useMAO {
			st, actions, _ := mao.Step(h.Machine, s.maoCfg, s.maoSt, w)
			s.maoSt, s.actions = st, actions
		}
		if !s.useMAO {
			s.renew(w.Outcomes)
		}
		for _, a := range action.Decided(s.actions) {
			fmt.Fprintf(&out, "  wish: %v (%s)\n", a, a.Reason.Rule)
		}
		s.read(&w)
		before := s.st
		st, steps, outcomes := Step(h.Machine, s.cfg, s.st, s.actions, w)
		s.st, s.actions = st, nil
		if s.ways {
			for _, news := range News(before, st, outcomes) {
				fmt.Fprintf(&out, "  news: %s: %s\n", news.Rule, words.Sentence(news))
				for _, a := range news.Alternatives {
					fmt.Fprintf(&out, "    %s\n", words.Alternative(a))
				}
			}
		}
		for _, step := range steps {
			fmt.Fprintf(&out, "  step: %v (%s)\n", step, step.Reason.Rule)
		}
		h.Apply(steps)
		h.Report(outcomes...)
		for _, i := range st.Isolated {
			fmt.Fprintf(&out, "  %s: isolated to %v\n", i.Workload, &i.Class)
		}
		for _, j := range st.Jobs {
			fmt.Fprintln(&out, strings.TrimRight(fmt.Sprintf("  %s: %s %s", j.Workload, j.Stage, said(j.Why)), " "))
			if v, ok := j.Pays.Get(); ok && s.sums {
				fmt.Fprintf(&out, "    %s: %s\n", v.Answer, words.Sentence(v.Sum()))
			}
		}
	}
	return out.String()
}

// said is a reason in words; "" of none.
func said(why action.Reason) string {
	if why.Rule == "" {
		return ""
	}
	return words.Sentence(why)
}

// read makes workloads read the memory of one node.
func (s *script) read(w *window.Window) {
	for i := range w.Workloads {
		wl := &w.Workloads[i]
		at, all, here := s.hits[wl.ID], 0.0, 0.0
		if at == "" {
			continue
		}
		for k := range wl.CPUByNode {
			all += wl.CPUByNode[k].Or(0)
			if strconv.Itoa(w.Nodes[k].ID) == at {
				here = wl.CPUByNode[k].Or(0)
			}
		}
		reads, _ := wl.Loads()
		wl.LocalLoads = unit.Measured(uint64(reads*here/all), "script")
		wl.RemoteLoads = unit.Measured(uint64(reads-reads*here/all), "script")
	}
}

func TestScenarios(t *testing.T) {
	windowtest.Run(t, "testdata/*.txt", golden.Update(), func() windowtest.Script {
		return &script{leases: map[string]action.Action{}, hits: map[string]string{}, cfg: DefaultConfig(), maoCfg: mao.DefaultConfig()}
	})
}
