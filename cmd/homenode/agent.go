// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"runtime/pprof"

	"github.com/spf13/cobra"

	"homenode/internal/agent"
	"homenode/internal/agent/serve"
	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/journal"
	"homenode/internal/kernel/unix"
	"homenode/internal/render"
	"homenode/internal/schema"
	"homenode/internal/source"
)

func agentCommand() *cobra.Command {
	var file, state, profile string
	var dry bool
	var rounds uint64
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Watch this host's workloads and keep them next to their memory",
		Long: "Watches the cgroups of its configuration, binds approved services whose local access ratio is below\n" +
			"target, moves their memory home, and puts everything back when it ends. After a kill, the next start\n" +
			"(or 'homenode restore') puts back what was left.",
		Args: cli.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			hangup := serve.Hangups()
			agent.StaySmall(0)
			c, err := agentConfig(file, state)
			if err == nil {
				err = useProfile(&c)
			}
			if err != nil {
				return err
			}
			if profile != "" {
				f, err := os.Create(profile)
				if err != nil {
					return exit.BadInput(err)
				}
				defer f.Close()
				if err := pprof.StartCPUProfile(f); err != nil {
					return err
				}
				defer pprof.StopCPUProfile()
			}
			log, relog := agent.Logger(cmd.ErrOrStderr(), c.Log)
			handed, err := unix.Handed()
			if err != nil {
				log.Warn("nothing is taken over", "error", err)
			}
			a, err := agent.New(cmd.Context(), agent.Options{Config: c, DryRun: dry, Rounds: rounds, Log: log, Relog: relog, Load: reloader(file, state),
				Handed: handed, Exec: replacer(hangup)})
			if err != nil {
				return exit.Precondition(err)
			}
			return serve.Run(cmd.Context(), a, cli.Version, log, hangup)
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "configuration file (YAML); without it no service is approved or bound")
	cmd.Flags().StringVar(&state, "state", "", "folder of journal and status (default: the configuration's, "+agent.DefaultStateDir+")")
	cmd.Flags().StringVar(&profile, "cpuprofile", "", "file for a CPU profile of the agent itself")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "decide and report, but change nothing")
	cmd.Flags().Uint64Var(&rounds, "rounds", 0, "number of windows after which the agent ends; 0: no limit")
	return cmd
}

// agentConfig reads the file, if one is named. --state is a layer of its own, because
// the state folder decides where other files are by default.
func agentConfig(file, state string) (agent.Config, error) {
	var layers []agent.Layer
	if file != "" {
		layer, err := agent.ReadLayer(file)
		if err != nil {
			return agent.Config{}, exit.BadInput(err)
		}
		layers = append(layers, layer)
	}
	if state != "" {
		layers = append(layers, agent.Layer{Name: "--state", Text: fmt.Appendf(nil, "state_dir: %q", state)})
	}
	c, err := agent.ParseLayers(layers...)
	if file != "" {
		c.Text = string(layers[0].Text)
	}
	return c, exit.BadInput(err)
}

// useProfile reads the profile that the configuration names, if any.
func useProfile(c *agent.Config) error {
	if c.Profile == "" {
		return nil
	}
	m, _, err := source.Live()
	if err != nil {
		return err
	}
	p, err := source.Profile(c.Profile, m, source.LiveCPUModel())
	if err != nil {
		return fmt.Errorf("profile of the configuration: %w", err)
	}
	c.Actuate.Profile = &p
	c.MAO = c.MAO.WithProfile(&p)
	return nil
}

func restoreCommand() *cobra.Command {
	var file, state, output string
	var dry, forget bool
	cmd := &cobra.Command{
		Use:   "restore",
		Short: "Put back every setting that a killed homenode left changed, and thaw what it left frozen",
		Long: "Puts back what is on record, the CPUs of single threads included. If the record is damaged, it puts back\n" +
			"the rest, keeps what it cannot read, and lists cgroups that look as if homenode had set them, each with the\n" +
			"command that undoes it. The exit code is then 3. Check these cgroups, then run 'homenode restore --forget-damage'.",
		Args: cli.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.CheckOutput(output); err != nil {
				return err
			}
			c, err := agentConfig(file, state)
			if err != nil {
				return err
			}
			if dry {
				foreseen, err := agent.Foresee(c.StateDir, c.DirectOwners, c.Runtimes)
				return errors.Join(sayRestored(cmd, output, dry, foreseen), restoreResult(dry, foreseen, err))
			}
			if forget {
				if err := agent.ForgetDamage(c.StateDir); err != nil {
					return exit.Precondition(err)
				}
			}
			restored, err := agent.Restore(cmd.Context(), c.StateDir, c.DirectOwners, c.Runtimes)
			if errors.Is(err, journal.ErrDamaged) {
				saySuspects(cmd, c.StateDir)
			}
			return errors.Join(sayRestored(cmd, output, dry, restored), restoreResult(dry, restored, err))
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "the agent's configuration file")
	cmd.Flags().StringVar(&state, "state", "", "folder of the journal (default: the configuration's, "+agent.DefaultStateDir+")")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "report what would be put back, but change nothing")
	cmd.Flags().BoolVar(&forget, "forget-damage", false, "forget that the journal was damaged; check first what it may have left")
	cmd.MarkFlagsMutuallyExclusive("dry-run", "forget-damage")
	cli.OutputFlag(cmd, &output)
	return cmd
}

// saySuspects prints for people, whatever the output format.
func saySuspects(cmd *cobra.Command, state string) {
	all, err := agent.Suspects(cmd.Context(), state)
	if err != nil {
		fmt.Fprintln(cmd.ErrOrStderr(), render.Printable("homenode: look for what the damaged journal may have left: "+err.Error()))
	}
	for _, s := range all {
		fmt.Fprintln(cmd.ErrOrStderr(), render.Printable("may be left: "+s.String()))
	}
}

func sayRestored(cmd *cobra.Command, output string, dry bool, restored []journal.Restored) error {
	if output == "json" {
		if restored == nil {
			restored = []journal.Restored{}
		}
		return schema.NewEncoder(cmd.OutOrStdout()).Encode(map[string]any{"schema": 1, "dry_run": dry, "restored": restored})
	}
	for _, r := range restored {
		if dry {
			fmt.Fprint(cmd.OutOrStdout(), "dry run: ")
		}
		fmt.Fprintln(cmd.OutOrStdout(), render.Printable(fmt.Sprint(r)))
	}
	return nil
}

// restoreResult: a setting that failed, or is kept because others depend on it,
// stays outstanding. The result is "partly" if any other setting was put back.
func restoreResult(dry bool, restored []journal.Restored, err error) error {
	done, open, then := 0, 0, "are still to be put back: run 'homenode restore' again later"
	if dry {
		then = "could not be put back now"
	}
	for _, r := range restored {
		if r.Result == journal.NotDone || r.Result == journal.Kept {
			open++
		} else {
			done++
		}
	}
	switch {
	case errors.Is(err, journal.ErrDamaged):
		return exit.With(exit.Partly, err)
	case err == nil && len(restored) == 0:
		return exit.With(exit.Nothing, errors.New("nothing to put back: the journal is empty"))
	case open > 0 && done > 0:
		return exit.With(exit.Partly, errors.Join(err, fmt.Errorf("%d of %d settings %s", open, open+done, then)))
	case open > 0 && err == nil:
		err = fmt.Errorf("%d settings %s", open, then)
	}
	return exit.Precondition(err)
}
