// SPDX-License-Identifier: Apache-2.0

// Command homenode-loop shows the whole loop of model, rollout and proof on simulated hosts. 'make
// demo-loop' runs it; no package has it.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/hub/deploy"
	"homenode/internal/kernel/unix"
	"homenode/internal/loop"
	"homenode/internal/model/gain"
	"homenode/internal/render"
	"homenode/internal/schema"
)

func main() { cli.Main(rootCommand()) }

func rootCommand() *cobra.Command {
	var model, out, output string
	root := cli.Root("homenode-loop", "Show the whole loop on simulated hosts", "Watches the services of simulated hosts, asks a model of gains which are worth binding, rolls those out\n"+
		"host by host, and rolls back what does harm. Everything is modelled.")
	root.Args = cli.Exactly(0, "no arguments")
	root.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := cli.CheckOutput(output); err != nil {
			return err
		}
		if model == "" || out == "" {
			return exit.BadInput(errors.New("--model and --out are needed: 'make demo-loop' gives both"))
		}
		if err := cli.CanReplace("--out", filepath.Join(out, "loop.html")); err != nil {
			return exit.BadInput(err)
		}
		m, err := gain.Open(model, func(path string) ([]byte, error) { return unix.ReadAtMost(path, gain.MaxBytes) })
		if err != nil {
			return exit.BadInput(fmt.Errorf("--model: %w", err))
		}
		dir, err := os.MkdirTemp("", "homenode-loop-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		c := loop.Demo(m, dir)
		line := cli.NewStatusLine(cmd.ErrOrStderr())
		defer line.Clear()
		c.Progress = func(at time.Duration, what string) {
			line.Show(what, fmt.Sprintf("homenode-loop: %s of the simulated clock, %s", render.Span(at), what))
		}
		r, err := loop.Run(cmd.Context(), c)
		if err != nil {
			return err
		}
		return errors.Join(write(cmd, r, out, output), r.Check())
	}
	flags := root.Flags()
	flags.StringVar(&model, "model", "", "manifest of a model of gains")
	flags.StringVar(&out, "out", "", "folder for loop.html, loop.json and rows.parquet")
	cli.OutputFlag(root, &output)
	return root
}

func write(cmd *cobra.Command, r loop.Report, out, output string) error {
	var page, data, rows bytes.Buffer
	if err := errors.Join(loop.HTML(&page, r), schema.NewEncoder(&data).Encode(r)); err != nil {
		return err
	}
	if err := deploy.WriteRows(&rows, r.Rows, cli.Version); err != nil {
		return err
	}
	for name, text := range map[string][]byte{"loop.html": page.Bytes(), "loop.json": data.Bytes(), "rows.parquet": rows.Bytes()} {
		if err := cli.ReplaceFile(filepath.Join(out, name), text, 0o644); err != nil {
			return err
		}
	}
	if output == "json" {
		_, err := cmd.OutOrStdout().Write(data.Bytes())
		return err
	}
	return loop.Text(cmd.OutOrStdout(), r, cli.Screen())
}
