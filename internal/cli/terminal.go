// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"homenode/internal/render"
	"homenode/internal/tui"
)

// Screen looks at where standard output goes: the terminal's width, else
// COLUMNS, else 120; ASCII where the locale is not UTF-8.
func Screen() render.TextOptions {
	width, ok := tui.TerminalWidth(os.Stdout)
	if columns, err := strconv.Atoi(os.Getenv("COLUMNS")); !ok && err == nil {
		width, ok = columns, true
	}
	if !ok {
		width = 120
	}
	return render.TextOptions{Width: width, UTF8: SpeaksUTF8(os.Getenv)}
}

// SpeaksUTF8 goes by the locale. Where none is set, the C library's is C, which
// does not: ASCII is readable everywhere.
func SpeaksUTF8(env func(string) string) bool {
	locale := strings.ToUpper(cmp.Or(env("LC_ALL"), env("LC_CTYPE"), env("LANG")))
	return strings.Contains(locale, "UTF-8") || strings.Contains(locale, "UTF8")
}

// Tell says something that is no error, a line each. Names in it are not ours.
func Tell(w io.Writer, lines []string) {
	for _, line := range lines {
		fmt.Fprintln(w, "homenode: "+render.Printable(line))
	}
}

// IsTerminal is false for a file, a pipe and /dev/null.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && tui.IsTerminal(f)
}
