// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/source"
	"homenode/internal/views"
)

func dumpCommand() *cobra.Command {
	var format, out string
	cmd := &cobra.Command{
		Use:   "dump RECORDING",
		Short: "Write a recording's figures as CSV or OpenMetrics, for a spreadsheet or for Prometheus",
		Long: "CSV has a row for each figure of each window: time, seq, kind, name, service, node, figure, unit, value, how.\n" +
			"A figure that is unknown has no value. OpenMetrics has the names of /metrics and the time of each window;\n" +
			"'promtool tsdb create-blocks-from openmetrics FILE' makes blocks of Prometheus from it.\n" +
			"The recording itself is JSON already, a window a line.",
		Example: "  homenode record --windows day.jsonl --for 10m\n  homenode dump day.jsonl > day.csv\n  homenode dump day.jsonl --format openmetrics --out day.om",
		Args:    cli.Exactly(1, "a recording, as 'homenode record --windows' writes it"),
		RunE: func(cmd *cobra.Command, args []string) error {
			write := views.DumpCSV
			switch format {
			case "csv":
			case "openmetrics":
				write = views.DumpOpenMetrics
			default:
				return exit.BadInput(fmt.Errorf("--format is %q: want csv or openmetrics", format))
			}
			rec, err := source.Recording(args[0])
			if err != nil {
				return exit.BadInput(err)
			}
			if rec.CutOff != "" {
				cli.Tell(cmd.ErrOrStderr(), []string{args[0] + ": " + rec.CutOff})
			}
			if out == "-" {
				return write(cmd.OutOrStdout(), rec)
			}
			return cli.WriteTo(cmd.OutOrStdout(), out, func(w io.Writer) error { return write(w, rec) })
		},
	}
	cmd.Flags().StringVar(&format, "format", "csv", "format: csv or openmetrics")
	cmd.Flags().StringVar(&out, "out", "-", "file to write; -: standard output")
	return cmd
}
