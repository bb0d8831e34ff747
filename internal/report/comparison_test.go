// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"homenode/internal/experiment"
	"homenode/internal/golden"
	"homenode/internal/render"
	"homenode/internal/unit"
)

// pages, if set, is the folder for the fixtures' pages, for a person to look at.
var pages = flag.String("pages", "", "write the fixtures' pages into this folder")

// comparisons are hand-made comparisons (their figures are not from a lab).
func comparisons(t *testing.T) map[string]experiment.Comparison {
	t.Helper()
	paths, err := filepath.Glob("testdata/comparison/*.json")
	if err != nil || len(paths) < 6 {
		t.Fatalf("%d fixtures, want at least 6 (%v)", len(paths), err)
	}
	out := map[string]experiment.Comparison{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var c experiment.Comparison
		if err := json.Unmarshal(data, &c); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		out[strings.TrimSuffix(filepath.Base(path), ".json")] = c
	}
	return out
}

type face func(io.Writer, experiment.Comparison) error

func comparisonText(w io.Writer, c experiment.Comparison) error {
	return Comparison(w, c, render.TextOptions{UTF8: true})
}

func drawn(t *testing.T, f face, c experiment.Comparison) string {
	t.Helper()
	var first, second bytes.Buffer
	if err := f(&first, c); err != nil {
		t.Fatal(err)
	}
	if err := f(&second, c); err != nil || first.String() != second.String() {
		t.Errorf("the same comparison gave another output (%v)", err)
	}
	return first.String()
}

