// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	"homenode/internal/source"
	"homenode/internal/views"
)

type agentOptions struct {
	file, state, profile, output string
	dry, observe, check          bool
	rounds                       uint64
}

func agentCommand() *cobra.Command {
	var o agentOptions
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Watch this host's workloads and keep them next to their memory",
		Long: "Watches the cgroups of its configuration, binds approved services whose local access ratio is below\n" +
			"target, moves their memory home, and puts everything back when it ends. After a kill, the next start\n" +
			"(or 'homenode restore') puts back what was left.\n\n" +
			"--check reads the configuration and starts nothing. --dry-run decides and reports, and at its end says what it would have done; 'homenode status',\n" +
			"'why' and 'reload' find it while it runs. --observe decides nothing, and can run for weeks. Both work\n" +
			"without root, with what that allows.",
		Example: "  homenode agent --check --config agent.yaml\n  homenode agent --config agent.yaml --dry-run\n  homenode agent --observe",
		Args:    cli.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.check {
				return checkConfig(cmd, o.file, o.state, o.output)
			}
			if o.output != "text" {
				return exit.BadInput(fmt.Errorf("-o %s is for --check: the agent's log has its format in the configuration (log: format)", o.output))
			}
			return o.run(cmd)
		},
	}
	cli.Exits(cmd, "0", "ended as asked; --check: the agent would start", "2", "bad configuration, or something that must be there is not; --check: the agent would not start")
	cmd.Flags().StringVar(&o.file, "config", "", "configuration file (YAML); without it no service is approved or bound")
	cmd.Flags().StringVar(&o.state, "state", "", "folder of journal and status (default: the configuration's, "+agent.DefaultStateDir+"; without root ~/.local/state/homenode)")
	cmd.Flags().StringVar(&o.profile, "cpuprofile", "", "file for a CPU profile of the agent itself")
	cmd.Flags().BoolVar(&o.dry, "dry-run", false, "decide and report, but change nothing")
	cmd.Flags().BoolVar(&o.observe, "observe", false, "watch and report only, whatever the configuration's mode")
	cmd.Flags().BoolVar(&o.check, "check", false, "check the configuration (default: "+packagedConfig+" if it is there), and start nothing")
	cmd.Flags().Uint64Var(&o.rounds, "rounds", 0, "number of windows after which the agent ends; 0: no limit")
	cmd.MarkFlagsMutuallyExclusive("dry-run", "observe", "check")
	cli.OutputFlag(cmd, &o.output)
	cmd.Flags().Lookup("output").Usage = "of --check: " + cmd.Flags().Lookup("output").Usage
	cli.Writes(cmd, agent.Check{})
	return cmd
}

