// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/hub/deploy"
	"homenode/internal/render"
	"homenode/internal/schema"
)

// RowsReport is what 'homenode-hub deploy rows -o json' writes.
type RowsReport struct {
	Schema int       `json:"schema"`
	File   string    `json:"rows_file"`
	Rows   int       `json:"training_row_count"`
	None   []Without `json:"without_row"`
}

// Without is a service whose rollout has no row.
type Without struct {
	Service string `json:"service"`
	Why     string `json:"sentence"`
}

func rowsCommand() *cobra.Command {
	var file, output string
	cmd := &cobra.Command{
		Use:   "rows FILE",
		Short: "Write what rollouts found out as rows for a model of gains",
		Long: "Writes a Parquet file with a row for each service whose last rollout has ended: what it showed before\n" +
			"anything was bound, and what binding brought, by comparing bound hosts with the others. 'scripts/model.sh\n" +
			"gain' learns from it, beside trials of the simulator and of 'homenode experiment'. Names are hashed.",
		Example: "  homenode-hub deploy rows rollouts.parquet",
		Args:    cli.Exactly(1, "a file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(cli.CheckOutput(output), cli.CanReplace("FILE", args[0])); err != nil {
				return exit.BadInput(err)
			}
			c, f, err := folder(file, false)
			if err != nil {
				return err
			}
			s, err := storeOf(cmd.Context(), c)
			if err != nil {
				return exit.BadInput(err)
			}
			defer s.Close()
			rows, why, err := deploy.Rows(cmd.Context(), f, s)
			if err != nil {
				return err
			}
			r := RowsReport{Schema: 1, File: args[0], Rows: len(rows), None: []Without{}}
			for _, service := range slices.Sorted(maps.Keys(why)) {
				r.None = append(r.None, Without{schema.Name(service), why[service]})
				cli.Tell(cmd.ErrOrStderr(), []string{fmt.Sprintf("%s: no row: %s", render.Name(service), why[service])})
			}
			if len(rows) == 0 {
				return exit.With(exit.Nothing, errors.New("no rollout has a row: nothing was written"))
			}
			if err := cli.WriteTo(nil, args[0], func(w io.Writer) error { return deploy.WriteRows(w, rows, cli.Version) }); err != nil {
				return err
			}
			if output == "json" {
				return schema.NewEncoder(cmd.OutOrStdout()).Encode(r)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s written to %s\n", render.Count(len(rows), "row"), args[0])
			return err
		},
	}
	configFlag(cmd, &file)
	cli.OutputFlag(cmd, &output)
	cli.Writes(cmd, RowsReport{})
	return cli.Exits(cmd, "4", "no rollout has a row")
}
