// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"homenode/internal/cli/clitest"
	"homenode/internal/exit"
)

// What cannot be deployed is refused with a sentence, and nothing is made.
func TestDeployRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config := clitest.WriteFile(t, filepath.Join(dir, "agent.yaml"), "state_dir: "+filepath.Join(dir, "state")+"\nservices:\n  - {name: shop, match: /no-such-cgroup/*}\n  - {name: bound, match: /x, approved: true}\n")
	for _, c := range []struct {
		want string
		args []string
	}{
		{"--metric is missing", []string{"start", "shop"}},
		{"no workload of this host", []string{"start", "shop", "--metric", "ipc", "--no-spinning"}},
		{"no workload of this host", []string{"plan", "shop", "--metric", "ipc", "--no-spinning"}},
		{"has no service \"shops\"", []string{"plan", "shops", "--metric", "ipc"}},
		{"approves \"bound\"", []string{"start", "bound", "--metric", "ipc"}},
		{"--metric is empty", []string{"start", "shop", "--metric", ""}},
		{"--nodes is empty", []string{"start", "shop", "--nodes", ""}},
		{"a multiple of 4", []string{"start", "shop", "--metric", "ipc", "--no-spinning", "--repeats", "6"}},
		{"a service of the configuration", []string{"start"}},
		{"no deployment of \"shop\"", []string{"status", "shop"}},
		{"no deployment of \"shop\"", []string{"rollback", "shop"}},
		{"no such file", []string{"rollback", "shop", "--webhook-file", "/none"}},
		{"name its file with --webhook-file", []string{"rollback", "shop", "--message", "x"}},
		{"no deployment of \"shop\"", []string{"forget", "shop"}},
		{"want text, json or yaml", []string{"status", "-o", "xml"}},
	} {
		code, out, errs := runWith(append(append([]string{"deploy"}, c.args...), "--config", config)...)
		if code != exit.Bad || !strings.Contains(out+errs, c.want) {
			t.Errorf("%q: exit code %d, want %q:\n%s%s", c.args, code, c.want, out, errs)
		}
	}
	if code, out, errs := runWith("deploy", "status", "--config", config); code != 0 || !strings.Contains(out, "There are no deployments") {
		t.Errorf("%d %s%s", code, out, errs)
	}
	if code, out, errs := runWith("deploy", "status", "--config", config, "-o", "json"); code != 0 || !strings.Contains(out, `"deployments":[]`) {
		t.Errorf("%d %s%s", code, out, errs)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "state", "*")); len(left) > 0 {
		t.Errorf("%q was made", left)
	}
}
