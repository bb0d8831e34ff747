// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/hub"
	"homenode/internal/hub/deploy"
	"homenode/internal/hub/query"
	"homenode/internal/hub/sensitivity"
	"homenode/internal/render"
	"homenode/internal/schema"
	"homenode/internal/store"
)

func deployCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "deploy",
		Short: "Bind a service host by host, check the gain, undo it where there is none",
		Long: "Binds a service on a tenth of its replicas, then on a quarter, half and all of them. A stage is widened\n" +
			"when more harm than a margin is excluded, and the last one when the gain is proven. What does harm, shows\n" +
			"no gain, or shows nothing any more, is undone. Hosts pull their orders, and do what their own rules allow.",
	}
	cmd.AddCommand(planCommand(), startCommand(), statusCommand(),
		askCommand("pause", "Keep a rollout where it is", "It is not widened, and does not end because no gain was shown. Harm still ends it."),
		askCommand("resume", "Let a paused rollout go on", "It goes on with its next look."),
		askCommand("rollback", "Undo a rollout", "All hosts are told that the service is not approved, also after its end."),
		askCommand("veto", "Undo a rollout, and refuse further ones of its service", "It holds until 'homenode-hub deploy forget'."),
		forgetCommand(), rowsCommand())
	return cmd
}

// folder is that of the configuration, made if make is set.
func folder(file string, make bool) (hub.Config, *deploy.Folder, error) {
	c, err := readConfig(file)
	if err != nil {
		return c, nil, err
	}
	f, err := deploy.OpenFolder(c.Rollouts.Folder, make)
	return c, f, exit.BadInput(err)
}

// storeOf is the configuration's store, which a hub may have open.
func storeOf(ctx context.Context, c hub.Config) (store.Store, error) {
	if c.ClickHouse.Address == "" {
		return storeAt(ctx, "sqlite:"+c.SQLite)
	}
	o, err := clickhouseOptions(c.ClickHouse)
	if err != nil {
		return nil, err
	}
	return openClickHouse(ctx, o)
}

// proposing are the flags of plan and start.
type proposing struct {
	file, output, indicator string
	model                   string
	expected                *sensitivity.Service // by the model; nil: none is given
	margin                  float64
	seed                    uint64
	bin                     time.Duration
}

func (p *proposing) flags(cmd *cobra.Command) {
	configFlag(cmd, &p.file)
	cmd.Flags().StringVar(&p.indicator, "indicator", string(deploy.Latency), "what replicas are compared by: latency, ipc (more is better, but spinning counts as work) or cpus (CPU time; less is better, where all have the same load)")
	cmd.Flags().Float64Var(&p.margin, "margin", 0.02, "harm that must be excluded before a stage is widened, a share of the indicator")
	cmd.Flags().Uint64Var(&p.seed, "seed", 1, "chooses which hosts come first")
	cmd.Flags().StringVar(&p.model, "model", "", "manifest of a model of gains, as for 'homenode-hub sensitivity': shows the gain that it expects; 'start' refuses a service that it does not find worth binding")
	cmd.Flags().DurationVar(&p.bin, "bin", 10*time.Minute, "time over which each replica shows one figure")
	cli.OutputFlag(cmd, &p.output)
}

// propose makes a proposal, which the file of orders does not stand against.
func (p *proposing) propose(ctx context.Context, c hub.Config, service string) (deploy.Proposal, error) {
	if !slices.Contains(deploy.Indicators, deploy.Indicator(p.indicator)) {
		return deploy.Proposal{}, fmt.Errorf("--indicator is %q: want latency, ipc or cpus", p.indicator)
	}
	if c.Orders != "" {
		o, err := hub.ReadOrders(c.Orders)
		if err != nil {
			return deploy.Proposal{}, err
		}
		if o.Names(service) {
			return deploy.Proposal{}, fmt.Errorf("%s names %q: the file of orders comes before a rollout: remove the service there", c.Orders, service)
		}
	}
	s, err := storeOf(ctx, c)
	if err != nil {
		return deploy.Proposal{}, err
	}
	defer s.Close()
	one, err := deploy.Propose(ctx, s, service, deploy.Options{Indicator: deploy.Indicator(p.indicator), Margin: p.margin, Seed: p.seed, Bin: p.bin}, time.Now())
	if err == nil && p.model != "" {
		p.expected, err = expect(ctx, s, p.model, service)
	}
	return one, err
}

