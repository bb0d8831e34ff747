// SPDX-License-Identifier: Apache-2.0

// Command homenode keeps every workload next to its memory.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// Exit codes of every subcommand.
const (
	exitDone     = 0
	exitFailed   = 1
	exitBadInput = 2 // bad input, or something that must be there is not
	exitPartly   = 3
	exitNothing  = 4 // nothing to do
)

// codeError is an error with its exit code. An empty message prints nothing.
type codeError struct {
	code int
	err  error
}

func (e codeError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}
func (e codeError) Unwrap() error { return e.err }

func badInput(err error) error {
	if err == nil {
		return nil
	}
	return codeError{exitBadInput, err}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:]))
}

func run(ctx context.Context, args []string) int {
	root := rootCommand()
	root.SetArgs(args)
	return finish(root.ExecuteContext(ctx), os.Stderr)
}

// finish prints a command's error and returns its exit code. Names in it come from
// processes and cgroups: a terminal would obey what is in them.
func finish(err error, stderr io.Writer) int {
	if err == nil {
		return exitDone
	}
	if lines := sentences(err); len(lines) > 0 {
		fmt.Fprintln(stderr, "homenode: "+strings.Join(lines, "\n"))
	}
	var code codeError
	if errors.As(err, &code) {
		return code.code
	}
	return exitFailed
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "homenode",
		Short:         "Keeps every workload next to its memory",
		Long:          "homenode watches where each workload runs and where its memory is, decides where it\nshould live, binds it, moves its memory home, and puts everything back when it ends.\n\nExit codes: 0 done, 1 failed, 2 bad input or missing precondition, 3 partly done, 4 nothing to do.",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return badInput(fmt.Errorf("unknown command %q: 'homenode --help' lists them", args[0]))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return badInput(err) })
	root.AddCommand(topoCommand(), statCommand(), mapsCommand(), topCommand(), doctorCommand(), eventsCommand(), benchCommand(), runCommand(), migrateCommand(), repeatCommand(), simCommand(),
		recordCommand(), agentCommand(), statusCommand(), whyCommand(), restoreCommand(), labCommand(), demoCommand(), freezeCommand(), guardCommand(), brmCommand(),
		reloadCommand(), replayCommand(), classesCommand(), soakCommand())
	return root
}

// exactly wants n arguments, and says what they are.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != n {
			return badInput(fmt.Errorf("want %s, got %d arguments", what, len(args)))
		}
		return nil
	}
}
