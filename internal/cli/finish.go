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

// Finish prints a command's error after the program's name and returns its exit code. Names in it come from
// processes and cgroups: a terminal would obey what is in them.
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

// mostProblems is how many lines stderr gets: a broken tree can have thousands.
const mostProblems = 20

// Partly prints what could not be read, a line each, and makes it an exit code.
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

// Sentences takes joined errors apart, a line each, fit for a terminal.
func Sentences(err error) []string {
	if err == nil {
		return nil
	}
	var lines []string
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if line = render.Printable(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}
