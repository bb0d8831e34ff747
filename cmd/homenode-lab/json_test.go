// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"homenode/internal/cli/clitest"
)

func TestJSONEverywhere(t *testing.T) {
	clitest.JSONEverywhere(t, rootCommand(), map[string]string{
		"reference": "it writes documents",
	})
}
