// SPDX-License-Identifier: Apache-2.0

package unix

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Lines come whole, with any buffer size; a last one without its newline is an error
// that shows it.
func TestLines(t *testing.T) {
	long := strings.Repeat("x", 40<<10)
	for _, c := range []struct {
		text string
		want int
		err  string
	}{{"", 0, ""}, {"a\nb\n", 2, ""}, {"\n\n", 2, ""}, {long + "\nb\n", 2, ""}, {"a\nb", 1, `parse file: line 2 "b"`}, {strings.Repeat("line\n", 20000), 20000, ""}} {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		var got []string
		err := new(Buffer).Lines(path, "file", nil, func(n int, line []byte) error {
			if n != len(got)+1 {
				return fmt.Errorf("line %d after %d", n, len(got))
			}
			got = append(got, string(line))
			return nil
		})
		if len(got) != c.want || (err == nil) != (c.err == "") || err != nil && (!errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%.20q: %d lines, %v", c.text, len(got), err)
		}
		if whole := strings.Join(got, "\n"); c.err == "" && whole != strings.TrimSuffix(c.text, "\n") {
			t.Errorf("%.20q came back as %.20q", c.text, whole)
		}
	}
}

func TestLinesStops(t *testing.T) {
	stop := errors.New("enough")
	if err := new(Buffer).Lines("/proc/self/status", "status", nil, func(int, []byte) error { return stop }); err != stop {
		t.Errorf("got %v", err)
	}
	if err := new(Buffer).Lines("/proc/self/none", "none", nil, nil); Classify(err) != ErrGone {
		t.Errorf("no file: %v", err)
	}
	if line, err := new(Buffer).Line("/proc/self/comm"); err != nil || len(line) == 0 || strings.Contains(string(line), "\n") {
		t.Errorf("comm: %q, %v", line, err)
	}
}