func TestDecisionComparisonGolden(t *testing.T) {
	for name, c := range comparisons(t) {
		golden.Check(t, "testdata/comparison/"+name+".txt.golden", drawn(t, comparisonText, c))
		golden.Check(t, "testdata/comparison/"+name+".md.golden", drawn(t, ComparisonMarkdown, c))
		if *pages != "" {
			if err := os.WriteFile(filepath.Join(*pages, name+".html"), []byte(drawn(t, ComparisonHTML, c)), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestDecisionTextFitsTheTerminal(t *testing.T) {
	for name, c := range comparisons(t) {
		for i, l := range strings.Split(drawn(t, comparisonText, c), "\n") {
			if n := utf8.RuneCountInString(l); n > comparisonWidth {
				t.Errorf("%s: line %d has %d columns, want ≤ %d:\n%s", name, i+1, n, comparisonWidth, l)
			}
			if strings.ContainsFunc(l, unicode.IsControl) {
				t.Errorf("%s: line %d has a control character: %q", name, i+1, l)
			}
		}
	}
}

func TestDecisionColourOnlyColours(t *testing.T) {
	escapes := regexp.MustCompile(`\x1b\[\d*m`)
	for name, c := range comparisons(t) {
		coloured := drawn(t, func(w io.Writer, c experiment.Comparison) error {
			return Comparison(w, c, render.TextOptions{UTF8: true, Colour: true})
		}, c)
		if !strings.Contains(coloured, string(render.Red)) && !strings.Contains(coloured, string(render.Green)) {
			t.Errorf("%s: no colour", name)
		}
		if escapes.ReplaceAllString(coloured, "") != drawn(t, comparisonText, c) {
			t.Errorf("%s: colour changed more than colour", name)
		}
	}
}

// An arm that wins is shown winning, in every face; only the arm that a plain search
// finds best is marked.
func TestDecisionTheBestIsMarkedWhoeverItIs(t *testing.T) {
	compared := 0
	for name, c := range comparisons(t) {
		c = cleanComparison(c)
		for _, g := range serviceGrid(c).Groups {
			var best float64
			for _, a := range c.Arms {
				if v, ok := ops(a, g.Title); ok && a.Name != ceiling {
					best = max(best, v)
				}
			}
			for i, a := range c.Arms {
				v, ok := ops(a, g.Title)
				if !ok {
					continue
				}
				compared++
				want := a.Name != ceiling && figure(v) == figure(best)
				if g.Rows[i].Cells[0].Best != want {
					t.Errorf("%s: %s under %s: best is %v, want %v", name, g.Title, a.Title, !want, want)
				}
			}
		}
	}
	if compared < 50 {
		t.Errorf("compared %d figures only", compared)
	}
	beaten := comparisons(t)["beaten"]
	for what, out := range map[string]string{"text": drawn(t, comparisonText, beaten), "markdown": drawn(t, ComparisonMarkdown, beaten), "page": drawn(t, ComparisonHTML, beaten)} {
		if !strings.Contains(out, "numad (Debian) is ahead of homenode in throughput of search") || !strings.Contains(out, "NOT MET") {
			t.Errorf("%s hides that numad won", what)
		}
	}
}

// A peer that wins after a longer warm-up is shown winning, in every face; if none is
// stored, the face says so.
func TestDecisionPeersAfterALongerWarmup(t *testing.T) {
	all := comparisons(t)
	for what, f := range map[string]face{"text": comparisonText, "markdown": ComparisonMarkdown, "page": ComparisonHTML} {
		with, without := flat(drawn(t, f, all["long"])), flat(drawn(t, f, all["normal"]))
		for _, want := range []string{
			"Linux, NUMA balancing on after 120 model-s is ahead of homenode in throughput of search",
			"Peers after 120 model-s of warm-up, homenode as above (ops per model-s)",
			"120 model-s, modelled (lab), 2 for each arm, commit 0a1b2c3",
		} {
			if !strings.Contains(with, want) {
				t.Errorf("%s: no %q", what, want)
			}
		}
		if strings.Contains(without, "after 120") || !strings.Contains(without, "not measured for this load") {
			t.Errorf("%s: peers with a longer warm-up without any stored", what)
		}
	}
	l, ok := longer(cleanComparison(all["long"]))
	if !ok {
		t.Fatal("nothing is stored")
	}
	g := longGrid(l)
	for i, h := range g.Heads {
		if h.Top == "search" && (g.Groups[0].Rows[0].Cells[i].Best || !g.Groups[0].Rows[1].Cells[i].Best) {
			t.Error("the best of search is not marked")
		}
	}
}

// flat is a text on one line, without the markup of a page.
func flat(text string) string { return strings.Join(strings.Fields(text), " ") }

func TestDecisionWithoutFigures(t *testing.T) {
	none := experiment.Comparison{}
	noArm := experiment.Comparison{Arms: []experiment.Arm{{Name: "homenode", Why: "no run counted"}}}
	bare := experiment.Comparison{Arms: []experiment.Arm{{Name: "homenode", Applicable: true, Services: []experiment.Service{{Name: "s", Kind: "sensitive"}}}}}
	for _, c := range []experiment.Comparison{none, noArm, bare} {
		for _, f := range []face{comparisonText, ComparisonMarkdown, ComparisonHTML} {
			out := drawn(t, f, c)
			if !strings.Contains(out, "unknown") || strings.Contains(out, "NaN") || strings.Contains(out, "Inf") {
				t.Errorf("nothing is known, but this is printed:\n%s", out)
			}
		}
	}
}

func TestDecisionFigures(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 0.00012345: "0.0001234", 0.01234: "0.01234", 1: "1.000", 12.345: "12.35", 999.9: "999.9", 999.96: "1,000",
		-1234567: "-1,234,567", 9999999: "9,999,999", 12345678: "12.35 M", 2.5e12: "2,500 G",
	} {
		if have := figure(v); have != want {
			t.Errorf("figure(%v) = %q, want %q", v, have, want)
		}
	}
	missed := experiment.Target{Got: unit.Some(0.94996), Limit: 0.95}
	if have := got(missed); have != "0.94996" {
		t.Errorf("0.94996 missed 0.95 and reads %q", have)
	}
}
