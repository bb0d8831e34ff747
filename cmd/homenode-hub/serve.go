// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/hub"
	"homenode/internal/hub/ca"
	"homenode/internal/hub/deploy"
	"homenode/internal/kernel/unix"
	"homenode/internal/store"
	"homenode/internal/webhook"
)

const packagedConfig = "/etc/homenode/hub.yaml"

// configFlag names the hub that a command is about.
func configFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "config", packagedConfig, "the hub's configuration file (YAML)")
}

func readConfig(file string) (hub.Config, error) {
	c, err := hub.ReadConfig(file)
	return c, exit.BadInput(err)
}

func serveCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Receive what agents send, and serve pages and questions",
		Long: "Receives what agents send, keeps it in the store, and serves pages, questions, metrics and health. Its\n" +
			"authority is made at the first start. Several may run over one store and one authority's folder.",
		Example: "  homenode-hub serve --config hub.yaml",
		Args:    cli.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := readConfig(file)
			if err != nil {
				return err
			}
			return serve(cmd.Context(), c, cmd.ErrOrStderr(), nil)
		},
	}
	configFlag(cmd, &file)
	return cli.Exits(cmd, "0", "ended as asked", "2", "bad configuration, or something that must be there is not")
}

// serve runs a hub until the context ends. started is told when it listens.
func serve(ctx context.Context, c hub.Config, stderr io.Writer, started func(agents, people net.Addr, a *ca.Authority) error) error {
	log := slog.New(slog.NewTextHandler(stderr, nil))
	authority, err := ca.Open(c.Authority, true)
	if err != nil {
		return exit.BadInput(err)
	}
	s, err := openStore(ctx, c, log)
	if err != nil {
		return exit.BadInput(err)
	}
	defer s.Close()
	rollouts, err := deploy.OpenFolder(c.Rollouts.Folder, true)
	if err != nil {
		return exit.BadInput(err)
	}
	h := hub.New(s, hub.Options{Authority: authority, Names: c.Names, OrdersFile: c.Orders, Rollouts: ordersOf(rollouts), Requests: c.Requests, Gather: c.Gather, Version: cli.Version, Log: log})
	defer h.Close()
	mux := http.NewServeMux()
	h.AddRoutes(mux)
	var model *hub.ModelFile
	if c.Rollouts.Model != "" {
		model = &hub.ModelFile{Manifest: c.Rollouts.Model}
		if _, err := model.Get(); err != nil {
			return exit.BadInput(fmt.Errorf("rollouts.model: %w", err))
		}
	}
	if err := addPages(mux, h, s, rollouts, model, c); err != nil {
		return err
	}
	agents, people, err := listen(c)
	if err != nil {
		return exit.BadInput(err)
	}
	log.Info("serving", "agents", agents.Addr().String(), "store", storeName(c))
	if started != nil {
		var at net.Addr
		if people != nil {
			at = people.Addr()
		}
		if err := started(agents.Addr(), at, authority); err != nil {
			return errors.Join(err, agents.Close())
		}
	}
	if err := unix.Notify("READY=1"); err != nil {
		log.Warn("systemd", "error", err)
	}
	end, err := carryOn(ctx, rollouts, h, s, c, model, log)
	if err != nil {
		return exit.BadInput(err)
	}
	defer end()
	return h.Run(ctx, agents, people, mux, c.Retention.Store())
}

// ordersOf are a host's orders for services under rollout.
func ordersOf(f *deploy.Folder) func(string) []hub.ServiceOrder {
	return func(host string) (all []hub.ServiceOrder) {
		for _, o := range f.Orders(host) {
			all = append(all, hub.ServiceOrder{Name: o.Service, Approved: o.Approved})
		}
		return all
	}
}

