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

// Screen returns the size and kind of standard output: the terminal's width,
// else COLUMNS, else 120; ASCII if the locale is not UTF-8.
func Screen() render.TextOptions {
	width, ok := tui.TerminalWidth(os.Stdout)
	fold := ok
	if columns, err := strconv.Atoi(os.Getenv("COLUMNS")); !ok && err == nil {
		width, ok = columns, true
	}
	if !ok {
		width = 120
	}
	return render.TextOptions{Width: max(width, narrowest), UTF8: SpeaksUTF8(os.Getenv), Fold: fold}
}

// narrowest is the least width that texts are made for.
const narrowest = 40

// SpeaksUTF8 decides by the locale. Without one the C library uses the locale
// C, which is not UTF-8; ASCII is readable everywhere.
func SpeaksUTF8(env func(string) string) bool {
	locale := strings.ToUpper(cmp.Or(env("LC_ALL"), env("LC_CTYPE"), env("LANG")))
	return strings.Contains(locale, "UTF-8") || strings.Contains(locale, "UTF8")
}

// Text is out for what a command prints for people: for the terminal's width, and in ASCII if the
// locale is not UTF-8. Texts arrive in whole lines (render.Terminal), so no character is cut in two.
func Text(out io.Writer) io.Writer {
	if o := Screen(); o.Fold && IsTerminal(out) || !o.UTF8 {
		return textWriter{out, o}
	}
	return out
}

type textWriter struct {
	out io.Writer
	render.TextOptions
}

func (t textWriter) Write(text []byte) (int, error) {
	fit := string(text)
	if t.Fold {
		fit = render.Fold(fit, t.Width)
	}
	if !t.UTF8 {
		fit = render.ASCII(fit)
	}
	_, err := io.WriteString(t.out, fit)
	return len(text), err
}

// Tell prints messages that are not errors, one per line. Names in them may be
// hostile.
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
