// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"

	"homenode/internal/agent"
	"homenode/internal/agent/decisions"
	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/render"
	"homenode/internal/schema"
	"homenode/internal/views"
)

// whyMost is how many decisions of the log `why` shows.
const whyMost = 50

// whyJSON is a workload's status and the decisions before it.
type whyJSON struct {
	Schema int `json:"schema"` // 2, that of the status
	agent.WorkloadStatus
	Earlier []agent.Decision `json:"earlier"`
}

// whyLogJSON is what a log has on a name where no agent runs.
type whyLogJSON struct {
	Schema    int              `json:"schema"` // 1
	Workloads []string         `json:"workload_ids"`
	Earlier   []agent.Decision `json:"earlier"`
}

// logOf returns the decision log: the named one, the agent's, or the default of an agent
// with this state folder.
func logOf(state, said string, s agent.Status) string {
	switch {
	case said != "":
		return said
	case s.Decisions != "" || s.Schema != 0: // an agent without a log reports ""
		return s.Decisions
	}
	c, err := agent.ParseConfig(fmt.Appendf(nil, "state_dir: %q", state), "--state")
	if err != nil {
		return ""
	}
	return c.Decisions.Path
}

// earlierOf returns decisions older than those of the status. A user who may not read the
// log still gets the status.
func earlierOf(stderr io.Writer, log string, ws agent.WorkloadStatus) []agent.Decision {
	if log == "" {
		return []agent.Decision{}
	}
	found, skipped, err := decisions.Read(log, agent.Before(ws), whyMost)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		cli.Tell(stderr, []string{"earlier decisions are not shown: " + err.Error()})
	}
	saySkipped(stderr, log, skipped)
	return agent.DecisionsOf(found)
}

func saySkipped(stderr io.Writer, log string, skipped int) {
	if skipped > 0 {
		cli.Tell(stderr, []string{fmt.Sprintf("%s: %d lines were skipped: a crash or a newer homenode left them", log, skipped)})
	}
}

// whyFromLog is for a host without a running agent. noStatus is the error to show if the
// log has nothing either.
func whyFromLog(w io.Writer, log, name, output string, noStatus error) error {
	match := func(k decisions.Key) bool {
		return k.Workload == name || k.Service == name || path.Base(k.Workload) == name
	}
	if log == "" {
		return exit.BadInput(noStatus)
	}
	found, _, err := decisions.Read(log, match, whyMost)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && len(found) == 0:
		return exit.BadInput(fmt.Errorf("%w; and no decision on %q is in %s", noStatus, name, log))
	case err != nil:
		return err
	}
	var ids []string
	for _, e := range found {
		if !slices.Contains(ids, e.Workload) {
			ids = append(ids, e.Workload)
		}
	}
	if output == "json" {
		return schema.NewEncoder(w).Encode(whyLogJSON{1, ids, agent.DecisionsOf(found)})
	}
	fmt.Fprintf(w, "no agent runs; what is in %s on", log)
	for _, id := range ids {
		fmt.Fprint(w, " "+render.Printable(id))
	}
	fmt.Fprintln(w)
	for _, d := range agent.DecisionsOf(found) {
		views.Decision(cli.Text(w), d)
	}
	return nil
}
