// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"homenode/internal/agent"
	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/kernel"
	"homenode/internal/render"
	"homenode/internal/schema"
	"homenode/internal/source"
	"homenode/internal/yamlfile"
)

// packagedConfig is the configuration that the package installs, and the unit reads.
const packagedConfig = "/etc/homenode/agent.yaml"

// checkConfig is 'agent --check'. Without --config it checks the packaged file if that is
// there, else the defaults.
func checkConfig(cmd *cobra.Command, file, state, output string) error {
	if err := cli.CheckOutput(output); err != nil {
		return err
	}
	if file == "" {
		if _, err := os.Stat(packagedConfig); err == nil {
			file = packagedConfig
		}
	}
	layers, err := configLayers(file, state)
	if err != nil {
		return err
	}
	c := agent.CheckLayers(agent.CheckHost{Workloads: workloadsOf, Group: groupExists, Profile: profileFits}, layers...)
	if output == "json" {
		err = schema.NewEncoder(cmd.OutOrStdout()).Encode(c)
	} else {
		err = printCheck(cmd.OutOrStdout(), c)
	}
	if err == nil && !c.OK() {
		err = exit.With(exit.Bad, nil)
	}
	return err
}

func workloadsOf(globs []string) ([]string, error) {
	return kernel.WorkloadsIn(kernel.At("/"), globs)
}

func groupExists(name string) error {
	_, err := agent.GroupID(name)
	return err
}

func profileFits(file string) error {
	m, _, err := source.Live()
	if err == nil {
		_, err = source.Profile(file, m, source.LiveCPUModel())
	}
	return short(err)
}

// short leaves out the operation of a missing file: the key says what the file is.
func short(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no file %s", p.Path)
	}
	return err
}

// mostListed is how many workloads of a service the text lists; JSON has all.
const mostListed = 20

func printCheck(w io.Writer, c agent.Check) error {
	p := cli.Screen().Terminal()
	name := c.Config
	if name == "" {
		name = "defaults"
	}
	printProblems(&p, "error", c.Errors)
	printProblems(&p, "warning", c.Warnings)
	if !c.OK() {
		p.Hanging("", fmt.Sprintf("%s: %s: the agent would not start", render.Printable(name), render.Count(len(c.Errors), "error")))
		return p.Flush(w, "check")
	}
	for _, s := range c.Services {
		state := "watched only"
		if s.Approved {
			state = "approved"
		}
		p.Hanging("service ", fmt.Sprintf("%s (%s, %s): %s now", render.Name(s.Name), render.Name(s.Match), state, render.Count(len(s.Workloads), "cgroup")))
		for i, id := range s.Workloads {
			if i == mostListed {
				p.Line(fmt.Sprintf("  and %d more", len(s.Workloads)-i))
				break
			}
			p.Line("  " + render.Name(id))
		}
	}
	summary := fmt.Sprintf("%s: ready: mode %s", render.Printable(name), c.Mode)
	if c.Watched != nil {
		summary += fmt.Sprintf(", %s watched, of which %d belong to no service", render.Count(*c.Watched, "cgroup"), c.Others)
	}
	p.Hanging("", fmt.Sprintf("%s; %s", summary, render.Count(len(c.Warnings), "warning")))
	return p.Flush(w, "check")
}

func printProblems(p *render.Terminal, level string, all []*yamlfile.Problem) {
	for _, x := range all {
		where := x.File
		if x.Line > 0 {
			where = fmt.Sprintf("%s:%d", x.File, x.Line)
			if x.Column > 0 {
				where += fmt.Sprintf(":%d", x.Column)
			}
		}
		text := x.Text
		if x.Path != "" {
			text = x.Path + ": " + text
		}
		if where != "" {
			text = where + ": " + text
		}
		p.Hanging(level+": ", render.Printable(text))
		for _, line := range cli.Excerpt(x.Excerpt) {
			p.Line(line)
		}
	}
}
