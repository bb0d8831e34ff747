// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"homenode/internal/cli"
)

// A reader that has gone ends a command without a word, as it ends cat: 'homenode topo | true'.
func TestPipeThatCloses(t *testing.T) {
	if line := os.Getenv("HOMENODE_PIPE"); line != "" {
		os.Exit(cli.Run(t.Context(), rootCommand(), strings.Fields(line)))
	}
	for _, line := range []string{"topo --shape four", "topo --shape two -o json", "events --cpu amd-zen4", "placements --shape four --vcpus 8", "doctor --snapshot " + savedSnapshot, "--help"} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		var errs bytes.Buffer
		cmd := exec.Command(os.Args[0], "-test.run=TestPipeThatCloses$")
		cmd.Env = append(os.Environ(), "HOMENODE_PIPE="+line)
		cmd.Stdout, cmd.Stderr = w, &errs
		err = cmd.Run()
		w.Close()
		var exited *exec.ExitError
		if !errors.As(err, &exited) || exited.Sys().(syscall.WaitStatus).Signal() != syscall.SIGPIPE || errs.Len() > 0 {
			t.Errorf("%s: %v: %q", line, err, errs.String())
		}
	}
}

// In the locale C, on 60 columns, sentences are ASCII and fit; NO_COLOR and a file have no
// escape codes. Tables may be wider.
func TestPlainTerminal(t *testing.T) {
	t.Setenv("LC_ALL", "C")
	t.Setenv("COLUMNS", "60")
	t.Setenv("NO_COLOR", "1")
	for _, line := range []string{"topo --shape four", "events --cpu amd-zen4", "placements --shape four --vcpus 8", "doctor --snapshot " + savedSnapshot} {
		var out bytes.Buffer
		root := rootCommand()
		root.SetArgs(strings.Fields(line))
		root.SetOut(&out)
		if err := root.Execute(); err != nil || out.Len() == 0 {
			t.Errorf("%s: %v", line, err)
		}
		if at := strings.IndexFunc(out.String(), func(r rune) bool { return r > 126 || r < ' ' && r != '\n' }); at >= 0 {
			t.Errorf("%s: %q", line, out.String()[max(0, at-20):at+4])
		}
	}
}
