// SPDX-License-Identifier: Apache-2.0

package views

import (
	"fmt"
	"io"

	"homenode/internal/agent"
	"homenode/internal/cli"
	"homenode/internal/render"
	"homenode/internal/yamlfile"
)

// mostListed is how many workloads of a service the text lists; JSON has all.
const mostListed = 20

// Check prints what the configuration would do, or why the agent would not start with it.
func Check(w io.Writer, screen render.TextOptions, c agent.Check) error {
	p := screen.Terminal()
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