func (o agentOptions) run(cmd *cobra.Command) error {
	hangup := serve.Hangups()
	agent.StaySmall(0)
	load := func() (agent.Config, error) { return o.config(cmd.ErrOrStderr()) }
	c, err := load()
	if err != nil {
		return err
	}
	if o.profile != "" {
		f, err := os.Create(o.profile)
		if err != nil {
			return exit.BadInput(err)
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	var next func(context.Context) (agent.Check, error)
	if o.file == "" {
		load = nil
	} else {
		next = serve.Asker(o.file, o.state)
	}
	log, relog := agent.Logger(cmd.ErrOrStderr(), c.Log)
	handed, err := unix.Handed()
	if err != nil {
		log.Warn("nothing is taken over", "error", err)
	}
	a, err := agent.New(cmd.Context(), agent.Options{Config: c, DryRun: o.dry, Rounds: o.rounds, Log: log, Relog: relog, Load: load,
		Handed: handed, Exec: serve.Replacer(hangup), Next: next})
	if err != nil {
		return exit.Precondition(err)
	}
	err = serve.Run(cmd.Context(), a, cli.Version, log, hangup)
	if o.dry && (err == nil || a.Summary().Windows > 0) {
		err = errors.Join(err, views.Summary(cli.Text(cmd.OutOrStdout()), a.Summary()))
	}
	return err
}

// config is the configuration with what the flags change.
func (o agentOptions) config(stderr io.Writer) (agent.Config, error) {
	c, err := agentConfig(o.file, ownState(o.file, o.state))
	if err != nil {
		return c, err
	}
	if o.observe {
		c.Mode = agent.ModeObserve
	}
	if err := useProfile(&c); err != nil {
		cli.Tell(stderr, []string{"warning: " + err.Error() + ": costs are estimates"})
	}
	return c, nil
}

// ownState is the folder that an agent of this user has, if neither file nor state name one.
func ownState(file, state string) string {
	c, err := agentConfig(file, state)
	if own := agent.UserStateDir(); err == nil && !c.StateDirAsked && os.Geteuid() != 0 && own != "" {
		return own
	}
	return state
}

// agentConfig reads the file, if one is named.
func agentConfig(file, state string) (agent.Config, error) {
	c, err := agent.ReadConfig(file, state)
	return c, exit.BadInput(err)
}

// stateFlags name an agent that a command acts on: by its configuration, or by its folder.
type stateFlags struct{ file, state, output string }

// add adds the flags; what is in the folder.
func (f *stateFlags) add(cmd *cobra.Command, what string) {
	cmd.Flags().StringVar(&f.file, "config", "", "the agent's configuration file")
	cmd.Flags().StringVar(&f.state, "state", "", "folder of "+what+" (default: the configuration's, "+agent.DefaultStateDir+")")
	cli.OutputFlag(cmd, &f.output)
}

func (f stateFlags) read() (agent.Config, error) {
	if err := cli.CheckOutput(f.output); err != nil {
		return agent.Config{}, err
	}
	return agentConfig(f.file, f.state)
}

// without is the configuration of a restore whose file cannot be read, by a mistake that its
// agent may have ended of: the defaults and --state.
func (f stateFlags) without(cmd *cobra.Command, mistake error) (agent.Config, error) {
	c, err := agentConfig("", f.state)
	if err != nil || cli.CheckOutput(f.output) != nil {
		return c, mistake
	}
	cli.Finish(cmd.Root().Name(), mistake, cmd.ErrOrStderr())
	fmt.Fprintln(cmd.ErrOrStderr(), render.Printable("homenode: this configuration cannot be used: what "+c.StateDir+" has on record is put back without it"))
	return c, nil
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
		return fmt.Errorf("profile of the configuration: %w", short(err))
	}
	c.Actuate.Profile = &p
	c.MAO = c.MAO.WithProfile(&p)
	return nil
}

func restoreCommand() *cobra.Command {
	var f stateFlags
	var dry, forget bool
	cmd := &cobra.Command{
		Use:   "restore",
		Short: "Put back every setting that a killed homenode left changed, and thaw what it left frozen",
		Long: "Puts back what is on record, the CPUs of single threads included. If the record is damaged, it puts back\n" +
			"the rest, keeps what it cannot read, and lists cgroups that look as if homenode had set them, each with the\n" +
			"command that undoes it. Check these cgroups, then run 'homenode restore --forget-damage'. A configuration\n" +
			"that cannot be read prevents nothing: the record in --state, or in the default folder, is put back.",
		Args: cli.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) (failed error) {
			c, err := f.read()
			if err != nil && f.file != "" && !forget {
				c, err = f.without(cmd, err)
				defer func() { // nothing in this folder: the record may be where the file has it
					if e := (exit.Error{}); errors.As(failed, &e) && e.Code == exit.Nothing {
						failed = exit.With(exit.Bad, nil) // the mistake was said
					}
				}()
			}
			if err != nil {
				return err
			}
			if dry {
				foreseen, err := agent.Foresee(c.StateDir, c.DirectOwners, c.Runtimes)
				return errors.Join(views.Restored(cmd.OutOrStdout(), f.output, dry, foreseen), views.RestoreResult(dry, foreseen, err))
			}
			if forget {
				if err := agent.ForgetDamage(c.StateDir); err != nil {
					return exit.Precondition(err)
				}
			}
			restored, err := agent.Restore(cmd.Context(), c.StateDir, c.DirectOwners, c.Runtimes)
			if errors.Is(err, journal.ErrDamaged) {
				all, err := agent.Suspects(cmd.Context(), c.StateDir)
				views.Suspects(cmd.ErrOrStderr(), all, err)
			}
			return errors.Join(views.Restored(cmd.OutOrStdout(), f.output, dry, restored), views.RestoreResult(dry, restored, err))
		},
	}
	cli.Exits(cmd, "3", "some settings could not be put back, or the record is damaged", "4", "there was nothing to put back")
	f.add(cmd, "the journal")
	cli.Writes(cmd, views.RestoredReport{})
	cmd.Flags().BoolVar(&dry, "dry-run", false, "report what would be put back, but change nothing")
	cmd.Flags().BoolVar(&forget, "forget-damage", false, "forget that the journal was damaged; check first what it may have left")
	cmd.MarkFlagsMutuallyExclusive("dry-run", "forget-damage")
	return cmd
}
