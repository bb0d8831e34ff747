// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"homenode/internal/agent/outbox"
	"homenode/internal/cli"
	"homenode/internal/exit"
)

// enrolLimit is how long the hub may take.
const enrolLimit = 30 * time.Second

func enrolCommand() *cobra.Command {
	var hub, token, dir string
	cmd := &cobra.Command{
		Use:   "enrol",
		Short: "Get this host's certificate from a hub, for a one-time token",
		Long: "Makes a key, gets a certificate for it from the hub, and prints what the agent's configuration needs. The\n" +
			"token comes from 'homenode-hub enrol' and also says which hub to trust. The agent renews the certificate.",
		Example: "  homenode enrol --hub https://hub.example:7443 --token TOKEN",
		Args:    cli.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if u, err := url.Parse(hub); err != nil || u.Scheme != "https" || u.Host == "" {
				return exit.BadInput(fmt.Errorf("--hub is %q: want https://HOST:PORT", hub))
			}
			full, err := filepath.Abs(dir)
			if err != nil {
				return exit.BadInput(err)
			}
			if err := os.MkdirAll(full, 0o700); err != nil {
				return exit.BadInput(fmt.Errorf("make the folder of the certificate: %w", err))
			}
			ca, pair := filepath.Join(full, "hub-ca.pem"), filepath.Join(full, "hub-host.pem")
			if err := errors.Join(cli.CanReplace("dir", ca), cli.CanReplace("dir", pair)); err != nil {
				return exit.BadInput(err)
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), enrolLimit)
			defer cancel()
			host, err := outbox.Enrol(ctx, hub, token, ca, pair)
			if err != nil {
				return exit.BadInput(err)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "This host is %s to the hub. Put this into the agent's configuration:\n\nhub:\n  address: %s\n  ca: %s\n  certificate: %s\n", host, hub, ca, pair)
			return err
		},
	}
	cmd.Flags().StringVar(&hub, "hub", "", "address of the hub, such as https://hub.example:7443")
	cmd.Flags().StringVar(&token, "token", "", "one-time token that 'homenode-hub enrol' printed")
	cmd.Flags().StringVar(&dir, "dir", "/var/lib/homenode", "folder for the certificates")
	return cli.Exits(cmd, "0", "the certificate is there", "2", "bad address, token or folder, or the hub does not answer")
}
