// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"homenode/internal/cli/clitest"
)

func TestReferenceIsUpToDate(t *testing.T) { clitest.Reference(t, rootCommand(), "cli") }

func TestManPages(t *testing.T) {
	clitest.ManPages(t, rootCommand(), map[string]string{"homenode.1": "Exit codes: 0 done", "homenode-migrate.1": "freeze-limit"})
}
