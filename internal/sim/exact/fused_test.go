// SPDX-License-Identifier: Apache-2.0

package exact

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// fused are arm64's instructions that round x*y + z once. On amd64 Go rounds twice:
// one of them in a world, and the same seed is another world there.
var fused = regexp.MustCompile(`\tFN?M(ADD|SUB)[SD]\t`)

// simulation is what the bits of a world come from, with the policies and state
// machines that it runs: all that the rooms below sim/ import is listed, too.
const (
	simulation = "homenode/internal/sim/..."
	listed     = "homenode/internal/..."
)

// What is compiled for arm64 has no fused instruction in it. The compiler's listing
// comes from the build cache, too, so this costs a compilation once.
func TestNothingIsFused(t *testing.T) {
	list := exec.Command("go", "build", "-gcflags="+listed+"=-S", simulation)
	list.Env = append(os.Environ(), "GOARCH=arm64", "GOOS=linux", "CGO_ENABLED=0")
	out, err := list.CombinedOutput()
	if err != nil {
		t.Fatalf("compile for arm64: %v\n%.2000s", err, out)
	}
	listing := string(out)
	if !strings.Contains(listing, "exact.Exp STEXT") || !strings.Contains(listing, "\tFMULD\t") {
		t.Fatalf("no listing of the functions in %d bytes: the test compares nothing", len(out))
	}
	shown := 0
	for line := range strings.Lines(listing) {
		if fused.MatchString(line) && shown < 20 {
			shown++
			t.Errorf("%s: write the product as float64(x*y)", strings.TrimSpace(line))
		}
	}
}
