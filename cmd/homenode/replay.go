// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"homenode/internal/agent"
	"homenode/internal/cli"
	"homenode/internal/control/host"
	"homenode/internal/exit"
	"homenode/internal/replay"
	"homenode/internal/schema"
	"homenode/internal/source"
	"homenode/internal/views"
	"homenode/internal/window"
)

type replayOptions struct {
	config string
	set    []string
	output string
	all    bool
	stderr *os.File
}

func replayCommand() *cobra.Command {
	o := replayOptions{stderr: os.Stderr}
	cmd := &cobra.Command{
		Use:   "replay FILE",
		Short: "Repeat the decisions of a recording with another configuration, and show the differences",
		Long: "FILE is a recording of 'homenode record --windows', or of an agent with 'record: FILE', gzipped or not. It is\n" +
			"decided twice: with the recorded configuration (the defaults if it has none), and with that of --config or --set.\n\n" +
			"A recorded day cannot react: its windows show what was really done. Which bindings would have been made, and\n" +
			"for how long, is an estimate. What they would have gained is not reported.",
		Example: "  homenode replay day.jsonl --set mao.strategy=A\n  homenode replay day.jsonl.gz --config new.yaml -o json",
		Args:    cli.Exactly(1, "a recording"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cli.CheckOutput(o.output); err != nil {
				return err
			}
			return runReplay(cmd.Context(), cmd.OutOrStdout(), args[0], o)
		},
	}
	cli.Exits(cmd, "3", "complete, but the recording was cut off")
	cmd.Flags().StringVar(&o.config, "config", "", "file of the other configuration, instead of the recorded one")
	cmd.Flags().StringArrayVar(&o.set, "set", nil, "setting to change, e.g. mao.strategy=A; repeatable")
	cmd.Flags().BoolVar(&o.all, "all", false, "show all differences, not only the first ones")
	cli.OutputFlag(cmd, &o.output)
	cli.Writes(cmd, replay.Result{})
	return cmd
}

func runReplay(ctx context.Context, w io.Writer, file string, o replayOptions) error {
	f, err := os.Open(file)
	if err != nil {
		return exit.BadInput(fmt.Errorf("read recording: %w", err))
	}
	defer f.Close()
	p, err := window.OpenRecording(f)
	if err != nil {
		return exit.BadInput(source.Explain(file, fmt.Errorf("%s: %w", file, err)))
	}
	then, now, err := arms(p.Config, file, o)
	if err != nil {
		return exit.BadInput(err)
	}
	r := replay.New(p.Machine, then, now)
	if err := host.Play(ctx, p, f, r, o.stderr); err != nil {
		return exit.BadInput(fmt.Errorf("%s: %w", file, err))
	}
	out := r.Result()
	if out.Windows == 0 {
		return exit.BadInput(fmt.Errorf("%s: %w", file, source.ErrNoWindow))
	}
	if p.CutOff != "" {
		out.Notes = append(out.Notes, p.CutOff)
	}
	if p.Config == "" {
		out.Notes = append(out.Notes, "no configuration was recorded: 'then' is homenode's defaults, with the services that the windows name")
	}
	if o.output == "json" {
		err = schema.NewEncoder(w).Encode(out)
	} else {
		err = views.Replay(cli.Text(w), out, o.all)
	}
	if err == nil && p.CutOff != "" {
		return exit.With(exit.Partly, nil)
	}
	return err
}

// arms returns the recorded configuration and the other one.
func arms(recorded, file string, o replayOptions) (then, now replay.Arm, err error) {
	base := agent.Layer{Name: file + ": its configuration", Text: []byte(recorded)}
	c, err := agent.ParseLayers(base)
	if err != nil {
		return then, now, err
	}
	then = replay.Arm{Name: "recorded", MAO: c.MAO}
	if recorded == "" {
		then.Name = "defaults"
	}
	layers, name := []agent.Layer{base}, then.Name
	if o.config != "" {
		layer, err := agent.ReadLayer(o.config)
		if err != nil {
			return then, now, err
		}
		layers, name = []agent.Layer{layer}, o.config
	}
	for _, s := range o.set {
		text, err := settingText(s)
		if err != nil {
			return then, now, err
		}
		layers, name = append(layers, agent.Layer{Name: "--set " + s, Text: []byte(text)}), name+", "+s
	}
	if c, err = agent.ParseLayers(layers...); err != nil {
		return then, now, err
	}
	now = replay.Arm{Name: name, MAO: c.MAO}
	if o.config != "" { // its services instead of the recorded ones
		now.Services = c.Rename
	}
	return then, now, nil
}

// settingText turns mao.strategy=A into YAML.
func settingText(s string) (string, error) {
	path, value, ok := strings.Cut(s, "=")
	keys := strings.Split(path, ".")
	if !ok || value == "" || strings.ContainsAny(s, "\n\r") {
		return "", fmt.Errorf("--set is %q: want a setting and its value, e.g. mao.strategy=A", s)
	}
	text := ""
	for i, k := range keys {
		if k == "" || strings.ContainsAny(k, ": \t#{}[]&*!|>'\"%@`,") {
			return "", fmt.Errorf("--set is %q: %q is not the name of a setting", s, k)
		}
		text += strings.Repeat("  ", i) + k + ":"
		if i < len(keys)-1 {
			text += "\n"
		}
	}
	return text + " " + value + "\n", nil
}
