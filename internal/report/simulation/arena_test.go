// SPDX-License-Identifier: Apache-2.0

package simulation

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

func checkArena(t *testing.T, name, got string) {
	t.Helper()
	golden.Check(t, filepath.Join("testdata", "arena", name+".golden"), got)
}

func arenaText(t *testing.T, r arena.Result, o render.TextOptions) string {
	t.Helper()
	var b gobytes.Buffer
	if err := Arena(&b, r, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func arenaHTML(t *testing.T, r arena.Result) string {
	t.Helper()
	var b gobytes.Buffer
	if err := ArenaHTML(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// arenaFixtures are what every output must handle.
func arenaFixtures() map[string]arena.Result {
	rows := arenaFixture()
	rows.Cells, rows.Machines, rows.Mixes, rows.Policies, rows.Seeds, rows.Against = nil, nil, nil, nil, nil, ""
	return map[string]arena.Result{
		"full": arenaFixture(), "hostile": hostileArena(), "few": few(), "starved": starved(), "rows-only": rows, "nothing": {Schema: 1, How: arena.How},
	}
}

func TestDecisionArenaText(t *testing.T) {
	checkArena(t, "full-100.txt", arenaText(t, arenaFixture(), render.TextOptions{Width: 100, UTF8: true}))
	checkArena(t, "few-80-ascii.txt", arenaText(t, few(), render.TextOptions{}))
	checkArena(t, "hostile-80.txt", arenaText(t, hostileArena(), render.TextOptions{UTF8: true}))
}

func TestDecisionArenaHTML(t *testing.T) { checkArena(t, "full.html", arenaHTML(t, arenaFixture())) }

// No line is wider than the terminal, and no name reaches it as a control sequence.
func TestTextFits(t *testing.T) {
	for name, r := range arenaFixtures() {
		for _, width := range []int{60, 80, 100, 140} {
			for line := range strings.Lines(arenaText(t, r, render.TextOptions{Width: width, UTF8: true})) {
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
	for name, r := range arenaFixtures() {
		page := arenaHTML(t, r)
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
	r := arenaFixture()
	r.How = "measured"
	for _, err := range []error{Arena(io.Discard, r, render.TextOptions{}), ArenaHTML(io.Discard, r)} {
		if err == nil || !strings.Contains(err.Error(), "measured") {
			t.Errorf("%v", err)
		}
	}
}

func TestCleanLeavesTheCallersArena(t *testing.T) {
	r := hostileArena()
	if _, err := newArenaView(r); err != nil || r.Policies[0].Name != evil || r.Cells[0].Machine != evil {
		t.Errorf("%v; the caller's result was changed", err)
	}
}

func TestDecisionArenaFullDisk(t *testing.T) {
	for _, err := range []error{Arena(full{}, arenaFixture(), render.TextOptions{}), ArenaHTML(full{}, arenaFixture())} {
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

// TestArenaPictures writes pages for a person to look at: PICTURES=folder.
func TestArenaPictures(t *testing.T) {
	dir := os.Getenv("PICTURES")
	if dir == "" {
		t.Skip("PICTURES names no folder")
	}
	for name, r := range arenaFixtures() {
		if err := os.WriteFile(filepath.Join(dir, name+".html"), []byte(arenaHTML(t, r)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// A mix that fitted no machine is in no figure, and is not counted.
func TestMixesThatWereTried(t *testing.T) {
	r := arenaFixture()
	r.Mixes = append(r.Mixes, arena.Named{Name: "too-large", About: "It fits nowhere."})
	var text, page gobytes.Buffer
	if err := errors.Join(Arena(&text, r, render.TextOptions{Width: 120}), ArenaHTML(&page, r)); err != nil {
		t.Fatal(err)
	}
	for _, said := range []string{text.String(), page.String()} {
		if !strings.Contains(said, "under 2 mixes") || strings.Contains(said, "too-large") {
			t.Errorf("%.600s", said)
		}
	}
}
