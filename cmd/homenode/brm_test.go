// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"homenode/internal/action"
	"homenode/internal/agent/pinner"
	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/kernel"
	"homenode/internal/machine"
	"homenode/internal/policy/brm"
	"homenode/internal/unit"
)

func TestPrintBRM(t *testing.T) {
	part := pinner.Part{
		CPUByNode: []unit.Value[float64]{unit.Estimated(1.5, "x"), unit.UnknownValue[float64]("x")},
		Penalty:   unit.Modelled(212.34, "x"), LocalAccessRatio: unit.Measured(unit.Ratio(0.875), "x"),
	}
	none := pinner.Part{CPUByNode: []unit.Value[float64]{{}, {}}}
	stay := action.Reason{Rule: "brm.stay", Summary: "it stays", Numbers: []action.Number{
		{Name: "gain", Value: unit.Estimated(0.21, "x"), Limit: unit.Some(0.03)}, {Name: "stall_share", Value: unit.UnknownValue[float64]("x")},
	}}
	s := pinner.Summary{
		Schema: 1, Period: 10 * time.Millisecond, Ran: 3 * time.Second, Windows: 300, Events: "lab", Moves: 4, PutBack: 2,
		ReadCost: unit.Measured(10500*time.Nanosecond, "x"), Problems: []string{"thread 7 \x1b[31mEVIL"}, MoreProblems: 17,
		Processes: []pinner.Process{
			{ID: "pid:12", Threads: 2, Moves: 4, First: part, Last: none, Reason: stay, Rules: map[string]int{"brm.stay": 290, "brm.bias": 10}, Pinned: 1, Uncounted: 2, Verdict: "sensitive"},
			{ID: "/demo/\x1b]0;x", First: none, Last: none, Sensitive: unit.Some(false), Reason: action.Reason{Rule: "brm.\x1bx"}},
		},
	}
	m := machine.Machine{Nodes: []machine.Node{{ID: 0}, {ID: 2}}}
	var out bytes.Buffer
	if err := printBRM(&out, s, m, "text"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"300 windows of 10ms", "4 moves, ", "CPU NODE 2", "1.50~", "212.3^", "0.875\n", "unknown", "10.5 us", "2 affinities put back",
		"pid:12: found to be sensitive. In the end brm.stay: it stays; gain 0.21~ (limit 0.03). Windows by rule: brm.bias 10, brm.stay 290. 1 of 2 threads are pinned by somebody else. 2 of 2 threads are not counted.",
		"watched, and not moved", "and 17 more",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Error("a terminal would obey it")
	}
	out.Reset()
	if err := printBRM(&out, s, m, "json"); err != nil || strings.Contains(out.String(), "\x1b") {
		t.Errorf("%v\n%s", err, out.String())
	}
	for _, want := range []string{`"read_cost_ns":{"value":10500`, `"rule":"brm.stay"`, `"rules":{"brm.bias":10,"brm.stay":290}`, `"verdict":"sensitive"`, `"pinned_by_others":1`, `"uncounted_threads":2`, `"more_problems":17`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in\n%s", want, out.String())
		}
	}
}

// A verdict is the policy's only where the operator gave none.
func TestBRMVerdicts(t *testing.T) {
	p := brmPolicy{verdicts: map[string]brm.Verdict{"a": brm.Sensitive, "b": brm.Sensitive}}
	all := []pinner.Process{{ID: "a"}, {ID: "b", Sensitive: unit.Some(false)}, {ID: "c"}}
	p.judge(all)
	if all[0].Verdict != "sensitive" || all[1].Verdict != "" || all[2].Verdict != "" {
		t.Errorf("%+v", all)
	}
}

func TestBRMConfig(t *testing.T) {
	cfg, written, err := parseBRM([]byte("scope: system\nforget: 1m\nmargin: 0.1\n"), "x.yaml")
	if err != nil || cfg.Scope != brm.ScopeSystem || cfg.Forget != time.Minute || cfg.Margin != 0.1 || cfg.Settle != brm.DefaultConfig().Settle || cfg.Period != brmPeriod {
		t.Errorf("%+v, %v", cfg, err)
	}
	if len(written) != 3 || !written["forget"] {
		t.Errorf("%v", written)
	}
	for _, text := range []string{"", "\n# scope: system\n\n"} {
		want := brm.DefaultConfig()
		want.Period = brmPeriod
		if cfg, _, err := parseBRM([]byte(text), "x.yaml"); err != nil || cfg != want {
			t.Errorf("%q: %+v, %v", text, cfg, err)
		}
	}
}

func TestBRMConfigIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"scope: system\n---\nscope: galaxy\n": "exactly one YAML document",
		"seed: 1\nmargin: 99\n":               "parse x: line 2: malformed: margin: it is 99: it must be between 0 and 10\n    2 | margin: 99",
		"seed: 1\nscope: galaxy\n":            "line 2: malformed: scope: it is \"galaxy\"",
		"seed: 1\ninfer: [1]\n":               "parse x: line 2: malformed: infer: want true or false\n    2 | infer: [1]",
		"settle: 4.7\n":                       "line 1: malformed: settle: want a whole number",
		"settle: \"4\"\n":                     "line 1: malformed: settle: want a whole number",
		"period: 100\n":                       "line 1: malformed: period: want a time with its unit, like 10ms",
		"margin: much\n":                      "line 1: malformed: margin: want a number",
		"seed: 1\nmargins: 1\n":               "line 2: malformed: margins: there is no such setting",
		"seed: 1\nseed: 1\n":                  "line 2: malformed: ",
		"- 1\n":                               "line 1: malformed: want settings",
		"margin: !":                           "malformed: ",
		strings.Repeat("# more\n", 1<<12) + "seed: 1\n": "settings take at most",
	} {
		cfg, _, err := parseBRM([]byte(text), "x")
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "Go ") || cfg != (brm.Config{}) || !errors.Is(err, kernel.ErrMalformed) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
}

// What the file says holds, unless a flag says otherwise: then somebody is mistaken.
func TestBRMFlagsAndFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "brm.yaml")
	for _, c := range []struct {
		text, flags string
		period      time.Duration
		hold, infer bool
		err         string
	}{
		{"", "", brmPeriod, false, false, ""},
		{"infer: true\nperiod: 20ms\nhold: true\n", "", 20 * time.Millisecond, true, true, ""},
		{"infer: true\nperiod: 20ms\n", "--infer --period=20ms --hold", 20 * time.Millisecond, true, true, ""},
		{"margin: 0.1\n", "--infer --period=20ms", 20 * time.Millisecond, false, true, ""},
		{"period: 20ms\n", "--period=30ms", 0, false, false, "--period 30ms: " + file + " says period: 20ms: say it once"},
		{"hold: false\n", "--hold", 0, false, false, "--hold true: "},
		{"infer: true\n", "--infer=false", 0, false, false, "--infer false: "},
		{"period: 5ms\n", "", 0, false, false, file + ": period 5ms: want 10ms to "},
		{"", "--period=5ms", 0, false, false, "--period: period 5ms: want 10ms to "},
	} {
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		o := brmOptions{pids: "12", config: file}
		cmd := brmFlags(&o)
		if err := cmd.Flags().Parse(strings.Fields(c.flags)); err != nil {
			t.Fatal(err)
		}
		o.pids, o.config = "12", file
		cfg, rc, err := o.check(cmd.Flags().Changed)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%q with %q: %v, want %q", c.text, c.flags, err, c.err)
			}
			continue
		}
		if err != nil || cfg.Period != c.period || cfg.Hold != c.hold || cfg.Infer != c.infer || rc.Infer != c.infer {
			t.Errorf("%q with %q: %+v, %v", c.text, c.flags, cfg, err)
		}
	}
}

// Who asked wrongly gets 2; what fails by itself is 1.
func TestBRMExitCodes(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
	}{
		{fmt.Errorf("process 7: %w", kernel.ErrGone), exit.Bad},
		{fmt.Errorf("read: %w", kernel.ErrNotPermitted), exit.Bad},
		{fmt.Errorf("read /proc/7/stat: %w", kernel.ErrMalformed), exit.Failed},
	} {
		var none bytes.Buffer
		if code := cli.Finish(notReadable(c.err), &none); code != c.code {
			t.Errorf("%v: %d", c.err, code)
		}
	}
}

func FuzzBRMConfig(f *testing.F) {
	for _, s := range []string{"", "scope: system\n", "margin: !", "forget: 1h\nseed: 3", "a: &x [*x]", "? [a]\n: 1", "&a margin: 1", "<<: {margin: 1}", "margin: &x 1\nchange: *x"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		cfg, _, err := parseBRM(data, "x")
		if err != nil && cfg != (brm.Config{}) || err == nil && cfg.Validate() != nil {
			t.Errorf("%v with %+v", err, cfg)
		}
	})
}
