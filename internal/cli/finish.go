// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"homenode/internal/exit"
	"homenode/internal/render"
)

// Finish prints a command's error after the program's name and returns the exit code. Names
// in an error come from processes and cgroups: a terminal would obey control characters.
func Finish(program string, err error, stderr io.Writer) int {
	if err == nil {
		return exit.Done
	}
	if lines := Sentences(err); len(lines) > 0 {
		fmt.Fprintln(stderr, program+": "+strings.Join(lines, "\n"))
	}
	var code exit.Error
	if errors.As(err, &code) {
		return code.Code
	}
	return exit.Failed
}

// mostProblems bounds the lines on stderr: a broken tree can have thousands of problems.
const mostProblems = 20

// Partly prints the problems of a reading, one per line, and returns the exit code.
func Partly(w io.Writer, problems []string) error {
	for i, p := range problems {
		if i == mostProblems {
			fmt.Fprintf(w, "homenode: %d more of these\n", len(problems)-i)
			break
		}
		fmt.Fprintln(w, "homenode: "+p)
	}
	if len(problems) > 0 {
		return exit.With(exit.Partly, nil)
	}
	return nil
}

// Sentences splits joined errors into lines that are safe for a terminal.
func Sentences(err error) []string {
	if err == nil {
		return nil
	}
	var lines []string
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if len(lines) > 0 {
			line = indented(line)
		} else {
			line = render.Printable(line)
		}
		if line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// indented is Printable that keeps the spaces in front: the caret below an excerpt stands
// where it is meant to.
func indented(line string) string {
	text := render.Printable(line)
	if text == "" {
		return ""
	}
	return line[:len(line)-len(strings.TrimLeft(line, " "))] + text
}

// Excerpt is the lines of a problem's excerpt, fit to print.
func Excerpt(text string) (lines []string) {
	for line := range strings.SplitSeq(text, "\n") {
		if line = indented(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}
