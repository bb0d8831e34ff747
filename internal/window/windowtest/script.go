// SPDX-License-Identifier: Apache-2.0

package windowtest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Script is what a room's test does with the lines that Host does not know.
type Script interface {
	// Line handles one line and returns what to print, without blank lines.
	Line(h *Host, words []string) (string, error)
}

// Run plays every script that matches, each in a subtest. The output of a line stands
// below it, after "----", up to a blank line. With update it is written, otherwise
// compared.
func Run(t *testing.T, pattern string, update bool, start func() Script) {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scenario matches %s: %v", pattern, err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got, err := play(string(want), start())
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			if update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != string(want) {
				t.Errorf("%s: the answers changed (go test -update shows how):\n%s", path, firstDifference(string(want), got))
			}
		})
	}
}

func play(text string, s Script) (string, error) {
	h := &Host{}
	var out strings.Builder
	skipping, answered := false, false
	for i, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		if skipping = skipping && line != "" || line == "----"; skipping {
			continue
		}
		if answered && line != "" {
			out.WriteString("\n") // ends an answer that the script did not leave room for
		}
		answered = false
		out.WriteString(line + "\n")
		if strings.TrimSpace(line) == "" || line[0] == '#' {
			continue
		}
		answer, err := step(h, s, line)
		if err != nil {
			return "", fmt.Errorf("line %d %q: %w", i+1, line, err)
		}
		if answer != "" {
			out.WriteString("----\n" + strings.TrimRight(answer, "\n") + "\n")
			answered = true
		}
	}
	return out.String(), nil
}

func step(h *Host, s Script, line string) (string, error) {
	if ours, err := h.Line(line); ours || err != nil {
		return "", err
	}
	return s.Line(h, Words(line))
}

func firstDifference(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range a {
		if i >= len(b) {
			return fmt.Sprintf("line %d: want %q, got nothing", i+1, a[i])
		}
		if a[i] != b[i] {
			return fmt.Sprintf("line %d:\nwant %s\ngot  %s", i+1, a[i], b[i])
		}
	}
	return fmt.Sprintf("more lines: %q", b[min(len(a), len(b)):])
}

// Configure decodes "KEY=VALUE" words over a config; a value that is not JSON is taken as
// a string.
func Configure(cfg any, words []string) error {
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		if !json.Valid([]byte(value)) {
			value = fmt.Sprintf("%q", value)
		}
		d := json.NewDecoder(strings.NewReader(fmt.Sprintf("{%q:%s}", key, value)))
		d.DisallowUnknownFields()
		if err := d.Decode(cfg); err != nil {
			return err
		}
	}
	return nil
}
