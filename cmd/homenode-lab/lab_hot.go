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

// hotReport is what `homenode-lab hot` prints.
type hotReport struct {
	Heat     migration.Heat    `json:"heat"`
	Mappings []hotness.Mapping `json:"mappings"`
	Notes    []string          `json:"notes"`
}

// labHot is for the lab's tests: which memory of processes is hot, as JSON.
func labHot() *cobra.Command {
	var cfg hotness.Config
	var pids []int
	cmd := &cobra.Command{
		Use: "hot", Hidden: true, Short: "Look which pages of processes are accessed, and print how much of each mapping", Args: cobra.NoArgs,
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
	flags.IntSliceVar(&pids, "pid", nil, "processes")
	flags.DurationVar(&cfg.For, "for", time.Second, "how long")
	flags.StringSliceVar(&cfg.Sources, "source", nil, "what to go by, the first that works: pmu, damon, idle, referenced (all)")
	flags.Float64Var(&cfg.Share, "share", 0, "least share of a mapping, where only mappings can be told apart (0: the default)")
	flags.Uint64Var(&cfg.Period, "period", 0, "accesses to a sample (0: found out)")
	return cmd
}
