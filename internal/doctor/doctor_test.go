// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"homenode/internal/snapshot"
)

func (c scenario) snapshot() snapshot.Snapshot {
	s := healthy(max(c.nodes, 2))
	if c.nodes == 1 {
		s = healthy(1)
	}
	c.make(&s)
	return s
}

func ruleNamed(id string) rule {
	return rules[slices.IndexFunc(rules, func(r rule) bool { return r.id == id })]
}

func TestRules(t *testing.T) {
	present, silent, skips := map[string]int{}, map[string]int{}, map[string]int{}
	for _, c := range scenarios {
		t.Run(c.rule+"/"+c.name, func(t *testing.T) {
			s := c.snapshot()
			if err := s.Validate(); err != nil {
				t.Fatal(err)
			}
			found, skipped := ruleNamed(c.rule).judge(s, DefaultConfig())
			switch {
			case c.quiet:
				silent[c.rule]++
				if len(found)+len(skipped) != 0 {
					t.Fatalf("not quiet: %+v %+v", found, skipped)
				}
			case c.skipped != "":
				skips[c.rule]++
				if len(found) != 0 || !strings.Contains(fmt.Sprint(skipped), c.skipped) {
					t.Fatalf("%+v %+v, want skipped: %q", found, skipped, c.skipped)
				}
			default:
				present[c.rule]++
				c.check(t, found)
			}
		})
	}
	for _, r := range rules {
		if present[r.id] == 0 || silent[r.id] == 0 || skips[r.id] == 0 && r.id != "firmware-doubts" {
			t.Errorf("%s: %d situations, %d silent, %d skipped: want some of each", r.id, present[r.id], silent[r.id], skips[r.id])
		}
	}
}

func (c scenario) check(t *testing.T, found []Finding) {
	t.Helper()
	if len(found) != 1 {
		t.Fatalf("%d findings: %+v", len(found), found)
	}
	f := found[0]
	if f.Subject.ID != c.subject {
		t.Errorf("subject %q, want %q", f.Subject.ID, c.subject)
	}
	if got := f.Cost.Or(0); c.cost != 0 && (got < c.cost*0.99 || got > c.cost*1.01) {
		t.Errorf("cost %v, want %.4g", f.Cost, c.cost)
	}
	text := f.Title + f.Risk + f.Cause + fmt.Sprint(f.Evidence)
	for _, w := range c.want {
		if !strings.Contains(text, w) {
			t.Errorf("no %q in %s", w, text)
		}
	}
	commands := strings.Join(f.Commands, "\n")
	for _, w := range c.command {
		if !strings.Contains(commands, w) {
			t.Errorf("no %q in:\n%s", w, commands)
		}
	}
	for _, w := range c.absent {
		if strings.Contains(commands, w) {
			t.Errorf("%q in:\n%s", w, commands)
		}
	}
	if !strings.Contains(f.Remedy, c.remedy) {
		t.Errorf("no %q in %s", c.remedy, f.Remedy)
	}
	if says := f.Afterwards; c.after == better && says != "" || c.after != better && !strings.Contains(says, c.after) {
		t.Errorf("afterwards: %q, want %q", says, c.after)
	}
	if f.Decides != c.decides && c.rule == "memory-too-tight" {
		t.Errorf("decides: %v", f.Decides)
	}
	if f.Cause == "" || f.Remedy == "" || len(f.Evidence) == 0 {
		t.Errorf("a part is empty: %+v", f)
	}
}

// A host on which nothing is wrong has no finding, and every rule can judge.
func TestHealthy(t *testing.T) {
	for _, n := range []int{1, 2, 4} {
		r := Examine(healthy(n), DefaultConfig())
		if len(r.Findings)+len(r.Skipped) != 0 || len(r.Quiet) != len(rules) || r.Verdict.Answer != No {
			t.Errorf("%d nodes: %+v", n, r)
		}
	}
}

// On a host that loses ticks, /proc/stat has less CPU time than the scheduler's
// clock gave the workloads: no more can be lost than all that was used.
func TestVerdictLostTicks(t *testing.T) {
	s := healthy(2)
	for i := range s.Window.Nodes {
		s.Window.Nodes[i].CPUBusy = known(0.05)
	}
	used := 0.0
	for _, w := range s.Window.Workloads {
		used += w.CPU.Or(0)
	}
	v := Examine(s, DefaultConfig()).Verdict
	if len(v.Numbers) == 0 || v.Numbers[0].Name != "busy" || v.Numbers[0].Value.Or(0) != used {
		t.Errorf("workloads use %v CPUs: %+v", used, v)
	}
}
