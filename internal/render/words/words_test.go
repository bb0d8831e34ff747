// SPDX-License-Identifier: Apache-2.0

package words

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"homenode/internal/action"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// givesReasons are the packages whose string literals are rules.
var givesReasons = []string{"policy", "actuate", "migration", "sim/runner", "tui"}

var rule = regexp.MustCompile(`^(mao|brm|numad|animal|actuate|migration|hand|hand-threads|top)(\.[A-Za-z-]+)*$`)

// Every rule that any policy gives has a sentence, and every sentence has a rule.
func TestEveryRuleHasASentence(t *testing.T) {
	found := map[string]string{
		"mao.unbind.A": "by strategy", "mao.unbind.B": "by strategy", // made of the strategy's name
		"top.bind": "by kind", "top.unbind": "by kind", // made of the action's kind
	}
	for _, room := range givesReasons {
		err := filepath.WalkDir(filepath.Join("..", "..", filepath.FromSlash(room)), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			return rulesOf(path, found)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, where := range found {
		if !Has(name) {
			t.Errorf("%s: rule %s has no sentence: add it to sentences.go", where, name)
		}
	}
	for name := range sentences {
		if found[name] == "" {
			t.Errorf("sentence of %s: nothing gives that rule", name)
		}
	}
	if len(found) < 100 {
		t.Errorf("only %d rules were found", len(found))
	}
}

// rulesOf adds the string literals of a file that are rules.
func rulesOf(path string, found map[string]string) error {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, 0)
	if err != nil {
		return err
	}
	ast.Inspect(file, func(n ast.Node) bool {
		literal, ok := n.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return true
		}
		text, err := strconv.Unquote(literal.Value)
		if known := rule.FindStringSubmatch(text); err == nil && known != nil && (known[2] != "" || sentences[text] != "") {
			found[text] = set.Position(literal.Pos()).String()
		}
		return true
	})
	return nil
}

// Templates are well-formed: braces and brackets close and do not nest, and what stands
// behind a bar is known.
func TestTemplates(t *testing.T) {
	inBraces := regexp.MustCompile(`\{([^{}]*)\}`)
	for name, template := range sentences {
		depth := map[rune]int{}
		for _, r := range template {
			switch r {
			case '{', '[':
				depth[r]++
			case '}':
				depth['{']--
			case ']':
				depth['[']--
			}
			if depth['{'] < 0 || depth['{'] > 1 || depth['['] < 0 || depth['['] > 1 {
				t.Fatalf("%s: braces or brackets nest: %q", name, template)
			}
		}
		if depth['{'] != 0 || depth['['] != 0 {
			t.Errorf("%s: braces or brackets stay open: %q", name, template)
		}
		for _, m := range inBraces.FindAllStringSubmatch(template, -1) {
			_, verb, ok := strings.Cut(m[1], "|")
			if ok && conditions[verb] == nil && abouts[verb] == nil && forms[verb] == nil {
				t.Errorf("%s: {%s}: %q is no form", name, m[1], verb)
			}
		}
	}
}

// Sentences are for a person: no word of the house stands for "another process", and they
// neither begin with a capital letter nor end with a full stop.
func TestSentencesArePlain(t *testing.T) {
	for name, template := range sentences {
		for _, word := range []string{"somebody", "nobody", "anybody", "told", "wish"} {
			if slices.Contains(strings.FieldsFunc(template, func(r rune) bool { return !(r >= 'a' && r <= 'z') }), word) {
				t.Errorf("%s: %q says %q", name, template, word)
			}
		}
		if strings.HasSuffix(template, ".") || template[0] >= 'A' && template[0] <= 'Z' {
			t.Errorf("%s: %q is more than a clause", name, template)
		}
	}
}

func number(name string, v float64, limit float64, of string) action.Number {
	return action.Number{Name: name, Value: unit.Measured(v, "test"), Limit: unit.Some(limit), Unit: of}
}

