// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"

	"github.com/spf13/cobra"

	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/profile"
	reportprofile "homenode/internal/report/profile"
	"homenode/internal/source"
)

func benchShowCommand() *cobra.Command {
	var face string
	cmd := &cobra.Command{
		Use:   "show FILE",
		Short: "Print a saved profile",
		Args:  cli.Exactly(1, "a profile's file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cli.CheckOutput(face, "html"); err != nil {
				return err
			}
			p, err := source.ProfileFile(args[0])
			if err != nil {
				return exit.BadInput(err)
			}
			return printProfile(cmd.OutOrStdout(), p, face)
		},
	}
	cli.OutputFlag(cmd, &face, "html")
	cli.Writes(cmd, profile.Profile{})
	return cmd
}

func printProfile(w io.Writer, p profile.Profile, face string) error {
	switch face {
	case "json":
		data, err := profile.Encode(p)
		if err == nil {
			_, err = w.Write(append(data, '\n'))
		}
		return err
	case "html":
		return reportprofile.HTML(w, p)
	}
	return reportprofile.Text(w, p, cli.Screen())
}
