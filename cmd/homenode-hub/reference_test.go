// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"homenode/internal/cli/clitest"
)

func TestReferenceIsUpToDate(t *testing.T) { clitest.Reference(t, rootCommand(), "hub") }

// The page of exit codes is what the commands say.
func TestExitCodes(t *testing.T) { clitest.ExitCodes(t, rootCommand()) }

func TestManPages(t *testing.T) {
	clitest.ManPages(t, rootCommand(), map[string]string{"homenode-hub.1": "Exit codes: 0 done", "homenode-hub-enrol.1": "one-time token"})
}
