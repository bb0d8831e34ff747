// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// benchFile is the file of results that a bench's variable names, and the number of
// repeats: 3 by default. Without the variable the test is skipped: it is a measurement,
// and the script runs it.
func benchFile(t *testing.T, variable, script string) (file string, repeats int) {
	t.Helper()
	if file = os.Getenv(variable); file == "" {
		t.Skipf("%s is not set to the file of results: this measures, and %s does", variable, script)
	}
	asked := os.Getenv("HOMENODE_BENCH_REPEATS")
	if asked == "" {
		return file, 3
	}
	repeats, err := strconv.Atoi(asked)
	if err != nil || repeats < 1 {
		t.Fatalf("HOMENODE_BENCH_REPEATS is %q: want a number of runs", asked)
	}
	return file, repeats
}

// benchOnly are those whose name contains HOMENODE_BENCH_ONLY: all, if that is empty.
func benchOnly[T any](t *testing.T, all []T, name func(T) string) []T {
	t.Helper()
	part := os.Getenv("HOMENODE_BENCH_ONLY")
	some := slices.DeleteFunc(slices.Clone(all), func(x T) bool { return !strings.Contains(name(x), part) })
	if len(some) == 0 {
		t.Fatalf("none of %d has %q in its name", len(all), part)
	}
	return some
}

// writeResults replaces the file of results.
func writeResults(t *testing.T, file string, results any) {
	t.Helper()
	data, err := json.MarshalIndent(results, "", " ")
	if err == nil {
		err = os.WriteFile(file, append(data, '\n'), 0o644)
	}
	if err != nil {
		t.Fatal("write results: ", err)
	}
}
