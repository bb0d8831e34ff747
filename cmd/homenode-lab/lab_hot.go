// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"homenode/internal/exit"
	"homenode/internal/kernel/hotness"
	"homenode/internal/kernel/unix"
	"homenode/internal/migration"
	"homenode/internal/schema"
)

// hotReport is the output of `homenode-lab hot`.
type hotReport struct {
	Heat     migration.Heat    `json:"heat"`
	Mappings []hotness.Mapping `json:"mappings"`
	Notes    []string          `json:"notes"`
}

// labHot is for the lab's tests: it prints which memory of processes is hot, as
// JSON.
func labHot() *cobra.Command {
	var cfg hotness.Config
	var pids []int
	cmd := &cobra.Command{
		Use: "hot", Hidden: true, Short: "Find which pages of processes are accessed, and print the share of each mapping", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(pids) == 0 {
				return exit.BadInput(errors.New("look for hot pages: no process is given: use --pid"))
			}
			p, err := hotness.Find(cmd.Context(), unix.NewLive(), pids, cfg)
			if err != nil {
				return err
			}
			err = schema.NewEncoder(cmd.OutOrStdout()).Encode(hotReport{p.Heat(), p.Mappings(), p.Notes()})
			if err != nil {
				return fmt.Errorf("print hot pages: %w", err)
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.IntSliceVar(&pids, "pid", nil, "process ids")
	flags.DurationVar(&cfg.For, "for", time.Second, "time to watch")
	flags.StringSliceVar(&cfg.Sources, "source", nil, "sources, of which the first that works is used: pmu, damon, idle, referenced; default: all")
	flags.Float64Var(&cfg.Share, "share", 0, "least share of a mapping, if only whole mappings can be distinguished (0: the default)")
	flags.Uint64Var(&cfg.Period, "period", 0, "accesses per sample (0: chosen by itself)")
	return cmd
}
