// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"homenode/internal/action"
	"homenode/internal/agent"
	"homenode/internal/journal"
	"homenode/internal/schema"
	"homenode/internal/unit"
)

// labIsolate is for the lab's tests: the agent's owners and journal, without a policy.
func labIsolate() *cobra.Command {
	var workload, ready string
	var cache, bandwidth float64
	cmd := &cobra.Command{
		Use: "isolate", Hidden: true, Short: "Keep a cgroup to a class until SIGTERM, by the agent's own owners and journal", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			class := action.Class{Cache: unit.Ratio(cache), Bandwidth: unit.Ratio(bandwidth)}
			return isolate(cmd, action.Step{Kind: action.SetClass, Workload: workload, Class: &class}, ready)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&workload, "workload", "", "path of the cgroup below its file system")
	flags.Float64Var(&cache, "cache", 0, "share of the last-level caches' ways; 0: all")
	flags.Float64Var(&bandwidth, "bandwidth", 0, "share of the memory bandwidth; 0: all")
	flags.StringVar(&ready, "ready", "", "file to create once it is isolated")
	return cmd
}

func isolate(cmd *cobra.Command, step action.Step, ready string) error {
	owners, err := agent.Owners(nil, agent.Runtimes{})
	if err != nil {
		return err
	}
	j, err := journal.Open(agent.DefaultStateDir)
	if err != nil {
		return err
	}
	defer j.Close()
	out := j.Wrap(owners).Apply(cmd.Context(), step)
	if out.Status != action.Done {
		return fmt.Errorf("isolate %s: %s: %s", step.Workload, out.Status, out.Detail)
	}
	if err := os.WriteFile(ready, nil, 0o644); err != nil {
		return err
	}
	<-cmd.Context().Done()
	restored, err := j.Restore(context.WithoutCancel(cmd.Context()), owners)
	if err != nil {
		return err
	}
	return schema.NewEncoder(cmd.OutOrStdout()).Encode(restored)
}
