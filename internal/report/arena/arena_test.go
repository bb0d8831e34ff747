// SPDX-License-Identifier: Apache-2.0

package arena

import (
	gobytes "bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"homenode/internal/golden"
	"homenode/internal/render"
	"homenode/internal/sim/arena"
)

func check(t *testing.T, name, got string) {
	t.Helper()
	golden.Check(t, filepath.Join("testdata", name+".golden"), got)
}

func text(t *testing.T, r arena.Result, o render.TextOptions) string {
	t.Helper()
	var b gobytes.Buffer
	if err := Text(&b, r, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func html(t *testing.T, r arena.Result) string {
	t.Helper()
	var b gobytes.Buffer
	if err := HTML(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// fixtures are what every output must handle.
func fixtures() map[string]arena.Result {
	rows := fixture()
	rows.Cells, rows.Machines, rows.Mixes, rows.Policies, rows.Seeds, rows.Against = nil, nil, nil, nil, nil, ""
	return map[string]arena.Result{
		"full": fixture(), "hostile": hostile(), "few": few(), "starved": starved(), "rows-only": rows, "nothing": {Schema: 1, How: arena.How},
	}
}

func TestDecisionText(t *testing.T) {
	check(t, "full-100.txt", text(t, fixture(), render.TextOptions{Width: 100, UTF8: true}))
	check(t, "few-80-ascii.txt", text(t, few(), render.TextOptions{}))
	check(t, "hostile-80.txt", text(t, hostile(), render.TextOptions{UTF8: true}))
}

func TestDecisionHTML(t *testing.T) { check(t, "full.html", html(t, fixture())) }

// No line is wider than the terminal, and no name reaches it as a control sequence.
func TestTextFits(t *testing.T) {
	for name, r := range fixtures() {
		for _, width := range []int{60, 80, 100, 140} {
			for line := range strings.Lines(text(t, r, render.TextOptions{Width: width, UTF8: true})) {
				line = strings.TrimSuffix(line, "\n")
				if render.Width(line) > width {
					t.Errorf("%s at %d: %d columns: %q", name, width, render.Width(line), line)
				}
				if strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) {
					t.Errorf("%s: %q", name, line)
				}
			}
		}
	}
}

// The page is well-formed and self-contained, and says that it is modelled; no part of a
// name is markup.
func TestPageIsWellFormed(t *testing.T) {
	for name, r := range fixtures() {
		page := html(t, r)
		d := xml.NewDecoder(strings.NewReader(strings.TrimPrefix(page, "<!DOCTYPE html>\n")))
		d.Entity = xml.HTMLEntity
		for {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			start, ok := token.(xml.StartElement)
			if !ok {
				continue
			}
			if start.Name.Local == "script" || start.Name.Local == "link" || start.Name.Local == "img" {
				t.Errorf("%s: a <%s>", name, start.Name.Local)
			}
			for _, a := range start.Attr {
				if (a.Name.Local == "src" || a.Name.Local == "href") && a.Value != "" {
					t.Errorf("%s: %s=%q", name, a.Name.Local, a.Value)
				}
			}
		}
		if !strings.Contains(page, "modelled") || strings.Contains(page, "\x1b") || strings.Contains(page, "\u202e") || strings.Contains(page, "NaN") || strings.Contains(page, "Inf") {
			t.Errorf("%s: not clean, or it does not say that it is modelled", name)
		}
	}
}

func TestDecisionRefusesWhatIsNotModelled(t *testing.T) {
	r := fixture()
	r.How = "measured"
	for _, err := range []error{Text(io.Discard, r, render.TextOptions{}), HTML(io.Discard, r)} {
		if err == nil || !strings.Contains(err.Error(), "measured") {
			t.Errorf("%v", err)
		}
	}
}

func TestCleanLeavesTheCallers(t *testing.T) {
	r := hostile()
	if _, err := newView(r); err != nil || r.Policies[0].Name != evil || r.Cells[0].Machine != evil {
		t.Errorf("%v; the caller's result was changed", err)
	}
}

var errFull = errors.New("full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestDecisionFullDisk(t *testing.T) {
	for _, err := range []error{Text(full{}, fixture(), render.TextOptions{}), HTML(full{}, fixture())} {
		if !errors.Is(err, errFull) {
			t.Errorf("a full disk: %v", err)
		}
	}
}

func TestHeat(t *testing.T) {
	for speed, want := range map[float64]string{1: "even", 1.5: "up4", 0: "down5", 50: "up5", 0.97: "down2"} {
		if got := heat(speed); got != want {
			t.Errorf("%v: %q, want %q", speed, got, want)
		}
	}
}

// TestPictures writes pages for a person to look at: PICTURES=folder.
func TestPictures(t *testing.T) {
	dir := os.Getenv("PICTURES")
	if dir == "" {
		t.Skip("PICTURES names no folder")
	}
	for name, r := range fixtures() {
		if err := os.WriteFile(filepath.Join(dir, name+".html"), []byte(html(t, r)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// A mix that fitted no machine is in no figure, and is not counted.
func TestMixesThatWereTried(t *testing.T) {
	r := fixture()
	r.Mixes = append(r.Mixes, arena.Named{Name: "too-large", About: "It fits nowhere."})
	var text, page gobytes.Buffer
	if err := errors.Join(Text(&text, r, render.TextOptions{Width: 120}), HTML(&page, r)); err != nil {
		t.Fatal(err)
	}
	for _, said := range []string{text.String(), page.String()} {
		if !strings.Contains(said, "under 2 mixes") || strings.Contains(said, "too-large") {
			t.Errorf("%.600s", said)
		}
	}
}
