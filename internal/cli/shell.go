// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"

	"homenode/internal/doctor"
)

// ShellLine is a command line to be pasted.
func ShellLine(argv []string) string {
	var words []string
	for _, word := range argv {
		words = append(words, doctor.Quote(word))
	}
	return strings.Join(words, " ")
}
