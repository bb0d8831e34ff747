// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

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

// writePictures draws every part that the profile has.
func writePictures(dir string, p profile.Profile) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return exit.BadInput(fmt.Errorf("make folder for pictures: %w", err))
	}
	for name, picture := range map[string]struct {
		part profile.Part
		draw func(io.Writer, profile.Profile) error
	}{
		"latency.svg":        {profile.Latency, heatMap(profile.Latency)},
		"bandwidth.svg":      {profile.Bandwidth, heatMap(profile.Bandwidth)},
		"loaded-latency.svg": {profile.Loaded, reportprofile.Curve},
		"working-sets.svg":   {profile.Caches, reportprofile.WorkingSet},
		"rao.svg":            {profile.Rao, reportprofile.Rao},
	} {
		if !slices.Contains(p.Done, picture.part) {
			continue
		}
		if err := cli.WriteTo(nil, filepath.Join(dir, name), func(w io.Writer) error { return picture.draw(w, p) }); err != nil {
			return err
		}
	}
	return nil
}

func heatMap(part profile.Part) func(io.Writer, profile.Profile) error {
	return func(w io.Writer, p profile.Profile) error { return reportprofile.HeatMap(w, p, part) }
}
