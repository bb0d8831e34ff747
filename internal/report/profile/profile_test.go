// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"homenode/internal/golden"
	"homenode/internal/profile"
	"homenode/internal/render"
	"homenode/internal/unit"
)

func checkGolden(t *testing.T, name, got string) {
	t.Helper()
	golden.Check(t, filepath.Join("testdata", name+".golden"), got)
}

func text(t *testing.T, p profile.Profile, o render.TextOptions) string {
	t.Helper()
	var b bytes.Buffer
	if err := Text(&b, p, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var fixtures = map[string]func() profile.Profile{
	"ring": func() profile.Profile { return fake(4) }, "hostile": hostile, "few": few, "empty": func() profile.Profile { return profile.Profile{} },
}

func TestDecisionText(t *testing.T) {
	for _, c := range []struct {
		name string
		p    profile.Profile
		o    render.TextOptions
	}{
		{"ring-80", fake(4), render.TextOptions{UTF8: true}},
		{"ring-80-ascii", fake(4), render.TextOptions{Width: 80}},
		{"hostile-80", hostile(), render.TextOptions{UTF8: true}},
		{"few-80", few(), render.TextOptions{UTF8: true}},
	} {
		checkGolden(t, c.name+".txt", text(t, c.p, c.o))
	}
}

// No line is wider than the terminal, no control sequence gets through, and ASCII is
// ASCII.
func TestDecisionTextFits(t *testing.T) {
	for name, make := range fixtures {
		for _, width := range []int{60, 80, 132} {
			for _, utf8 := range []bool{true, false} {
				for line := range strings.Lines(text(t, make(), render.TextOptions{Width: width, UTF8: utf8})) {
					line = strings.TrimSuffix(line, "\n")
					bad := func(r rune) bool { return !unicode.IsPrint(r) || !utf8 && r > '~' }
					if render.Width(line) > width || strings.IndexFunc(line, bad) >= 0 {
						t.Errorf("%s at %d: %d columns: %q", name, width, render.Width(line), line)
					}
				}
			}
		}
	}
}

// An unknown figure is printed as unknown, with the reason, and never as 0.
func TestDecisionUnknown(t *testing.T) {
	out := strings.Join(strings.Fields(text(t, fake(4), render.TextOptions{UTF8: true})), " ")
	for _, want := range []string{
		"modelled (lab)", "Caution: This is a virtual machine", "unknown: not enough free memory on node 0: 64 MiB are needed, 12 MiB are free: 1 → 0",
		"not measured: the time budget of 5m0s was used up", "unknown: the kernel knows no weighted-interleave (6.9 has it): weighted-interleave 0-3 (read)",
		"unknown: the latency rises without a step: size of L3", "188.0 ±8%", "10^9",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q", want)
		}
	}
	if i, j := strings.Index(out, "Caution"), strings.Index(out, "LATENCY"); i < 0 || i > j {
		t.Error("the caveats do not come first")
	}
	if sparse := text(t, few(), render.TextOptions{}); !strings.Contains(sparse, "unknown CPU model: measured") || !strings.Contains(sparse, "not measured: there is one node only") {
		t.Error(sparse)
	}
}

// faces are all that make markup.
var faces = map[string]func(io.Writer, profile.Profile) error{
	"page":    HTML,
	"latency": func(w io.Writer, p profile.Profile) error { return HeatMap(w, p, profile.Latency) },
	"bandwidth": func(w io.Writer, p profile.Profile) error {
		return HeatMap(w, p, profile.Bandwidth)
	},
	"curve": Curve, "working-set": WorkingSet, "rao": Rao,
}

func TestDecisionMarkupIsWellFormedAndSelfContained(t *testing.T) {
	remote := regexp.MustCompile(`(?i)url\([^#]|@import|https?:|src=|href=|<link|<script|<iframe|<img|ZgotmplZ| on[a-z]+="|"(?-i:NaN|[-+]Inf)`)
	checked := 0
	for name, make := range fixtures {
		for face, write := range faces {
			var b bytes.Buffer
			if err := write(&b, make()); err != nil {
				if name == "ring" || name == "hostile" {
					t.Errorf("%s: %s: %v", name, face, err)
				}
				continue
			}
			checked++
			bare := strings.ReplaceAll(b.String(), `xmlns="http://www.w3.org/2000/svg"`, "")
			if found := remote.FindString(bare); found != "" {
				t.Errorf("%s: %s has %q", name, face, found)
			}
			wellFormed(t, name+": "+face, b.String())
		}
	}
	if checked < 14 {
		t.Errorf("%d pictures only", checked)
	}
}

func wellFormed(t *testing.T, name, text string) {
	t.Helper()
	ids, refs := map[string]int{}, []string{}
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Errorf("%s is not well-formed: %v", name, err)
			return
		}
		e, ok := token.(xml.StartElement)
		for _, a := range e.Attr {
			if ok && a.Name.Local == "id" {
				ids[a.Value]++
			}
			if ok && a.Name.Local == "aria-labelledby" {
				refs = append(refs, strings.Fields(a.Value)...)
			}
		}
	}
	for id, n := range ids {
		if n > 1 {
			t.Errorf("%s: id %q appears %d times", name, id, n)
		}
	}
	for _, ref := range refs {
		if ids[ref] == 0 {
			t.Errorf("%s: nothing has the id %q", name, ref)
		}
	}
}

