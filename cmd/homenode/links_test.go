// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The program that an operator installs has no lab, no simulator and no data sets in
// it. The lab's model is an exception: inside the lab it gives the times of
// measurements.
func TestOperatorLinksNoLab(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	all := strings.Fields(string(out))
	if !slices.Contains(all, "homenode/internal/agent") {
		t.Fatalf("%d packages, and no agent: nothing was compared", len(all))
	}
	for _, p := range all {
		ours := strings.TrimPrefix(p, "homenode/internal/")
		lab := ours == "lab" || strings.HasPrefix(ours, "lab/") && ours != "lab/model"
		sim := ours == "sim" || strings.HasPrefix(ours, "sim/") || ours == "report/simulation"
		if lab || sim || strings.Contains(p, "parquet") {
			t.Errorf("homenode links %s", p)
		}
	}
}

// Built as by 'make build'.
func TestOperatorIsSmall(t *testing.T) {
	const most = 32_000_000
	exe := filepath.Join(t.TempDir(), "homenode")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", exe, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v: %s", err, out)
	}
	info, err := os.Stat(exe)
	if err != nil || info.Size() > most {
		t.Errorf("%v: homenode has %d bytes, want at most %d", err, info.Size(), most)
	}
}