func TestSentence(t *testing.T) {
	unknown := action.Number{Name: "local_access_ratio", Value: unit.UnknownValue[float64]("no event table"), Limit: unit.Some(0.9), Unit: "ratio"}
	guess := action.Number{Name: "local_access_ratio", Value: unit.Estimated(0.25, "hint faults"), Limit: unit.Some(0.9), Unit: "ratio"}
	for _, c := range []struct {
		why  action.Reason
		want string
	}{
		{action.Reason{Rule: "mao.bind", Nodes: set.FromNodes(1), Numbers: []action.Number{number("local_access_ratio", 0.25, 0.9, "ratio")}},
			"25.0% of its accesses are local, the target is 90.0%; it has room on nodes 1"},
		{action.Reason{Rule: "mao.bind", Nodes: set.FromNodes(1), Numbers: []action.Number{guess}},
			"25.0% of its accesses are local, the target is 90.0% (estimated: hint faults); it has room on nodes 1"},
		{action.Reason{Rule: "mao.keep.unknown", Numbers: []action.Number{unknown}}, "its local access ratio is unknown: no event table"},
		{action.Reason{Rule: "mao.keep.unknown", Numbers: []action.Number{guess}}, "its CPU use or its pages by node are unknown, so nothing says where it fits"},
		{action.Reason{Rule: "mao.skip.pinned"}, "another process restricts its CPUs"},
		{action.Reason{Rule: "mao.skip.pinned", Detail: "taskset"}, "another process restricts its CPUs: taskset"},
		{action.Reason{Rule: "mao.skip.service", Other: "/b"}.Because(action.Reason{Rule: "mao.skip.not-approved"}),
			"its service is bound as a whole or not at all, and replica /b cannot be bound: its service is not approved for binding"},
		{action.Reason{Rule: "mao.skip.service"}, "no replica of its service would have more local accesses than now"},
		{action.Reason{Rule: "mao.refused", Numbers: []action.Number{number("until", 12, 0, "window")}}.Because(action.Reason{Rule: "actuate.only-mems", Nodes: set.FromNodes(0)}),
			"its binding was refused or undone: its cgroup may use the memory of nodes 0 only; it is left alone until window 12"},
		{action.Reason{Rule: "mao.skip.too-soon"}, "it has been below its target for {windows_below} of the {windows_below.limit} windows in a row that it takes"},
		{action.Reason{Rule: "mao.skip.one-node"}.Because(action.Reason{Rule: "mao.keep.aside", Nodes: set.FromNodes(0, 1)}),
			"there is only one node with CPUs and memory; it keeps to nodes 0-1, to leave the others to what is bound there"},
		{action.Reason{Rule: "of.another.version"}, "of.another.version"},
	} {
		if got := Sentence(c.why); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

func TestFull(t *testing.T) {
	why := action.Reason{Rule: "mao.skip.one-node", Numbers: []action.Number{
		number("local_access_ratio", 0.25, 0.9, "ratio"), {Name: "quota", Value: unit.UnknownValue[float64]("no limit is set"), Unit: "cpus"},
	}}
	if got, want := Full(why), "mao.skip.one-node: there is only one node with CPUs and memory [local_access_ratio 25% (measured, limit 90%); quota unknown (no limit is set)]"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, want := Full(action.Reason{Rule: "brm.home"}), "brm.home: nothing came of the trial: its threads go back to where they were"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestAlternative(t *testing.T) {
	for _, c := range []struct {
		a    action.Alternative
		want string
	}{
		{action.Alternative{Nodes: set.FromNodes(1), Chosen: true, Figures: []action.Figure{{Name: "cost", Value: 0.25}, {Name: "bytes_to_move", Value: 1 << 30}}}, "nodes 1 *: fits: cost 0.250, 1 GiB to move"},
		{action.Alternative{Nodes: set.FromNodes(0), Code: "cpu", Figures: []action.Figure{{Name: "cpu_needed", Value: 1.6}, {Name: "cpu_left", Value: 0.4}}}, "nodes 0: cpu: it needs 1.60 CPUs, 0.40 are left"},
		{action.Alternative{Nodes: set.FromNodes(0), Code: "mems"}, "nodes 0: mems: its cgroup may not use this node"},
		{action.Alternative{Name: "in-steps", Nodes: set.FromNodes(0), Code: "worse", Figures: []action.Figure{{Name: "home_s", Value: 20}, {Name: "below_s", Value: 10}}}, "in-steps: worse: home in 20 s, worse than before for 10 s"},
		{action.Alternative{Nodes: set.FromNodes(0), Figures: []action.Figure{{Name: "of_another_version", Value: 7}}}, "nodes 0: fits: of_another_version 7"},
	} {
		if got := Alternative(c.a); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

func TestOutcome(t *testing.T) {
	step := action.Step{Kind: action.SetCPUs, Workload: "/a", CPUs: set.FromCPUs(2, 3)}
	for _, c := range []struct {
		o    action.Outcome
		want string
	}{
		{action.Outcome{Step: step, Status: action.Done}, "set-cpus /a 2-3: done"},
		{action.Outcome{Step: step, Status: action.Failed, Detail: "EINTR"}, "set-cpus /a 2-3: failed: EINTR"},
		{action.Outcome{Step: step, Status: action.Refused, Why: action.Reason{Rule: "actuate.no-cpu", Nodes: set.FromNodes(1)}, Stays: true},
			"set-cpus /a 2-3: refused: nodes 1 have no CPU that it may use; the binding stays as it is"},
	} {
		if got := Outcome(c.o); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

// Amounts are as render has them; the number of a window is no count.
func TestInUnit(t *testing.T) {
	for _, c := range []struct {
		v    float64
		of   string
		want string
	}{
		{0.25, "ratio", "25.0%"}, {1 << 30, "bytes", "1 GiB"}, {32 << 20, "bytes/s", "32 MiB/s"}, {600, "s", "10 min"}, {0.05, "s", "50 ms"},
		{1.6, "cpus", "1.60"}, {12345, "window", "12345"}, {12345, "windows", "12,345"}, {0.00125, "", "0.00125"}, {536870912, "1/s", "536,870,912"},
	} {
		if got := inUnit(c.v, c.of); got != c.want {
			t.Errorf("%v in %q: got %q, want %q", c.v, c.of, got, c.want)
		}
	}
}

// A figure of a list has one unit and the digits that one needs: more only where it and its
// limit would look alike.
func TestNumber(t *testing.T) {
	for _, c := range []struct {
		v, limit float64
		of       string
		want     string
	}{
		{1, 0.9, "ratio", "x 100% (measured, limit 90%)"}, {0.8996, 0.9, "ratio", "x 89.96% (measured, limit 90%)"},
		{0.009062, 1.02, "cpus", "x 0.01 CPUs (measured, limit 1.02 CPUs)"}, {0.001234, 2, "cpus", "x 0.001 CPUs (measured, limit 2 CPUs)"},
		{1.021, 1.02, "cpus", "x 1.021 cpus (measured, limit 1.02 cpus)"}, {1, 2, "cpus", "x 1 CPU (measured, limit 2 CPUs)"},
		{4096, 2 << 20, "bytes", "x 4 KiB (measured, limit 2 MiB)"}, {0.05, 600, "s", "x 50 ms (measured, limit 10 min)"},
		{0.349, 41.8, "cpu_s", "x 349 ms of CPU time (measured, limit 41.8 s of CPU time)"}, {1, 3, "replicas", "x 1 replica (measured, limit 3 replicas)"},
		{1.2e6, 2e6, "1/s", "x 1,200,000 per second (measured, limit 2,000,000 per second)"}, {12, 30, "window", "x window 12 (measured, limit window 30)"},
		{100, 200, "", "x 100 (measured, limit 200)"},
	} {
		if got := Number(action.Number{Name: "x", Value: unit.Measured(c.v, "y"), Limit: unit.Some(c.limit), Unit: c.of}); got != c.want {
			t.Errorf("%v of %v in %q: got %q, want %q", c.v, c.limit, c.of, got, c.want)
		}
	}
}

// Whatever a reason has or lacks, there is a sentence, and no panic.
func FuzzSentence(f *testing.F) {
	f.Add("mao.bind", "/a", "why", "until", 1.5, true)
	f.Add("actuate.way", "", "", "mover_rate", -1.0, false)
	f.Fuzz(func(t *testing.T, rule, other, detail, name string, v float64, known bool) {
		n := action.Number{Name: name, Value: unit.UnknownValue[float64]("fuzz"), Unit: "bytes"}
		if known {
			n.Value, n.Limit = unit.Estimated(v, "fuzz"), unit.Some(v)
		}
		why := action.Reason{Rule: rule, Other: other, Detail: detail, Numbers: []action.Number{n}}
		if text := Full(why.Because(why)); !strings.HasPrefix(text, rule+": ") {
			t.Errorf("%q does not name %q", text, rule)
		}
	})
}
