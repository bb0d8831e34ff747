// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"homenode/internal/doctor"
	"homenode/internal/golden"
	"homenode/internal/render"
	"homenode/internal/snapshot"
)

// The snapshots are those of the doctor's tests.
func saved(t *testing.T, name string) doctor.Report {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "doctor", "testdata", name+".snapshot.json"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := snapshot.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	return doctor.Examine(s, doctor.DefaultConfig())
}

func findingsText(w io.Writer, r doctor.Report) error {
	return Findings(w, r, render.TextOptions{UTF8: true})
}

func TestFindingsGolden(t *testing.T) {
	for _, name := range []string{"first-touch", "guest", "hostile"} {
		for ext, face := range map[string]func(io.Writer, doctor.Report) error{"txt": findingsText, "md": FindingsMarkdown} {
			var out bytes.Buffer
			if err := face(&out, saved(t, name)); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", "findings", name+"."+ext+".golden")
			golden.Check(t, file, out.Bytes())
			if ext == "txt" {
				checkText(t, name, out.String())
			}
		}
	}
}

// The first line is the verdict, lines are short unless they are commands, and no
// control sequence gets through.
func checkText(t *testing.T, name, text string) {
	t.Helper()
	if !strings.HasPrefix(text, "Is NUMA this machine's bottleneck? ") {
		t.Errorf("%s begins with %.60s", name, text)
	}
	for _, line := range strings.Split(text, "\n") {
		if render.Width(line) > findingsWidth && !strings.HasPrefix(line, "   $ ") && !strings.Contains(line, "sum over workloads") {
			t.Errorf("%s: %d columns: %s", name, render.Width(line), line)
		}
		if strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%s: %q", name, line)
		}
	}
}

// Commands are shown whole and unchanged.
func TestCommandsWhole(t *testing.T) {
	r := saved(t, "hostile")
	var out bytes.Buffer
	if err := findingsText(&out, r); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range r.Findings {
		for _, c := range f.Commands {
			n++
			if !strings.Contains(out.String(), "   $ "+c+"\n") {
				t.Errorf("not shown unchanged: %s", c)
			}
		}
	}
	if n == 0 {
		t.Error("no command was compared")
	}
}

func TestFindingsEmpty(t *testing.T) {
	for _, face := range []func(io.Writer, doctor.Report) error{findingsText, FindingsMarkdown} {
		var out bytes.Buffer
		if err := face(&out, doctor.Examine(snapshot.Snapshot{}, doctor.DefaultConfig())); err != nil || !strings.Contains(out.String(), "cannot tell") {
			t.Errorf("%v: %s", err, out.String())
		}
	}
}

// What could not be read comes last, clean, and not by the thousand.
func TestFindingsProblems(t *testing.T) {
	s := snapshot.Snapshot{Problems: []string{"of 200 processes, 150 could not be looked into\x1b[2J"}}
	for range 1000 {
		s.Problems = append(s.Problems, "read <b>")
	}
	for ext, face := range map[string]func(io.Writer, doctor.Report) error{"txt": findingsText, "md": FindingsMarkdown} {
		var out bytes.Buffer
		if err := face(&out, doctor.Examine(s, doctor.DefaultConfig())); err != nil {
			t.Fatal(err)
		}
		_, last, ok := strings.Cut(out.String(), "Could not be read:\n")
		if !ok || !strings.Contains(last, "150 could not be looked into") || !strings.HasSuffix(last, "and 981 more\n") || strings.Contains(last, "\x1b") || ext == "md" && strings.Contains(last, "<b>") {
			t.Errorf("%s: %s", ext, out.String())
		}
	}
}
