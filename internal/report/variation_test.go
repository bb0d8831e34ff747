// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"homenode/internal/experiment"
	"homenode/internal/golden"
	"homenode/internal/render"
	"homenode/internal/unit"
)

func arm(name, about, flags string, seconds ...float64) experiment.Placed {
	p := experiment.Placed{Name: name, About: about, Run: strings.Fields(flags)}
	var runs []experiment.Sample
	for _, s := range seconds {
		runs = append(runs, experiment.Sample{Seconds: s, User: s * 0.9, System: 0.01, MaxRSS: 300 << 20, Minor: 12345, Voluntary: 3, Involuntary: math.Round(40 * s)})
	}
	p.Fill(runs)
	return p
}

func variation(arms ...experiment.Placed) experiment.Variation {
	v := experiment.Variation{Schema: 1, Command: []string{"./solver", "input file.dat"}, Machine: "2 nodes, 4 CPUs", How: unit.HowMeasured, Clock: "monotonic clock",
		Date: time.Date(2026, 3, 2, 10, 11, 12, 0, time.UTC), Seconds: 61.23, Warmups: 1, Repeats: arms[0].Time.N, Seed: 1, Arms: arms}
	v.Judge()
	return v
}

func variations() map[string]experiment.Variation {
	differs := variation(
		arm("as-is", "not placed", "", 1.31, 1.62, 1.29, 1.58, 1.33, 1.61, 1.30, 1.55, 1.34, 1.60),
		arm("node-0", "CPUs and memory of node 0", "--nodes 0 --policy bind", 1.281, 1.279, 1.284, 1.280, 1.278, 1.282, 1.283, 1.279, 1.281, 1.280),
		arm("node-1", "CPUs and memory of node 1", "--nodes 1 --policy bind", 1.282, 1.280, 1.283, 1.281, 1.279, 1.281, 1.284, 1.278, 1.280, 1.282),
		arm("interleave", "memory around nodes 0-1, any CPU", "--nodes 0-1 --policy interleave", 1.45, 1.47, 1.44, 1.46, 1.45, 1.48, 1.46, 1.44, 1.47, 1.45))
	noise := variation(
		arm("as-is", "not placed", "", 0.0512, 0.0530, 0.0505, 0.0541, 0.0520, 0.0516),
		arm("node-0", "CPUs and memory of node 0", "--nodes 0 --policy bind", 0.0515, 0.0528, 0.0507, 0.0539, 0.0521, 0.0511))
	few := variation(
		arm("as-is", "not placed", "", 123.4, 140.2, 125.6),
		arm("node-0", "CPUs and memory of node 0", "--nodes 0 --policy bind", 120.1, 120.4, 120.9))
	for i := range few.Arms {
		few.Arms[i].User, few.Arms[i].System = unit.None[float64](), unit.None[float64]()
	}
	few.How, few.Clock = unit.HowModelled, "model clock of the lab, 50 cycles a µs"
	hostile := variation(arm("as-is", "not \x1b[31mplaced", "", 0.5, 0.6), arm("a|b\n", "x\u202ey", "--nodes $(reboot)", 0.5, 0.6))
	hostile.Command = []string{"sh", "-c", "echo '\x1b]0;EVIL\a'; rm -rf \"$HOME\""}
	hostile.Notes = []string{"a note \x1b[2J with <b>markup</b>"}
	hostile.Judge()
	single := variation(arm("as-is", "not placed", "", 0.002, 0.003, 0.002))
	single.Notes = []string{"This machine has one node: there is nothing to place, and only as-is was measured."}
	return map[string]experiment.Variation{"differs": differs, "noise": noise, "few": few, "hostile": hostile, "single": single}
}

func TestDecisionVariationGolden(t *testing.T) {
	for name, v := range variations() {
		var text, markdown bytes.Buffer
		if err := Variation(&text, v, render.TextOptions{Width: 120, UTF8: true}); err != nil {
			t.Fatal(err)
		}
		if err := VariationMarkdown(&markdown, v); err != nil {
			t.Fatal(err)
		}
		checkVariation(t, name+".txt", text.String())
		checkVariation(t, name+".md", markdown.String())
	}
}

func checkVariation(t *testing.T, name, got string) {
	t.Helper()
	golden.Check(t, filepath.Join("testdata", "variation", name+".golden"), got)
}

// No control sequence gets through, and the line to be pasted is one line of quoted
// words.
func TestDecisionIsClean(t *testing.T) {
	v := variations()["hostile"]
	for _, face := range []func(*bytes.Buffer) error{
		func(b *bytes.Buffer) error { return Variation(b, v, render.TextOptions{Width: 80, UTF8: true}) },
		func(b *bytes.Buffer) error { return VariationMarkdown(b, v) },
	} {
		var b bytes.Buffer
		if err := face(&b); err != nil {
			t.Fatal(err)
		}
		for _, r := range b.String() {
			if r < ' ' && r != '\n' || r == '\u202e' || r == '\x7f' {
				t.Errorf("%q in\n%s", r, b.String())
			}
		}
		if !strings.Contains(b.String(), `homenode run --nodes '$(reboot)' -- sh -c $'echo \'\x1b]0;EVIL\x07`) {
			t.Errorf("no quoted line in\n%s", b.String())
		}
	}
}

func TestDecisionWithoutRuns(t *testing.T) {
	var b bytes.Buffer
	if err := Variation(&b, experiment.Variation{Arms: []experiment.Placed{{Name: "as-is"}}}, render.TextOptions{Width: 20}); err != nil || !utf8.Valid(b.Bytes()) || !strings.Contains(b.String(), "no runs to judge by") {
		t.Errorf("%v\n%s", err, b.String())
	}
	if err := VariationMarkdown(&b, experiment.Variation{}); err != nil {
		t.Error(err)
	}
}
