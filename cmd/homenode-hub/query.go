// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/hub/query"
	"homenode/internal/kernel/unix"
	"homenode/internal/render"
	"homenode/internal/schema"
	"homenode/internal/store"
)

// addQuestions adds the commands that ask the hub.
func addQuestions(root *cobra.Command) { cli.Group(root, "Ask", queryCommand(), sensitivityCommand()) }

// from says whom a command asks, and how it prints the answer.
type from struct {
	hub, tokenFile, store, output string
	within                        time.Duration
}

func (f *from) flags(cmd *cobra.Command) {
	f.where(cmd)
	cli.OutputFlag(cmd, &f.output, "csv")
	cli.Writes(cmd, query.Answer{})
}

// where are the flags that say whom to ask.
func (f *from) where(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.hub, "hub", "http://127.0.0.1:7480", "address of the hub's page and API")
	cmd.Flags().StringVar(&f.tokenFile, "token-file", "", "file with the token for the hub; 'tokens' of its configuration has the sum")
	cmd.Flags().StringVar(&f.store, "store", "", "a store to ask without a hub: sqlite:FILE, or clickhouse://USER@HOST:PORT/DATABASE with its password in HOMENODE_STORE_PASSWORD")
	cmd.Flags().DurationVar(&f.within, "within", time.Minute, "time in which the answer must come")
}

func queryCommand() *cobra.Command {
	var f from
	values := map[string]*string{}
	cmd := &cobra.Command{
		Use:   "query TOPIC",
		Short: "Ask the status database",
		Long: "Asks a ready-made question, or SQL ('query sql'). It asks a hub, or a store directly. The topics:\n\n" + topicHelp() +
			"\n\nAnswers say how a ratio or a gain is known: measured, modelled, estimated or unknown. What is unknown\nis 'unknown', null in JSON, and empty in CSV.",
		Example: "  homenode-hub query services --since 7d\n  homenode-hub query history --service shop -o csv\n  homenode-hub query hosts --sort -remote_ratio --most 10 --store sqlite:status.db",
		Args:    cli.Exactly(1, "a topic"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cli.CheckOutput(f.output, "csv"); err != nil {
				return err
			}
			v := url.Values{}
			for name, value := range values {
				if *value != "" {
					v.Set(name, *value)
				}
			}
			if store.Topic(args[0]).About() == "" {
				return exit.BadInput(fmt.Errorf("unknown topic %q: 'homenode-hub query --help' lists them", args[0]))
			}
			q, err := query.Parse(args[0], v, time.Now())
			if err != nil {
				return exit.BadInput(err)
			}
			return f.answer(cmd, func(ctx context.Context, c *query.Client) (query.Answer, error) { return c.Ask(ctx, q) },
				func(ctx context.Context, s store.Store) (query.Answer, error) {
					t, err := s.Ask(ctx, q)
					return query.AnswerOf(q, t), err
				})
		},
	}
	for _, p := range query.Parameters {
		value := new(string)
		values[p.Name] = value
		cmd.Flags().StringVar(value, p.Name, "", p.About)
	}
	f.flags(cmd)
	cmd.AddCommand(sqlCommand())
	return cli.Exits(cmd, "0", "answered", "2", "bad question, or a hub or store that cannot be asked")
}

func topicHelp() string {
	var lines []string
	for _, t := range store.Topics {
		lines = append(lines, render.Wrap("  "+render.PadRight(string(t), 11), strings.Repeat(" ", 13), t.About(), 98)...)
	}
	return strings.Join(lines, "\n")
}

func sqlCommand() *cobra.Command {
	var f from
	var most string
	cmd := &cobra.Command{
		Use:     "sql QUERY",
		Short:   "Ask the status database in its own SQL",
		Long:    "Sends a query to the store, in SQLite's or ClickHouse's SQL. It changes nothing, and ends at --most rows\nand at --within. The tables are in docs/fleet.md.",
		Example: `  homenode-hub query sql "SELECT service, count(*) FROM series GROUP BY service"`,
		Args:    cli.Exactly(1, "a query"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cli.CheckOutput(f.output, "csv"); err != nil {
				return err
			}
			n, err := strconv.Atoi(most)
			if err != nil || n < 1 || n > store.MostRows {
				return exit.BadInput(fmt.Errorf("--most is %q: want 1 to %d", most, store.MostRows))
			}
			return f.answer(cmd, func(ctx context.Context, c *query.Client) (query.Answer, error) { return c.SQL(ctx, args[0], n) },
				func(ctx context.Context, s store.Store) (query.Answer, error) {
					t, err := s.SQL(ctx, args[0], n)
					return query.SQLAnswer(t), err
				})
		},
	}
	cmd.Flags().StringVar(&most, "most", "1000", "number of rows, at most; more are an error")
	f.flags(cmd)
	return cli.Exits(cmd, "0", "answered", "2", "bad query, or a hub or store that cannot be asked")
}

// answer asks the hub or the store, and prints what it says.
func (f *from) answer(cmd *cobra.Command, hub func(context.Context, *query.Client) (query.Answer, error), direct func(context.Context, store.Store) (query.Answer, error)) error {
	ctx, stop := context.WithTimeout(cmd.Context(), f.within)
	defer stop()
	a, err := f.ask(ctx, cmd, hub, direct)
	if err != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = fmt.Errorf("no answer within %v: ask about a shorter time, or raise --within: %w", f.within, err)
		}
		return exit.BadInput(err)
	}
	switch f.output {
	case "json":
		enc := schema.NewEncoder(cmd.OutOrStdout())
		enc.SetIndent("", "  ")
		return enc.Encode(a)
	case "csv":
		return a.CSV(cmd.OutOrStdout())
	}
	return a.Text(cmd.OutOrStdout(), cli.Screen())
}

func (f *from) ask(ctx context.Context, cmd *cobra.Command, hub func(context.Context, *query.Client) (query.Answer, error), direct func(context.Context, store.Store) (query.Answer, error)) (query.Answer, error) {
	if f.store != "" {
		if cmd.Flags().Changed("hub") {
			return query.Answer{}, errors.New("--hub and --store are both given: ask one of them")
		}
		s, err := storeAt(ctx, f.store)
		if err != nil {
			return query.Answer{}, err
		}
		defer s.Close()
		return direct(ctx, s)
	}
	token := ""
	if f.tokenFile != "" {
		text, err := unix.ReadAtMost(f.tokenFile, 4096)
		if err != nil {
			return query.Answer{}, fmt.Errorf("read token: %w", err)
		}
		token = strings.TrimSpace(string(text))
	}
	c, err := query.NewClient(f.hub, token, &http.Client{})
	if err != nil {
		return query.Answer{}, err
	}
	return hub(ctx, c)
}
