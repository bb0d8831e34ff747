// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"homenode/internal/agent"
	"homenode/internal/exit"
	"homenode/internal/kernel"
	"homenode/internal/kernel/unix"
)

// Run runs the loop together with the API, metrics over TCP if configured,
// SIGHUP, and systemd's notifications.
func Run(ctx context.Context, a *agent.Agent, version string, log *slog.Logger, hangup <-chan os.Signal) error {
	around, end := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer end()
	if err := openAPI(around, a, version, log, &all); err != nil {
		a.Close()
		return exit.BadInput(err)
	}
	all.Go(func() { reloadOnHangup(around, a, log, hangup) })
	all.Go(func() { feedWatchdog(around, a, log) })
	tellSystemd(log, "READY=1", "STATUS=watching")
	err := a.Run(ctx)
	tellSystemd(log, "STOPPING=1")
	return err
}

// openAPI opens the sockets. If the configuration does not name one, its
// failure is only a warning.
func openAPI(ctx context.Context, a *agent.Agent, version string, log *slog.Logger, all *sync.WaitGroup) error {
	c := a.Config()
	s, err := NewServer(a, ServerOptions{Version: version, Log: log})
	if err != nil {
		return err
	}
	serve := func(what string, f func() error) {
		all.Go(func() {
			if err := f(); err != nil {
				log.Error(what, "error", err)
			}
		})
	}
	if c.API.Socket != "" {
		l, err := Listen(c.API)
		switch {
		case err == nil:
			serve("api", func() error { defer l.Close(); return s.Serve(ctx, l) })
		case c.API.Asked || c.API.Group != "":
			return err
		default:
			log.Warn("no API", "error", err)
		}
	}
	l, err := listenMetrics(c.Metrics.Listen, a.DryRun(), log)
	if l != nil {
		serve("metrics", func() error { return s.ServePublic(ctx, l) })
	}
	return err
}

// listenMetrics opens the TCP port, if one is configured. An agent needs it. A dry run goes
// on without it: the agent that runs beside it has the port, and the dry run has its socket.
func listenMetrics(address string, dry bool, log *slog.Logger) (net.Listener, error) {
	if address == "" {
		return nil, nil
	}
	l, err := net.Listen("tcp", address)
	if err == nil {
		return l, nil
	}
	if dry {
		log.Warn("no metrics on metrics.listen: they are on the socket of this dry run", "error", err)
		return nil, nil
	}
	err = fmt.Errorf("metrics: %w", err)
	if errors.Is(err, syscall.EADDRINUSE) {
		err = fmt.Errorf("%w: end the process that listens there, which may be a dry run of homenode, or name another address in metrics.listen", err)
	}
	return nil, err
}

// Hangups is the first thing that an agent calls, and lasts until the process ends. A SIGHUP
// while settings are restored, at the start or at the end, must not end the agent. A SIGHUP
// before the loop runs becomes a reload when it runs. SIGUSR2 is for 'homenode handover'.
func Hangups() chan os.Signal {
	hangup := make(chan os.Signal, 2)
	hear(hangup)
	return hangup
}

// reloadOnHangup reloads on SIGHUP, which systemd sends for Type=notify-reload and
// 'systemctl reload', and hands over on SIGUSR2.
func reloadOnHangup(ctx context.Context, a *agent.Agent, log *slog.Logger, hangup <-chan os.Signal) {
	for {
		select {
		case <-ctx.Done():
			return
		case s := <-hangup:
			if s == syscall.SIGUSR2 {
				a.HandOver()
				continue
			}
		}
		tellSystemd(log, "RELOADING=1", fmt.Sprintf("MONOTONIC_USEC=%d", kernel.Monotonic().Microseconds()))
		status := "STATUS=watching"
		if _, err := a.Reload(); err != nil { // Reload logs it
			status = "STATUS=watching; the last configuration was refused"
		}
		tellSystemd(log, "READY=1", status)
	}
}

// feedWatchdog tells systemd that the loop runs, for as long as it does.
func feedWatchdog(ctx context.Context, a *agent.Agent, log *slog.Logger) {
	every := watchdog()
	if every == 0 {
		return
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if a.Health().Alive {
			tellSystemd(log, "WATCHDOG=1")
		}
	}
}

func tellSystemd(log *slog.Logger, state ...string) {
	if err := unix.Notify(state...); err != nil {
		log.Warn("systemd", "error", err)
	}
}
