// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/pprof"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"homenode/internal/agent"
	"homenode/internal/journal"
	"homenode/internal/kernel"
	"homenode/internal/kernel/unix"
	"homenode/internal/report"
	"homenode/internal/schema"
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
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			hangup := hangups()
			staySmall()
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
					return badInput(err)
				}
				defer f.Close()
				if err := pprof.StartCPUProfile(f); err != nil {
					return err
				}
				defer pprof.StopCPUProfile()
			}
			log, relog := agent.Logger(cmd.ErrOrStderr(), c.Log)
			a, err := agent.New(cmd.Context(), agent.Options{Config: c, DryRun: dry, Rounds: rounds, Log: log, Relog: relog, Load: reloader(file, state)})
			if err != nil {
				return precondition(err)
			}
			return serveAgent(cmd.Context(), a, log, hangup)
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "configuration file (YAML); without one nothing is approved, and nothing bound")
	cmd.Flags().StringVar(&state, "state", "", "folder of journal and status (default: the configuration's, "+agent.DefaultStateDir+")")
	cmd.Flags().StringVar(&profile, "cpuprofile", "", "write a CPU profile of the agent itself to this file")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "decide and say, but change nothing")
	cmd.Flags().Uint64Var(&rounds, "rounds", 0, "end after so many windows")
	return cmd
}

// agentConfig reads the file, if one is named. The state folder says where other files
// are by default, so it is said before they are looked at.
func agentConfig(file, state string) (agent.Config, error) {
	var layers []agent.Layer
	if file != "" {
		text, err := unix.ReadAtMost(file, agent.MaxConfig)
		if err != nil {
			return agent.Config{}, badInput(fmt.Errorf("read configuration: %w", err))
		}
		layers = append(layers, agent.Layer{Name: file, Text: text})
	}
	if state != "" {
		layers = append(layers, agent.Layer{Name: "--state", Text: fmt.Appendf(nil, "state_dir: %q", state)})
	}
	c, err := agent.ParseLayers(layers...)
	if file != "" {
		c.Text = string(layers[0].Text)
	}
	return c, badInput(err)
}

// useProfile reads the profile that the configuration names, if any.
func useProfile(c *agent.Config) error {
	if c.Profile == "" {
		return nil
	}
	m, _, err := liveMachine()
	if err != nil {
		return err
	}
	p, err := readProfile(c.Profile, m, liveCPUModel())
	if err != nil {
		return fmt.Errorf("profile of the configuration: %w", err)
	}
	c.Actuate.Profile = &p
	return nil
}

// precondition gives exit code 2 to what is not there or not allowed.
func precondition(err error) error {
	for _, e := range []error{kernel.ErrNotSupported, kernel.ErrNotPermitted, journal.ErrLocked, fs.ErrPermission} {
		if errors.Is(err, e) {
			return badInput(err)
		}
	}
	return err
}

func restoreCommand() *cobra.Command {
	var file, state, output string
	var dry, forget bool
	cmd := &cobra.Command{
		Use:   "restore",
		Short: "Put back every setting that a killed homenode left changed, threads' CPUs included, and thaw what was left frozen",
		Long: "Puts back what is on record. Where the record was damaged, the rest is put back, what could not be\n" +
			"read is kept, cgroups that look as if homenode had set them are listed with the command that undoes\n" +
			"each, and the exit code is 3, until --forget-damage says that somebody has looked.",
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(output); err != nil {
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
					return precondition(err)
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
	cmd.Flags().BoolVar(&dry, "dry-run", false, "say what would be put back, but change nothing")
	cmd.Flags().BoolVar(&forget, "forget-damage", false, "what a damaged journal may have left was looked at: forget it")
	cmd.MarkFlagsMutuallyExclusive("dry-run", "forget-damage")
	outputFlag(cmd, &output)
	return cmd
}

// saySuspects is for people, whatever the output is for.
func saySuspects(cmd *cobra.Command, state string) {
	all, err := agent.Suspects(cmd.Context(), state)
	if err != nil {
		fmt.Fprintln(cmd.ErrOrStderr(), report.Printable("homenode: look for what the damaged journal may have left: "+err.Error()))
	}
	for _, s := range all {
		fmt.Fprintln(cmd.ErrOrStderr(), report.Printable("may be left: "+s.String()))
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
		fmt.Fprintln(cmd.OutOrStdout(), report.Printable(fmt.Sprint(r)))
	}
	return nil
}

// restoreResult: what failed, or is kept because others depend on it, stays
// outstanding: "partly" if anything else was put back.
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
		return codeError{exitPartly, err}
	case err == nil && len(restored) == 0:
		return codeError{exitNothing, errors.New("nothing to put back: the journal is empty")}
	case open > 0 && done > 0:
		return codeError{exitPartly, errors.Join(err, fmt.Errorf("%d of %d settings %s", open, open+done, then))}
	case open > 0 && err == nil:
		err = fmt.Errorf("%d settings %s", open, then)
	}
	return precondition(err)
}

func checkOutput(output string, more ...string) error {
	if output != "text" && output != "json" && !slices.Contains(more, output) {
		return badInput(fmt.Errorf("-o is %q: want %s", output, faces(more)))
	}
	return nil
}

// outputFlag adds -o; more are the faces that only this command has.
func outputFlag(cmd *cobra.Command, output *string, more ...string) {
	cmd.Flags().StringVarP(output, "output", "o", "text", faces(more))
}

// faces is "text or json", or "text, json or markdown".
func faces(more []string) string {
	all := append([]string{"text", "json"}, more...)
	return strings.Join(all[:len(all)-1], ", ") + " or " + all[len(all)-1]
}
