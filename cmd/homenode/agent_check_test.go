// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"homenode/internal/agent"
	"homenode/internal/cli/clitest"
	"homenode/internal/exit"
)

// A bad configuration is exit code 2 and a sentence for each mistake, in each output.
func TestAgentCheck(t *testing.T) {
	dir := t.TempDir()
	good := clitest.WriteFile(t, filepath.Join(dir, "good.yaml"), "period: 10s\ncgroups: [\"/services/*\"]\nservices:\n  - name: search\n    match: \"/services/search-*\"\n    approved: true\n")
	for text, want := range map[string]string{
		"period: 10\n": ":1:9: period: it is 10: want a duration with its unit, such as 90s, 1.5h or 0s: did you mean 10s?",
		"services:\n- approved: yes\n  name: a\n  match: /a\n": ":2:13: services[0].approved: it is \"yes\": want true or false: did you mean true?",
		"log:\n\tlevel: info\n":                                "indent with spaces, not with a tab",
		"period: 1s\nperiod: 2s\n":                             "\"period\" is already defined in line 1",
		"api: {group: nosuchgroup}\n":                          "the group \"nosuchgroup\" does not exist: make it",
		"api: {socket: /" + strings.Repeat("x", 200) + "}\n":   "want at most 101",
	} {
		t.Setenv("COLUMNS", "300")
		code, out, _ := clitest.Run(rootCommand(), "agent", "--check", "--config", clitest.WriteFile(t, filepath.Join(dir, "bad.yaml"), text))
		if code != exit.Bad || !strings.Contains(out, want) || !strings.Contains(out, "1 error: the agent would not start") {
			t.Errorf("%q: exit code %d:\n%s", text, code, out)
		}
	}
	code, out, errs := clitest.Run(rootCommand(), "agent", "--check", "--config", good, "-o", "json")
	var c agent.Check
	if err := json.Unmarshal([]byte(out), &c); code != exit.Done || err != nil || !c.OK() || c.Schema != 1 || len(c.Services) != 1 || c.Services[0].Workloads == nil {
		t.Errorf("exit code %d, %v: %s%s", code, err, out, errs)
	}
	for _, columns := range []string{"60", "20"} {
		t.Setenv("COLUMNS", columns)
		t.Setenv("LC_ALL", "C")
		_, out, _ := clitest.Run(rootCommand(), "agent", "--check", "--config", good)
		for _, line := range strings.Split(out, "\n") {
			if strings.IndexFunc(line, func(r rune) bool { return r > 126 }) >= 0 {
				t.Errorf("not ASCII: %s", line)
			}
			if columns == "60" && len(line) > 60 && !strings.Contains(line, dir) && !strings.Contains(line, " | ") {
				t.Errorf("%d columns: %s", len(line), line)
			}
		}
	}
}

// --fail-on takes the levels that there are.
func TestDoctorFailOn(t *testing.T) {
	if code, _, errs := clitest.Run(rootCommand(), "doctor", "--fail-on", "bad"); code != exit.Bad || !strings.Contains(errs, "want critical, serious, moderate, minor or unweighed") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}
