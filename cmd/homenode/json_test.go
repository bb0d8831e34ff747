// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"

	"homenode/internal/cli/clitest"
	"homenode/internal/yamlfile"
)

func TestJSONEverywhere(t *testing.T) {
	clitest.JSONEverywhere(t, rootCommand(), map[string]string{
		"top":        "it is a screen; 'homenode record --windows' writes the same as JSON",
		"record":     "it writes files, which are JSON or a tree",
		"dump":       "it makes CSV or OpenMetrics of what is JSON already",
		"thaw-guard": "it prints nothing: freeze starts it",
		"soak":       "it prints JSON only; it is for scripts/bench-agent.sh",
		"freeze":     "it runs until it is told to end, for tests of the freezer",
		"reference":  "it writes documents",
		"enrol":      "it prints a part of a configuration, once for each host",
	})
}

// What the commands print as JSON has a schema at its top, and -o yaml is the same value.
func TestEveryValueHasASchema(t *testing.T) {
	pid := strconv.Itoa(os.Getpid())
	for _, line := range []string{
		"topo --shape two -o json", "maps " + pid + " -o json", "stat --pid " + pid + " -o json", "events --cpu amd-zen4 -o json", "run --nodes 0 --dry-run -o json -- true",
		"doctor --snapshot " + savedSnapshot + " -o json",
	} {
		_, text, errs := clitest.Run(rootCommand(), strings.Fields(line)...)
		var head struct {
			Schema int `json:"schema"`
		}
		if err := json.Unmarshal([]byte(text), &head); err != nil || head.Schema < 1 {
			t.Errorf("%s: schema %d, %v: %s%.300s", line, head.Schema, err, errs, text)
		}
	}
	for _, line := range []string{"topo --shape two", "events --cpu amd-zen4"} {
		_, text, _ := clitest.Run(rootCommand(), append(strings.Fields(line), "-o", "json")...)
		_, got, _ := clitest.Run(rootCommand(), append(strings.Fields(line), "-o", "yaml")...)
		var want strings.Builder
		if err := yamlfile.FromJSON(&want, []byte(text)); err != nil || got != want.String() || !strings.HasPrefix(got, "schema: 1\n") {
			t.Errorf("%s: %v, got\n%.300s\nwant\n%.300s", line, err, got, want.String())
		}
	}
}
