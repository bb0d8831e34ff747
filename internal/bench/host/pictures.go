// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/profile"
	reportprofile "homenode/internal/report/profile"
)

// WritePictures draws every part that the profile has.
func WritePictures(dir string, p profile.Profile) error {
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

// Writable tests every output path before minutes are spent on measuring.
func Writable(out, html, pictures string) error {
	if err := cli.CanReplace("--out", out); err != nil {
		return err
	}
	if html != "" && html != "-" {
		if err := cli.CanReplace("--html", html); err != nil {
			return err
		}
	}
	if pictures == "" {
		return nil
	}
	if err := os.MkdirAll(pictures, 0o755); err != nil {
		return fmt.Errorf("--pictures: make folder for pictures: %w", err)
	}
	return cli.CanCreate("--pictures "+pictures, pictures)
}
