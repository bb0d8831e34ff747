// SPDX-License-Identifier: Apache-2.0

package views

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"homenode/internal/action"
	"homenode/internal/agent/threadagent"
	"homenode/internal/machine"
	"homenode/internal/unit"
)

func TestPrintBRM(t *testing.T) {
	part := threadagent.Part{
		CPUByNode: []unit.Value[float64]{unit.Estimated(1.5, "x"), unit.UnknownValue[float64]("x")},
		Penalty:   unit.Modelled(212.34, "x"), LocalAccessRatio: unit.Measured(unit.Ratio(0.875), "x"),
	}
	none := threadagent.Part{CPUByNode: []unit.Value[float64]{{}, {}}}
	stay := action.Reason{Rule: "brm.stay", Numbers: []action.Number{
		{Name: "workload_penalty", Value: unit.Estimated(212.0, "x")}, {Name: "node_response", Value: unit.Estimated(0.5, "x")},
		{Name: "gain", Value: unit.Estimated(0.21, "x"), Limit: unit.Some(0.03)}, {Name: "stall_share", Value: unit.UnknownValue[float64]("x")},
	}}
	s := threadagent.Summary{
		Schema: 1, Period: 10 * time.Millisecond, Ran: 3 * time.Second, Windows: 300, Events: "lab", Moves: 4, PutBack: 2,
		ReadCost: unit.Measured(10500*time.Nanosecond, "x"), Problems: []string{"thread 7 \x1b[31mEVIL"}, MoreProblems: 17,
		Processes: []threadagent.Process{
			{ID: "pid:12", Threads: 2, Moves: 4, First: part, Last: none, Reason: stay, Rules: map[string]int{"brm.stay": 290, "brm.bias": 10}, Pinned: 1, Uncounted: 2, Verdict: "sensitive"},
			{ID: "/demo/\x1b]0;x", First: none, Last: none, Sensitive: unit.Some(false), Reason: action.Reason{Rule: "brm.\x1bx"}},
		},
	}
	m := machine.Machine{Nodes: []machine.Node{{ID: 0}, {ID: 2}}}
	var out bytes.Buffer
	if err := BRM(&out, s, m, "text"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"300 windows of 10 ms", "4 moves, ", "CPU NODE 2", "1.50~", "212.3^", "87.5%\n", "unknown", "10.5 µs", "2 affinities put back",
		"pid:12: found to be sensitive. At the end brm.stay: its threads are where the penalty is least, or their draw was to stay; workload_penalty 212~, node_response 0.5~, gain 0.21~ (limit 0.03). Windows by rule: brm.bias 10, brm.stay 290. 1 of 2 threads are pinned by another process. 2 of 2 threads are not counted.",
		"watched, and not moved", "and 17 more",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Error("a terminal would obey the name")
	}
	out.Reset()
	if err := BRM(&out, s, m, "json"); err != nil || strings.Contains(out.String(), "\x1b") {
		t.Errorf("%v\n%s", err, out.String())
	}
	for _, want := range []string{`"read_cost_ns":{"value":10500`, `"rule":"brm.stay"`, `"rules":{"brm.bias":10,"brm.stay":290}`, `"judged":"sensitive"`, `"pinned_by_others":1`, `"uncounted_threads":2`, `"more_problems":17`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in\n%s", want, out.String())
		}
	}
}
