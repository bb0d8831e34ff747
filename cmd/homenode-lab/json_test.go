// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"homenode/internal/cli/clitest"
)

func TestJSONEverywhere(t *testing.T) {
	clitest.JSONEverywhere(t, rootCommand(), map[string]string{
		"run": "its output is the command's", "shell": "its output is the shell's", "sim report": "it writes a page; 'sim run -o json' has the figures",
		"arm": "it is a part of demo, inside of the guest", "guest": "it is the guest's server", "calibrate": "it asks the guest's server",
		"count": "it prints JSON only: the lab's tests read it", "groups": "likewise", "isolate": "it runs until it is told to end, for tests of isolation", "hot": "likewise", "probe": "likewise", "sample": "likewise", "uncore": "likewise",
		"reference": "it writes documents",
	})
}