// Every known figure of the matrices is in text, picture and page.
func TestParityFaces(t *testing.T) {
	p := fake(4)
	out := map[string]string{"text": text(t, p, render.TextOptions{UTF8: true, Width: 200})}
	for face, write := range faces {
		var b bytes.Buffer
		if err := write(&b, p); err != nil {
			t.Fatal(err)
		}
		out[face] = b.String()
	}
	for _, f := range p.Latency {
		if v, ok := f.Median.Get(); ok {
			for _, face := range []string{"text", "latency", "page"} {
				if !strings.Contains(out[face], render.Tenths(v)) {
					t.Errorf("%s lacks %s", face, render.Tenths(v))
				}
			}
		}
	}
	for _, f := range profile.RaoFindings(p.Rao, llcOf(p)) {
		for _, face := range []string{"text", "page"} {
			words := strings.Join(strings.Fields(out[face]), " ")
			if !strings.Contains(words, f.Statement) || !strings.Contains(words, f.Evidence) {
				t.Errorf("%s lacks %q: %q", face, f.Statement, f.Evidence)
			}
		}
	}
}

// A part without figures has no picture, but an error with the reason.
func TestDecisionNothingToDraw(t *testing.T) {
	for face, want := range map[string]string{"rao": "one node only", "curve": "the profile has none", "bandwidth": "has none"} {
		if err := faces[face](io.Discard, few()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", face, err, want)
		}
	}
	for _, face := range []func(io.Writer, profile.Profile) error{HTML, Curve, func(w io.Writer, p profile.Profile) error { return Text(w, p, render.TextOptions{}) }} {
		if err := face(full{}, fake(4)); !errors.Is(err, errFull) {
			t.Errorf("a full disk: %v", err)
		}
	}
}

var errFull = errors.New("full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

// Heat maps are legible from 2 to 16 nodes: no number is wider than its cell.
func TestDecisionHeatMapFits(t *testing.T) {
	for n := 2; n <= 16; n++ {
		p := fake(n)
		p.Latency[0].Figure = fig(12345.6, 0)
		h := heatMap{matrix: newMatrix(p, p.Latency), print: render.Tenths}
		h.scale()
		for _, f := range h.at {
			if v, ok := f.Median.Get(); ok && render.TextWidth(render.Tenths(v), 12) > h.w {
				t.Errorf("%d nodes: %s is wider than %v", n, render.Tenths(v), h.w)
			}
		}
		if len(h.from) != n-1 || len(h.to) != n {
			t.Errorf("%d nodes: %d × %d", n, len(h.from), len(h.to))
		}
	}
}

func TestCleanLeavesTheCallers(t *testing.T) {
	p := hostile()
	before := p.Caveats[0].Text
	if got := render.Cleaned(p); strings.ContainsRune(got.Caveats[0].Text, '\x1b') || got.Latency[0].Median != p.Latency[0].Median || got.Latency[0].Cycles != p.Latency[0].Cycles {
		t.Errorf("%q, %v", got.Caveats[0].Text, got.Latency[0])
	}
	if p.Caveats[0].Text != before {
		t.Error("the caller's profile was changed")
	}
}

func TestFormat(t *testing.T) {
	if got := show(profile.Figure{Median: unit.Some(0.0), N: 3}, render.Number); got != "0" {
		t.Error(got)
	}
	if got := show(profile.Figure{}, render.Number); got != unknown {
		t.Error(got)
	}
}

// TestPictures writes pictures for a person to look at: PICTURES=folder.
func TestPictures(t *testing.T) {
	dir := os.Getenv("PICTURES")
	if dir == "" {
		t.Skip("PICTURES names no folder")
	}
	for name, make := range map[string]func() profile.Profile{"ring": fixtures["ring"], "hostile": hostile, "sixteen": func() profile.Profile { return fake(16) }, "two": func() profile.Profile { return fake(3) }, "few": few} {
		for face, write := range faces {
			var b bytes.Buffer
			end := ".svg"
			if face == "page" {
				end = ".html"
			}
			if err := write(&b, make()); err != nil {
				t.Log(name, face, err)
				continue
			}
			if err := os.WriteFile(filepath.Join(dir, name+"-"+face+end), b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Three digits for every rate; one unit for all of a table.
func TestRates(t *testing.T) {
	for _, c := range []struct {
		rates []float64
		want  string
	}{
		{[]float64{21.3e9, 6.1e9, 51.2e6}, "GB/s: 21.3 6.10 0.0512"}, {[]float64{55146136, 5.2e6, 512e3, 0}, "MB/s: 55.1 5.20 0.512 0"},
		{[]float64{999.9e6, 1234567}, "MB/s: 1,000 1.23"}, {[]float64{1e9}, "GB/s: 1.00"}, {nil, "GB/s:"},
	} {
		var all []profile.Figure
		for _, v := range c.rates {
			all = append(all, fig(v, 0))
		}
		r := ratesOf(all...)
		text := r.unit + ":"
		for _, v := range c.rates {
			text += " " + r.print(v)
		}
		if text != c.want {
			t.Errorf("%v: %s, want %s", c.rates, text, c.want)
		}
	}
	if u := ratesOf(gone("")).unit; u != "GB/s" {
		t.Error("nothing is known: ", u)
	}
}
