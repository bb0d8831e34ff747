// SPDX-License-Identifier: Apache-2.0

package golden

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Update says that files are to be written, not compared.
func Update() bool { return *update }

// Check compares got with a file, or writes it.
func Check[T string | []byte](t testing.TB, path string, got T) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Errorf("read golden file: %v; 'go test -update' writes it. Got:\n%s", err, got)
	} else if string(want) != string(got) {
		t.Errorf("%s differs; 'go test -update' writes it. %s", path, difference(string(want), string(got)))
	}
}

// shownLines is how many lines of each side a failure shows from the first difference on.
const shownLines = 8

// difference shows where two texts part, and what follows on each side.
func difference(want, got string) string {
	w, g := strings.SplitAfter(want, "\n"), strings.SplitAfter(got, "\n")
	n := 0
	for n < len(w) && n < len(g) && w[n] == g[n] {
		n++
	}
	return fmt.Sprintf("From line %d on\ngot:\n%s\nwant:\n%s", n+1, excerpt(g[n:]), excerpt(w[n:]))
}

func excerpt(lines []string) string {
	if len(lines) > shownLines {
		return strings.Join(lines[:shownLines], "") + fmt.Sprintf("… and %d lines more", len(lines)-shownLines)
	}
	return strings.Join(lines, "")
}