// expect asks a model what binding would bring the service.
func expect(ctx context.Context, s deploy.Asker, model, service string) (*sensitivity.Service, error) {
	m, err := openModel(model)
	if err != nil {
		return nil, err
	}
	q := store.Question{Topic: store.Features, Service: service, From: time.Now().Add(-24 * time.Hour), Until: time.Now()}
	t, err := s.Ask(ctx, q)
	if err != nil {
		return nil, err
	}
	r := sensitivity.Rank(query.AnswerOf(q, t).Rows, m, sensitivity.Usual)
	for i := range r.Services {
		if r.Services[i].Service == schema.Name(service) {
			return &r.Services[i], nil
		}
	}
	return nil, fmt.Errorf("the status database has no features of %q for the last day", service)
}

// worth refuses to start what the model does not find worth it.
func (p *proposing) worth() error {
	e := p.expected
	if e == nil || e.Verdict == sensitivity.Worth {
		return nil
	}
	return fmt.Errorf("the model does not find %q worth binding: it expects a gain of %s to %s (%s; %s): leave out --model to try nevertheless",
		e.Service, render.Percent(e.Low), render.Percent(e.High), e.Verdict, e.Reason)
}

func planCommand() *cobra.Command {
	var p proposing
	cmd := &cobra.Command{
		Use:   "plan SERVICE",
		Short: "Show how a service would be rolled out, and whether it can be",
		Long: "Shows the stages, by what they would be judged, how long that takes, and what the status database says of\n" +
			"the gain. Nothing is changed.",
		Example: "  homenode-hub deploy plan shop\n  homenode-hub deploy plan batch --indicator cpus --margin 0.05",
		Args:    cli.Exactly(1, "a service"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.run(cmd, args[0], func(deploy.Proposal, *deploy.Folder) error { return nil })
		},
	}
	p.flags(cmd)
	cli.Writes(cmd, PlanReport{})
	return cli.Exits(cmd, "2", "the service cannot be rolled out: the line says why")
}

func startCommand() *cobra.Command {
	var p proposing
	cmd := &cobra.Command{
		Use:     "start SERVICE",
		Short:   "Roll a service out",
		Long:    "Starts what 'homenode-hub deploy plan' shows with the same flags. A running hub ('homenode-hub serve') carries\nit on.",
		Example: "  homenode-hub deploy start shop",
		Args:    cli.Exactly(1, "a service"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.run(cmd, args[0], func(one deploy.Proposal, f *deploy.Folder) error {
				if err := p.worth(); err != nil {
					return err
				}
				return f.Start(cmd.Context(), one.Rollout, asked("start", fmt.Sprintf("indicator %s, margin %g, seed %d, bins of %v", p.indicator, p.margin, p.seed, p.bin)), 0)
			})
		},
	}
	p.flags(cmd)
	cli.Writes(cmd, PlanReport{})
	return cli.Exits(cmd, "2", "the service cannot be rolled out: the line says why")
}

func (p *proposing) run(cmd *cobra.Command, service string, then func(deploy.Proposal, *deploy.Folder) error) error {
	if err := cli.CheckOutput(p.output); err != nil {
		return err
	}
	c, f, err := folder(p.file, cmd.Name() == "start")
	if err != nil {
		return err
	}
	one, err := p.propose(cmd.Context(), c, service)
	if err == nil {
		err = then(one, f)
	}
	if err != nil {
		return exit.BadInput(err)
	}
	if p.output == "json" {
		return schema.NewEncoder(cmd.OutOrStdout()).Encode(planReport(one, p.expected))
	}
	t := cli.Screen().Terminal()
	showPlan(&t, one, p.expected, cmd.Name() == "start")
	return t.Flush(cmd.OutOrStdout(), "plan")
}

