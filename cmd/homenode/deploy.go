// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"homenode/internal/agent"
	"homenode/internal/agent/serve"
	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/kernel/unix"
	"homenode/internal/profiling"
	"homenode/internal/profiling/host"
	"homenode/internal/report"
	"homenode/internal/unit"
	"homenode/internal/webhook"
)

func deployCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "deploy",
		Short: "Try a service's replicas on this host, approve it where it gains, undo it where it does not",
		Long: "Tries the replicas of a service one after the other, bound and unbound by turns, as 'homenode experiment' does.\n" +
			"The first must show a gain, the others that they are not hurt. Then the service is approved as if by\n" +
			"'approved: true', and the agent binds it. What is not shown is undone. A fleet has 'homenode-hub deploy'.",
	}
	cmd.AddCommand(deployPlanCommand(), deployStartCommand(), deployStatusCommand(), deployRollbackCommand(), deployForgetCommand())
	return cmd
}

// deployFlags are those of plan and start.
type deployFlags struct {
	profilingFlags
	deployedFlags
	tellFlags
	deploy host.DeployOptions
}

func (f *deployFlags) add(cmd *cobra.Command) {
	f.addMeasuring(cmd, "")
	f.addFiles(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.Nodes, "nodes", "", "nodes to try; default: those to which the agent would bind it now. It chooses anew when it binds")
	flags.IntVar(&f.Repeats, "repeats", 8, "number of measurements unbound, and bound; a multiple of 4")
	flags.Uint64Var(&f.Seed, "seed", 1, "seed of the order")
	flags.Float64Var(&f.MostLoss, "most-loss", 0.5, "share by which a replica may be slower while it is bound; 0: any")
	flags.Float64Var(&f.deploy.Least, "least", 0.02, "gain that the first replica must show, a share of the time of an operation")
	flags.Float64Var(&f.deploy.Margin, "margin", 0.02, "harm that the others must exclude, a share of the time of an operation")
}

// options are those of a service's deployment.
func (f *deployFlags) options(cmd *cobra.Command, service string) (host.DeployOptions, error) {
	if err := errors.Join(f.checkMeasuring(cmd), cli.Empty(cmd, "nodes", "config", "state")); err != nil {
		return f.deploy, exit.BadInput(err)
	}
	c, err := f.read(f.output)
	f.Version = cli.Version
	f.deploy.Options, f.deploy.Config, f.deploy.Service = f.Options, c, service
	f.deploy.Read = func() (agent.Config, error) { return f.read(f.output) }
	return f.deploy, err
}

// tellFlags name the webhook that is told of a deployment's steps.
type tellFlags struct{ webhook, message string }

func (f *tellFlags) addTelling(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.webhook, "webhook-file", "", "file with an address to which each step is posted as JSON: with https, or on this host")
	cmd.Flags().StringVar(&f.message, "message", "", "template of the text in it (default: \""+webhook.UsualText+"\")")
}

// teller posts steps; nil: there is no webhook.
func (f *tellFlags) teller() (func(context.Context, profiling.Deployment, profiling.DeployEvent) error, error) {
	if f.webhook == "" {
		if f.message != "" {
			return nil, exit.BadInput(errors.New("--message is for a webhook: name its file with --webhook-file"))
		}
		return nil, nil
	}
	address, err := unix.ReadWord(f.webhook)
	if err != nil {
		return nil, exit.BadInput(fmt.Errorf("--webhook-file: %w", err))
	}
	hook, err := webhook.New(address, f.message)
	if err != nil {
		return nil, exit.BadInput(fmt.Errorf("--webhook-file %s: %w", f.webhook, err))
	}
	name, err := os.Hostname()
	return func(ctx context.Context, d profiling.Deployment, e profiling.DeployEvent) error {
		return hook.Post(ctx, deployMessage(name, d, e))
	}, err
}

// deployMessage is what a webhook is told of a step on this host.
func deployMessage(host string, d profiling.Deployment, e profiling.DeployEvent) webhook.Message {
	m := webhook.Message{Service: d.Service, By: host, At: e.At, Code: string(e.Code), Sentence: report.DeploySentence(d, e), Phase: string(d.Phase), Replicas: len(d.Replicas)}
	if d.Phase == profiling.Kept {
		m.Bound = len(d.Replicas)
	}
	if t := e.Trial; t != nil {
		m.How = t.How
		if gain, ok := t.Gain.Value.Get(); ok {
			m.Effect = unit.Some(-gain)
		}
	}
	return m
}

