// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"homenode/internal/agent/serve"
	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/render"
	"homenode/internal/schema"
)

func excludeCommand() *cobra.Command {
	var socket, output string
	var length time.Duration
	cmd := &cobra.Command{
		Use:   "exclude WORKLOAD",
		Short: "Keep a workload from being bound for a time; one that is bound is unbound",
		Long: "Asks the running agent over its socket. The exclusion ends by itself, with 'homenode include', or with the\n" +
			"agent. 'homenode status' shows which workloads are excluded. For good, leave the service out of the configuration.",
		Example: "  homenode exclude web\n  homenode exclude /system.slice/nginx.service --for 8h",
		Args:    cli.Exactly(1, "a workload: its cgroup path, the path's last part, or its service"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cli.CheckOutput(output); err != nil {
				return err
			}
			if length <= 0 {
				return exit.BadInput(fmt.Errorf("--for is %v: want a time like 1h30m", length))
			}
			return changeExclusion(cmd, socket, output, http.MethodPut, args[0], "?for="+url.QueryEscape(length.String()))
		},
	}
	cmd.Flags().DurationVar(&length, "for", time.Hour, "length of the exclusion, at most 744h")
	socketFlag(cmd, &socket)
	cli.OutputFlag(cmd, &output)
	cli.Writes(cmd, serve.Exclusion{})
	return cli.CompleteArgument(cmd, watched)
}

func includeCommand() *cobra.Command {
	var socket, output string
	cmd := &cobra.Command{
		Use:   "include WORKLOAD",
		Short: "Let an excluded workload be bound again",
		Args:  cli.Exactly(1, "a workload: its cgroup path, the path's last part, or its service"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cli.CheckOutput(output); err != nil {
				return err
			}
			return changeExclusion(cmd, socket, output, http.MethodDelete, args[0], "")
		},
	}
	socketFlag(cmd, &socket)
	cli.OutputFlag(cmd, &output)
	cli.Writes(cmd, serve.Exclusion{})
	return cli.CompleteArgument(cmd, watched)
}

func changeExclusion(cmd *cobra.Command, socket, output, method, workload, query string) error {
	var e serve.Exclusion
	if err := askAgent(cmd.Context(), socket, cmd.Name(), method, "/v1/workloads/"+url.PathEscape(workload)+"/exclusion"+query, &e); err != nil {
		return err
	}
	if output == "json" {
		return schema.NewEncoder(cmd.OutOrStdout()).Encode(e)
	}
	if e.Until == nil {
		fmt.Fprintf(cmd.OutOrStdout(), "%s may be bound again\n", render.Printable(e.Workload))
		return nil
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s is not bound until %s\n", render.Printable(e.Workload), e.Until.Local().Format(time.DateTime))
	return nil
}
