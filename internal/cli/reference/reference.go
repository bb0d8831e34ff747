// SPDX-License-Identifier: Apache-2.0

// Package reference prints the help of a program's commands: as Markdown for the documentation,
// and as man pages. It is for the build. What it needs of cobra takes 1 MB of a program and
// some of its start, so a program has it only if it is built with the tag reference.
package reference

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"homenode/internal/cli"
	"homenode/internal/exit"
)

func init() { cli.ForBuild = append(cli.ForBuild, command) }

func command() *cobra.Command {
	var man, schemas string
	var exits bool
	cmd := &cobra.Command{
		Use: "reference", Hidden: true, Args: cli.Exactly(0, "no arguments"),
		Short: "Print the reference of all commands as Markdown, or write man pages",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if man != "" {
				return manPages(cmd.Root(), man)
			}
			if schemas != "" {
				return cli.WriteSchemas(cmd.Root(), schemas)
			}
			if exits {
				cli.ExitTable(cmd.OutOrStdout(), cmd.Root())
				return nil
			}
			text, err := Markdown(cmd.Root())
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(text)
			return err
		},
	}
	cmd.Flags().StringVar(&man, "man", "", "write man pages into this folder instead")
	cmd.Flags().StringVar(&schemas, "schemas", "", "write the JSON Schema of each command's output into this folder instead")
	cmd.Flags().BoolVar(&exits, "exit-codes", false, "print the table of exit codes instead")
	return cmd
}

// manPages writes a page for each command in the program's help.
func manPages(root *cobra.Command, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return exit.BadInput(fmt.Errorf("write man pages: %w", err))
	}
	prepare(root)
	day, err := pagesDay(os.Getenv("SOURCE_DATE_EPOCH"))
	if err != nil {
		return err
	}
	if err := doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: root.Name() + " " + cli.Version, Manual: "homenode", Date: &day}, dir); err != nil {
		return fmt.Errorf("write man pages: %w", err)
	}
	return nil
}

// pagesDay is the date on the pages: that of the commit if the build names it, and never that
// of the build.
func pagesDay(epoch string) (time.Time, error) {
	seconds, err := strconv.ParseInt(cmp.Or(epoch, "0"), 10, 64)
	if err != nil {
		return time.Time{}, exit.BadInput(fmt.Errorf("read SOURCE_DATE_EPOCH: %w", err))
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// Markdown is a program's help in one file, a section for each command.
func Markdown(root *cobra.Command) ([]byte, error) {
	prepare(root)
	b := bytes.NewBufferString("# " + root.Name() + "\n\nWritten by `make reference`: change the commands, not this file.\n\n")
	if err := section(b, root); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func section(b *bytes.Buffer, cmd *cobra.Command) error {
	anchor := func(file string) string {
		return "#" + strings.ReplaceAll(strings.TrimSuffix(file, ".md"), "_", "-")
	}
	if err := doc.GenMarkdownCustom(cmd, b, anchor); err != nil {
		return fmt.Errorf("write reference of %s: %w", cmd.CommandPath(), err)
	}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() && !c.IsAdditionalHelpTopicCommand() {
			if err := section(b, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// prepare leaves out what depends on the day, and cobra's own commands.
func prepare(root *cobra.Command) {
	root.DisableAutoGenTag = true
	root.InitDefaultVersionFlag()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
}
