// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"homenode/internal/cli/clitest"
)

// What has no placement, or cannot be, is exit code 2, one line, and nothing on stdout.
func TestPlacementsBadInput(t *testing.T) {
	dir := t.TempDir()
	links := func(text string) string {
		return clitest.WriteFile(t, filepath.Join(dir, "links.yaml"), text)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "--vcpus is missing"},
		{[]string{"--vcpus", "0"}, "give a number above 0"},
		{[]string{"--vcpus", "11"}, "the nearest numbers that have one are 10 and 12"},
		{[]string{"--vcpus", "999"}, "the nearest number that has one is 16"},
		{[]string{"--vcpus", "4", "--devices", "toaster"}, `--devices "toaster": want one of network`},
		{[]string{"--vcpus", "4", "--links", filepath.Join(dir, "missing")}, "read table of links"},
		{[]string{"--vcpus", "4", "--links", links("nodes: [0, 1]\nmb_s: [[null, 1], [1, null]]")}, "no bandwidth from node 0 to node 2"},
		{[]string{"--vcpus", "4", "--links", "a", "--profile", "b"}, "give one of them"},
	} {
		code, stdout, stderr := runWith(append([]string{"placements", "--shape", "opteron"}, c.args...)...)
		if code != 2 || stdout != "" || !strings.Contains(stderr, c.want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%q: exit %d, %q, %q, want %q", c.args, code, stdout, stderr, c.want)
		}
	}
}

func TestPlacements(t *testing.T) {
	code, stdout, _ := runWith("placements", "--shape", "smt", "--vcpus", "4", "-o", "json")
	if code != 0 || !strings.Contains(stdout, `"exact": true`) {
		t.Errorf("exit %d: %s", code, stdout)
	}
	if code, stdout, _ = runWith("placements", "--shape", "smt", "--vcpus", "4", "--svg", "-"); code != 0 || !strings.HasPrefix(stdout, "<svg") || strings.Contains(stdout, "important placements of 4 vCPUs on") {
		t.Errorf("exit %d: %.200s", code, stdout)
	}
}
