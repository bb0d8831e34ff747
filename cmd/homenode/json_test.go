// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"homenode/internal/cli/clitest"
)

func TestJSONEverywhere(t *testing.T) {
	clitest.JSONEverywhere(t, rootCommand(), map[string]string{
		"agent":     "it logs, as text or JSON (log: format), and answers over its API",
		"top":       "it is a screen; 'homenode record --windows' writes the same as JSON",
		"record":    "it writes files, which are JSON or a tree",
		"dump":      "it makes CSV or OpenMetrics of what is JSON already",
		"guard":     "it prints nothing: freeze starts it",
		"freeze":    "it runs until it is told to end, for tests of the freezer",
		"reference": "it writes documents",
	})
}
