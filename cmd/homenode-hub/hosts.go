// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/hub"
	"homenode/internal/hub/ca"
	"homenode/internal/render"
	"homenode/internal/schema"
	"homenode/internal/unit"
)

// EnrolReport is what 'homenode-hub enrol -o json' writes.
type EnrolReport struct {
	Host    string    `json:"host"`
	Address string    `json:"hub_address"` // for 'homenode enrol --hub'
	Token   string    `json:"token"`       // good once; keep it private
	Until   time.Time `json:"token_until"`
}

func enrolCommand() *cobra.Command {
	var file, output string
	cmd := &cobra.Command{
		Use:   "enrol HOST",
		Short: "Make a one-time token with which a host gets its certificate",
		Long: "Makes a one-time token for a host, and prints the command to run there. The token is good for a day and\n" +
			"for one use. The key never leaves the host. Its agent renews the certificate from then on.",
		Example: "  homenode-hub enrol db-7",
		Args:    cli.Exactly(1, "the host's name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cli.CheckOutput(output); err != nil {
				return err
			}
			c, a, err := authority(file)
			if err != nil {
				return err
			}
			token, err := a.Token(args[0])
			if err != nil {
				return exit.BadInput(err)
			}
			r := EnrolReport{Host: args[0], Address: addressOf(c), Token: token, Until: time.Now().Add(ca.TokenLife).UTC().Truncate(time.Second)}
			if output == "json" {
				return schema.NewEncoder(cmd.OutOrStdout()).Encode(r)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "Run this on %s within %s:\n\nhomenode enrol --hub %s --token %s\n", r.Host, ca.TokenLife, r.Address, r.Token)
			return err
		},
	}
	configFlag(cmd, &file)
	cli.OutputFlag(cmd, &output)
	cli.Writes(cmd, EnrolReport{})
	return cli.Exits(cmd, "2", "the name cannot be a host's, or the authority cannot be used")
}

func revokeCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "revoke HOST",
		Short: "Refuse every certificate that a host has now",
		Long: "Refuses every certificate that a host has now, at once and without a restart. A token made afterwards\n" +
			"lets the host in again.",
		Example: "  homenode-hub revoke db-7",
		Args:    cli.Exactly(1, "the host's name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, a, err := authority(file)
			if err != nil {
				return err
			}
			if err := a.Revoke(args[0]); err != nil {
				return exit.BadInput(err)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "The certificates of %s are refused from now on.\n", args[0])
			return err
		},
	}
	configFlag(cmd, &file)
	return cli.Exits(cmd, "2", "the name cannot be a host's, or the authority cannot be used")
}

// authority is an existing one: a token of another would be of no use.
func authority(file string) (hub.Config, *ca.Authority, error) {
	c, err := readConfig(file)
	if err != nil {
		return c, nil, err
	}
	a, err := ca.Open(c.Authority, false)
	if err != nil {
		return c, nil, exit.BadInput(fmt.Errorf("%w: start the hub once ('homenode-hub serve'), which makes it", err))
	}
	return c, a, nil
}

// addressOf is how agents reach the hub: by its first name.
func addressOf(c hub.Config) string {
	_, port, _ := net.SplitHostPort(c.Listen) // it was checked
	return "https://" + net.JoinHostPort(c.Names[0], port)
}

// OrdersReport is what 'homenode-hub orders -o json' writes.
type OrdersReport struct {
	Version  string         `json:"orders_version"`
	Until    time.Time      `json:"orders_until"` // for a host that pulls them now
	Services []OrderService `json:"service_orders"`
	Excluded []string       `json:"excluded_patterns"`
}

// OrderService is the order for one service.
type OrderService struct {
	Name     string               `json:"service"`
	Approved bool                 `json:"approved"`
	Target   unit.Opt[unit.Ratio] `json:"target"` // null: the host's rule has it
}

func ordersCommand() *cobra.Command {
	var file, output string
	cmd := &cobra.Command{
		Use:   "orders [FILE]",
		Short: "Check a file of orders, and show what a host gets",
		Long: "Checks the orders of the configuration, or a file, and shows what a host that pulls them now gets. The\n" +
			"hub reads its file again when it changes, so a checked copy that replaces the file needs no restart. Services\n" +
			"that are rolled out have orders of their own: 'homenode-hub deploy status' shows them.",
		Example: "  homenode-hub orders new-orders.yaml",
		Args:    cli.AtMostOne("one file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cli.CheckOutput(output); err != nil {
				return err
			}
			name := ""
			if len(args) == 1 {
				name = args[0]
			} else {
				c, err := readConfig(file)
				if err != nil {
					return err
				}
				if name = c.Orders; name == "" {
					return exit.With(exit.Nothing, fmt.Errorf("%s names no file of orders: hosts follow their own policy", file))
				}
			}
			o, err := hub.ReadOrders(name)
			if err != nil {
				return exit.BadInput(err)
			}
			r := reportOf(o)
			if output == "json" {
				return schema.NewEncoder(cmd.OutOrStdout()).Encode(r)
			}
			return showOrders(cmd, r)
		},
	}
	configFlag(cmd, &file)
	cli.OutputFlag(cmd, &output)
	cli.Writes(cmd, OrdersReport{})
	return cli.Exits(cmd, "2", "the file cannot be read, or is wrong", "4", "the configuration names no orders")
}

func reportOf(o hub.Orders) OrdersReport {
	m := o.Message(time.Now(), nil)
	r := OrdersReport{Version: m.Version, Until: time.Unix(0, m.ExpiresNs).UTC(), Services: []OrderService{}, Excluded: append([]string{}, o.Excluded...)}
	for _, s := range o.Services {
		x := OrderService{Name: s.Name, Approved: s.Approved}
		if s.Target != nil {
			x.Target = unit.Some(unit.Ratio(*s.Target))
		}
		r.Services = append(r.Services, x)
	}
	return r
}

func showOrders(cmd *cobra.Command, r OrdersReport) error {
	p := cli.Screen().Terminal()
	if r.Version == "" {
		p.Wrapped("", "these orders have ended: hosts follow their own policy")
		return p.Flush(cmd.OutOrStdout(), "orders")
	}
	p.Wrapped("", fmt.Sprintf("orders %s: a host that pulls them now follows them until %s", r.Version, r.Until.Format(time.DateTime)))
	t := render.LeftTable("SERVICE", "APPROVED", "TARGET")
	for _, s := range r.Services {
		target := "the host's"
		if ratio, ok := s.Target.Get(); ok {
			target = strconv.FormatFloat(float64(ratio), 'g', -1, 64)
		}
		approved := "no"
		if s.Approved {
			approved = "yes"
		}
		t.Rows = append(t.Rows, []string{render.Name(s.Name), approved, target})
	}
	p.Table(t)
	for _, x := range r.Excluded {
		p.Wrapped("", "never bound: "+render.Name(x))
	}
	return p.Flush(cmd.OutOrStdout(), "orders")
}
