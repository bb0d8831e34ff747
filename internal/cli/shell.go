// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"

	"homenode/internal/doctor"
)

// ShellLine is a command line that can be pasted into a shell.
func ShellLine(argv []string) string {
	var words []string
	for _, word := range argv {
		words = append(words, doctor.Quote(word))
	}
	return strings.Join(words, " ")
}