// deployedFlags are those of what acts on deployments that there are.
type deployedFlags struct{ file, state, shown string }

// addFiles adds the flags that name an agent.
func (f *deployedFlags) addFiles(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.file, "config", "", "the agent's configuration file (default: "+packagedConfig+")")
	cmd.Flags().StringVar(&f.state, "state", "", "the agent's folder (default: the configuration's, "+agent.DefaultStateDir+")")
}

func (f *deployedFlags) add(cmd *cobra.Command) {
	f.addFiles(cmd)
	cli.OutputFlag(cmd, &f.shown)
}

func (f *deployedFlags) read(output string) (agent.Config, error) {
	if err := cli.CheckOutput(output); err != nil {
		return agent.Config{}, err
	}
	return agentConfig(packagedOr(f.file), f.state)
}

// packagedOr is the file that is named, or the packaged one if it is there.
func packagedOr(file string) string {
	if _, err := os.Stat(packagedConfig); file == "" && err == nil {
		return packagedConfig
	}
	return file
}

func deployPlanCommand() *cobra.Command {
	var f deployFlags
	cmd := &cobra.Command{
		Use:     "plan SERVICE",
		Short:   "Show how a service would be tried, and whether it can be",
		Long:    "Looks at each replica for --for, and says to which nodes it would be bound, and how long the trials take.\nNothing is changed.\n\nMetrics, in which {workload} is the last part of a replica's path:\n" + metricLines,
		Example: "  homenode deploy plan shop --metric ipc --no-spinning",
		Args:    cli.Exactly(1, "a service of the configuration"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := f.options(cmd, args[0])
			if err != nil {
				return err
			}
			d, all, err := host.PlanDeployment(cmd.Context(), o, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			return printed(cmd, f.output, report.NewDeploymentPlan(d, all), report.DeploymentPlanned)
		},
	}
	f.add(cmd)
	cli.Writes(cmd, report.DeploymentPlan{})
	return cli.Exits(cmd, "2", "the service cannot be tried: the line says why")
}

func deployStartCommand() *cobra.Command {
	var f deployFlags
	cmd := &cobra.Command{
		Use:   "start SERVICE",
		Short: "Try a service, and approve it where it gains",
		Long: "Carries out what 'homenode deploy plan' shows. Every step is on record: after an interrupt or a kill the same\n" +
			"command continues, and 'homenode deploy rollback' puts everything back instead. A running agent is told at\n" +
			"the end. Each trial leaves a row for 'homenode-model gain' in the folder of deployments. A step that the\n" +
			"webhook was not told is told with the next one, or by the next command, for a day.",
		Example: "  homenode deploy start shop --metric ipc --no-spinning\n" +
			"  homenode deploy start shop --for 60s --counter --metric 'file:/run/shop/{workload}.operations'",
		Args: cli.Exactly(1, "a service of the configuration"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := f.options(cmd, args[0])
			if err != nil {
				return err
			}
			if o.Tell, err = f.teller(); err != nil {
				return err
			}
			d, err := host.Deploy(cmd.Context(), o, cmd.ErrOrStderr())
			if len(d.Events) == 0 {
				return err
			}
			var notes []string
			if d.Phase == profiling.Kept {
				var refused error
				notes, refused = tellAgent(cmd.Context(), o.Config)
				err = errors.Join(err, refused)
			} else if err == nil {
				err = exit.With(exit.Partly, nil)
			}
			return errors.Join(printed(cmd, f.output, report.NewDeploymentsReport([]profiling.Deployment{d}, notes...), report.Deployments), err)
		},
	}
	f.add(cmd)
	f.addTelling(cmd)
	cli.Writes(cmd, report.DeploymentsReport{})
	return cli.Exits(cmd, "0", "the service is approved", "2", "the service cannot be tried: the line says why", "3", "rolled back, with the reason; interrupted: the same command continues; or a running agent was not told")
}

// tellAgent makes a running agent read what is deployed; notes say what comes of it. An agent that
// refuses its configuration goes on as before, which is an error.
func tellAgent(ctx context.Context, c agent.Config) (notes []string, err error) {
	socket := cmp.Or(c.API.Socket, agent.FindSocket(c.StateDir))
	var r serve.Reloaded
	err = askAgent(context.WithoutCancel(ctx), socket, "reload", http.MethodPost, "/v1/reload", &r)
	switch _, gone := os.Stat(socket); {
	case err != nil && gone != nil:
		return []string{"No agent runs: it takes this at its start."}, nil
	case err != nil:
		return nil, exit.With(exit.Partly, fmt.Errorf("the running agent was not told, and goes on as before: %w: run 'homenode reload'", err))
	}
	notes = []string{"The running agent takes this with its next window."}
	if len(r.Waits) > 0 {
		notes = append(notes, "Other settings of its configuration wait for a restart: "+strings.Join(r.Waits, ", ")+".")
	}
	return notes, nil
}

func deployStatusCommand() *cobra.Command {
	var f deployedFlags
	cmd := &cobra.Command{
		Use:     "status [SERVICE]",
		Short:   "Show what was tried on this host, with every step and its evidence",
		Example: "  homenode deploy status\n  homenode deploy status shop -o json",
		Args:    cli.AtMostOne("one service"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.read(f.shown)
			if err != nil {
				return err
			}
			all, bad := agent.Deployments(c.Deployments)
			if len(args) == 1 {
				one, err := host.DeploymentOf(c, args[0])
				if err != nil {
					return err
				}
				all, bad = []profiling.Deployment{one}, nil
			}
			return errors.Join(printed(cmd, f.shown, report.NewDeploymentsReport(all), report.Deployments), exit.BadInput(bad))
		},
	}
	f.add(cmd)
	cli.Writes(cmd, report.DeploymentsReport{})
	return cli.Exits(cmd, "2", "a deployment cannot be read, or the service has none")
}

func deployRollbackCommand() *cobra.Command {
	var f struct {
		deployedFlags
		tellFlags
	}
	var why string
	cmd := &cobra.Command{
		Use:     "rollback SERVICE",
		Short:   "Undo a deployment, also after its end",
		Long:    "The service is approved no more, and a running agent unbinds it. What a killed trial left is put back, its memory\nincluded. Where something cannot be put back now, the same command tries again.",
		Example: `  homenode deploy rollback shop --why "a sale until Friday"`,
		Args:    cli.Exactly(1, "a service"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.read(f.shown)
			if err != nil {
				return err
			}
			tell, err := f.teller()
			if err != nil {
				return err
			}
			d, notes, err := host.RollBack(cmd.Context(), host.DeployOptions{Config: c, Service: args[0], Tell: tell}, why)
			if d.Phase != profiling.RolledBack {
				return err
			}
			told, refused := tellAgent(cmd.Context(), c) // whatever is left to be put back
			return errors.Join(printed(cmd, f.shown, report.NewDeploymentsReport([]profiling.Deployment{d}, append(told, notes...)...), report.Deployments), err, refused)
		},
	}
	f.add(cmd)
	f.addTelling(cmd)
	cmd.Flags().StringVar(&why, "why", "", "a reason, kept with the deployment")
	cli.Writes(cmd, report.DeploymentsReport{})
	return cli.Exits(cmd, "2", "the service has no deployment, or is being tried: interrupt that first", "3", "a running agent was not told", "4", "it is rolled back already, and nothing is left of it")
}

func deployForgetCommand() *cobra.Command {
	var f deployedFlags
	cmd := &cobra.Command{
		Use:     "forget SERVICE",
		Short:   "Forget a deployment that has ended",
		Long:    "From then on the configuration alone says whether the service is bound. Shows those that are left.",
		Example: "  homenode deploy forget shop",
		Args:    cli.Exactly(1, "a service"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.read(f.shown)
			if err != nil {
				return err
			}
			if err := host.ForgetDeployment(host.DeployOptions{Config: c, Service: args[0]}); err != nil {
				return err
			}
			left, bad := agent.Deployments(c.Deployments)
			notes, refused := tellAgent(cmd.Context(), c)
			return errors.Join(printed(cmd, f.shown, report.NewDeploymentsReport(left, notes...), report.Deployments), exit.BadInput(bad), refused)
		},
	}
	f.add(cmd)
	cli.Writes(cmd, report.DeploymentsReport{})
	return cli.Exits(cmd, "2", "the service has no deployment that has ended")
}
