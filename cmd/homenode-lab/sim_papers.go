// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/kernel/unix"
	"homenode/internal/papers"
	"homenode/internal/report/simulation"
	"homenode/internal/sim/arena"
	"homenode/internal/sim/runner"
	"homenode/internal/sim/scenario"
)

func simPapersCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "papers [RESULT]…",
		Short: "Show the statements of all papers, and their verdicts here",
		Long: "Shows one table of the statements of all papers: what the paper says, what was measured here (all\n" +
			"of it modelled), and the verdict. It runs no experiment. The figures come from results of 'sim arena\n" +
			"--out', and of 'sim run --out' for MAO's figures by service. Without the result of a paper's\n" +
			"experiment, the statements that need it cannot be tested.",
		Example: "  homenode-lab sim papers\n" +
			"  homenode-lab sim papers all.json rao.json lakew.json mao-feed.json mao-search.json",
		RunE: func(cmd *cobra.Command, args []string) error { return simPapers(cmd, output, args) },
	}
	cli.OutputFlag(cmd, &output)
	cli.Writes(cmd, arena.Result{})
	return cmd
}

func simPapers(cmd *cobra.Command, output string, args []string) error {
	if err := cli.CheckOutput(output); err != nil {
		return exit.BadInput(err)
	}
	arenas, scenarios, err := readResults(args)
	if err != nil {
		return exit.BadInput(err)
	}
	r := arena.Result{Schema: arena.Schema, How: runner.How, Name: "papers", About: "The statements of all papers.", Rows: papers.Statements(arenas, scenarios)}
	if output == "json" {
		data, err := arena.Encode(r)
		if err != nil {
			return err
		}
		_, err = cmd.OutOrStdout().Write(append(data, '\n'))
		return err
	}
	return simulation.Arena(cmd.OutOrStdout(), r, cli.Screen())
}

// readResults reads the arenas' and the scenarios' results; each file shows its
// kind.
func readResults(paths []string) (arenas []arena.Result, scenarios []scenario.Result, err error) {
	for _, path := range paths {
		data, err := unix.ReadAtMost(path, resultLimit)
		if err != nil {
			return nil, nil, err
		}
		switch whatIs(data) {
		case anArena:
			r, err := arena.Decode(data)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", path, err)
			}
			arenas = append(arenas, r)
		case aResult:
			r, err := scenario.Decode(data)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", path, err)
			}
			scenarios = append(scenarios, r)
		default:
			return nil, nil, fmt.Errorf("%s: want a result of 'homenode-lab sim arena --out' or 'homenode-lab sim run --out'", path)
		}
	}
	return arenas, scenarios, nil
}
