// SPDX-License-Identifier: Apache-2.0

package golden

import (
	"flag"
	"os"
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
	if err != nil || string(want) != string(got) {
		t.Errorf("%s differs (%v); 'go test -update' writes it. Got:\n%s", path, err, got)
	}
}