// carryOn carries rollouts on, starts some, and tells the webhook, until the context ends or end is called.
func carryOn(ctx context.Context, f *deploy.Folder, h *hub.Server, s store.Store, c hub.Config, model *hub.ModelFile, log *slog.Logger) (end func(), err error) {
	ctx, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	runner := deploy.Runner{Folder: f, Store: s, Named: h.Named, Away: h.ValidFor, Now: time.Now, Log: log}
	all.Go(func() { runner.Run(ctx) })
	if len(c.Rollouts.Start.Services) > 0 {
		chooser := hub.Chooser{Folder: f, Store: s, Model: model.Get, Rules: c.Rollouts.Start, Named: h.Named, Now: time.Now, Log: log}
		all.Go(func() { chooser.Run(ctx) })
	}
	if c.Rollouts.Webhook != "" {
		hook, err := webhook.New(c.Rollouts.Webhook, c.Rollouts.Message)
		if err != nil {
			stop()
			return nil, err
		}
		w := deploy.Webhook{Hook: hook}
		all.Go(func() { w.Run(ctx, f, time.Now, log) })
	}
	return func() { stop(); all.Wait() }, nil
}

func listen(c hub.Config) (agents, people net.Listener, err error) {
	if agents, err = net.Listen("tcp", c.Listen); err != nil {
		return nil, nil, fmt.Errorf("listen for agents: %w: end the process that listens there, or change 'listen'", err)
	}
	if c.Page == "" {
		return agents, nil, nil
	}
	if people, err = net.Listen("tcp", c.Page); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("listen for people: %w: end the process that listens there, or change 'page'", err), agents.Close())
	}
	return agents, people, nil
}

func devCommand() *cobra.Command {
	var dir, agents, page string
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Try it: a hub, its store and its page on this machine",
		Long: "Starts a hub with an embedded store and a page on loopback. It makes certificates on the spot, one for\n" +
			"this host, and prints what an agent's configuration needs. Everything is in one folder.",
		Example: "  homenode-hub dev\n  homenode-hub dev --dir /tmp/hub",
		Args:    cli.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dir == "" {
				dir = filepath.Join(ownState(), "homenode-hub")
			}
			full, err := filepath.Abs(dir)
			if err != nil {
				return exit.BadInput(err)
			}
			c := hub.DefaultConfig()
			c.Listen, c.Page, c.Names = agents, page, []string{"localhost", "127.0.0.1", "::1"}
			c.Authority, c.SQLite, c.Rollouts.Folder = filepath.Join(full, "authority"), filepath.Join(full, "status.db"), filepath.Join(full, "rollouts")
			return serve(cmd.Context(), c, cmd.ErrOrStderr(), func(agents, people net.Addr, a *ca.Authority) error {
				return sayDev(cmd.OutOrStdout(), c, full, agents, people, a)
			})
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "folder of store and certificates (default: ~/.local/state/homenode-hub)")
	cmd.Flags().StringVar(&agents, "listen", "127.0.0.1:7443", "address for agents")
	cmd.Flags().StringVar(&page, "page", "127.0.0.1:7480", "address of the page")
	return cli.Exits(cmd, "0", "ended as asked", "2", "the folder or an address cannot be used")
}

func ownState() string {
	if state := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return state
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return os.TempDir()
	}
	return filepath.Join(home, ".local", "state")
}

// sayDev makes this host's certificate, and says how an agent uses it.
func sayDev(out io.Writer, c hub.Config, dir string, agents, people net.Addr, a *ca.Authority) error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	text, err := a.Pair(host)
	if err != nil {
		return exit.BadInput(err)
	}
	pair, authority, config := filepath.Join(dir, "host.pem"), filepath.Join(dir, "hub-ca.pem"), filepath.Join(dir, "hub.yaml")
	if err := errors.Join(cli.ReplaceFile(pair, text, 0o600), cli.ReplaceFile(authority, a.Certificate(), 0o644), cli.ReplaceFile(config, c.Minimal(), 0o644)); err != nil {
		return err
	}
	page := "none"
	if people != nil {
		page = "http://" + people.String() + "/"
	}
	_, err = fmt.Fprintln(out, strings.Join([]string{
		"page:   " + page,
		"agents: https://" + agents.String(),
		"config: " + config + " (for --config of other commands)",
		"",
		"Put this into the configuration of an agent on this machine:",
		"",
		"hub:",
		"  address: https://" + agents.String(),
		"  ca: " + authority,
		"  certificate: " + pair,
	}, "\n"))
	return err
}