// asked is a request of the person who runs this program.
func asked(what, why string) deploy.Asked {
	by := cmp.Or(os.Getenv("SUDO_USER"), func() string {
		if u, err := user.Current(); err == nil {
			return u.Username
		}
		return "unknown"
	}())
	return deploy.Asked{At: time.Now().UTC().Truncate(time.Second), By: by, What: what, Why: why}
}

func askCommand(what, short, long string) *cobra.Command {
	var file, why string
	cmd := &cobra.Command{
		Use:     what + " SERVICE",
		Short:   short,
		Long:    long,
		Example: "  homenode-hub deploy " + what + ` shop --why "a sale until Friday"`,
		Args:    cli.Exactly(1, "a service"),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, f, err := folder(file, false)
			if err != nil {
				return err
			}
			if err := f.Ask(cmd.Context(), args[0], asked(what, why)); err != nil {
				return exit.BadInput(notThere(err))
			}
			r, err := f.Get(args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", render.Name(args[0]), stateOf(r))
			return err
		},
	}
	configFlag(cmd, &file)
	cmd.Flags().StringVar(&why, "why", "", "a reason, kept with the rollout")
	return cli.Exits(cmd, "2", "the service has no rollout, or not one that allows it")
}

func notThere(err error) error {
	if errors.Is(err, deploy.ErrNone) {
		return fmt.Errorf("%w: 'homenode-hub deploy status' lists those that there are", err)
	}
	return err
}

func forgetCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:     "forget SERVICE",
		Short:   "Forget a rollout that has ended, and its order",
		Long:    "From then on the configuration of each host says whether the service is bound.",
		Example: "  homenode-hub deploy forget shop",
		Args:    cli.Exactly(1, "a service"),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, f, err := folder(file, false)
			if err != nil {
				return err
			}
			if err := f.Forget(cmd.Context(), args[0]); err != nil {
				return exit.BadInput(notThere(err))
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: each host's own configuration holds again.\n", render.Name(args[0]))
			return err
		},
	}
	configFlag(cmd, &file)
	return cli.Exits(cmd, "2", "the service has no rollout that has ended")
}

func statusCommand() *cobra.Command {
	var file, output string
	cmd := &cobra.Command{
		Use:     "status [SERVICE]",
		Short:   "Show rollouts, or one with every step and its evidence",
		Long:    "Lists the rollouts, or shows one: where it is, what the bound replicas show against the others, each step\nwith the reason, and who asked for what.",
		Example: "  homenode-hub deploy status\n  homenode-hub deploy status shop",
		Args:    cli.AtMostOne("one service"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cli.CheckOutput(output); err != nil {
				return err
			}
			_, f, err := folder(file, false)
			if err != nil {
				return err
			}
			all, bad := f.All()
			if len(args) == 1 {
				one, err := f.Get(args[0])
				if err != nil {
					return exit.BadInput(notThere(err))
				}
				all, bad = []deploy.Rollout{one}, nil
			}
			if output == "json" {
				err = schema.NewEncoder(cmd.OutOrStdout()).Encode(reportOfRollouts(all))
			} else {
				t := cli.Screen().Terminal()
				if len(args) == 1 {
					showRollout(&t, all[0])
				} else {
					showRollouts(&t, all)
				}
				err = t.Flush(cmd.OutOrStdout(), "rollouts")
			}
			if err == nil && bad != nil {
				err = exit.BadInput(bad)
			}
			return err
		},
	}
	configFlag(cmd, &file)
	cli.OutputFlag(cmd, &output)
	cli.Writes(cmd, RolloutsReport{})
	return cli.Exits(cmd, "2", "a rollout cannot be read, or the service has none")
}

// stateOf is a rollout's state in a few words.
func stateOf(r deploy.Rollout) string {
	return fmt.Sprintf("%s, %d of %s to be bound", r.Words(), r.State.BoundCount(), render.Count(len(r.State.Plan.Replicas), "replica"))
}
