// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"homenode/internal/exit"
)

// ExitCodes is a line for the help of a program.
const ExitCodes = "Exit codes: 0 done, 1 failed, 2 bad input or missing precondition, 3 partly done, 4 nothing to do."

// ForBuild are commands that only the build needs. Packages that a build tag brings in add theirs.
var ForBuild []func() *cobra.Command

// Root is a program's root command. Without arguments it prints its help.
func Root(name, short, long string) *cobra.Command {
	root := &cobra.Command{
		Use:           name,
		Version:       Version,
		Short:         short,
		Long:          long + "\n\n" + ExitCodes,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noSuch(name),
		RunE:          printHelp,
	}
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		out := cmd.OutOrStdout()
		var whole bytes.Buffer
		cmd.SetOut(&whole)
		help(cmd, args)
		cmd.SetOut(out)
		_, _ = Text(out).Write(whole.Bytes()) // a terminal that is gone needs no help
	})
	for _, command := range ForBuild {
		root.AddCommand(command())
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return exit.BadInput(flagError(err)) })
	return root
}

// Group adds commands under a heading of the help.
func Group(root *cobra.Command, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: title, Title: title + ":"})
	for _, cmd := range commands {
		cmd.GroupID = title
	}
	root.AddCommand(commands...)
}

// Parents has each command that only has others below it print its help, and refuse a name that is none
// of them: cobra prints the help for that, too, and says that all is well.
func Parents(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	parentsBelow(root)
}

func parentsBelow(cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		if c.HasSubCommands() && !c.Runnable() {
			c.Args, c.RunE = noSuch(c.CommandPath()), printHelp
		}
		parentsBelow(c)
	}
}

func printHelp(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// noSuch refuses a name that is not a subcommand.
func noSuch(command string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) > 0 {
			return exit.BadInput(fmt.Errorf("unknown command %q: '%s --help' lists them", args[0], command))
		}
		return nil
	}
}

// Main runs the process's command line until it ends, or SIGINT or SIGTERM ends it, and exits.
func Main(root *cobra.Command) {
	deepen()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(Run(ctx, root, os.Args[1:]))
}

// deepen makes the stack as large as a command needs it, while there is little on it. The
// runtime copies a stack that has to grow, and each time reads its tables of the functions
// on it: pages of the program's file that would stay in memory.
//
//go:noinline
func deepen() byte {
	var room [24 << 10]byte
	return room[len(os.Args)%len(room)]
}

// Run runs a command line, prints its error, and returns the exit code.
func Run(ctx context.Context, root *cobra.Command, args []string) int {
	root.SetArgs(args)
	return Finish(root.Name(), root.ExecuteContext(ctx), os.Stderr)
}
