// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"os"
	"strconv"
	"strings"

	"homenode/internal/kernel/unix"
	"homenode/internal/report/usage"
)

// screenOf looks at where standard output goes: the terminal's width, else
// COLUMNS, else 120; ASCII where the locale is not UTF-8.
func screenOf(top int) usage.Screen {
	width, ok := unix.TerminalWidth(os.Stdout)
	if columns, err := strconv.Atoi(os.Getenv("COLUMNS")); !ok && err == nil {
		width, ok = columns, true
	}
	if !ok {
		width = 120
	}
	locale := strings.ToUpper(cmp.Or(os.Getenv("LC_ALL"), os.Getenv("LC_CTYPE"), os.Getenv("LANG")))
	return usage.Screen{Width: width, ASCII: !strings.Contains(locale, "UTF-8") && !strings.Contains(locale, "UTF8"), Top: top}
}
