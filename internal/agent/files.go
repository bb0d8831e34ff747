// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/user"
	"path/filepath"
	"strconv"
	"time"

	"homenode/internal/action"
	"homenode/internal/agent/decisions"
	"homenode/internal/kernel"
	"homenode/internal/render/words"
	"homenode/internal/window"
)

// files are what the agent writes besides journal and status. None of them may stop
// the loop. A failed write is counted. It is logged once, and again after the next
// success.
type files struct {
	decisions *decisions.File
	refused   map[string]string // see decisions.Of
	record    *decisions.File
	saved     time.Time // when the histories were last saved
	status    time.Time // when the status was last written
	failing   map[string]bool
}

// dryConfig keeps a dry run's files apart from those of a real agent on the same host.
// The dry run has its own folder and its own socket, even if the configuration names
// one. It overwrites no history. The TCP port of metrics is the one thing that both have:
// the first of the two gets it (serve).
func dryConfig(c Config, dir string) Config {
	for _, path := range []*string{&c.Decisions.Path, &c.Record.Path, &c.API.Socket, &c.Hub.Spool} {
		if *path != "" {
			*path = filepath.Join(dir, filepath.Base(*path))
		}
	}
	return c
}

// playConfig is for a recording. Its figures are not this host's either, but writing
// them is part of the cost that is measured. It opens no TCP port.
func playConfig(c Config) Config {
	c.Metrics.Listen, c.Hub.Address = "", ""
	if c.History.Path != "" {
		c.History.Path = filepath.Join(c.StateDir, filepath.Base(c.History.Path))
	}
	return dryConfig(c, c.StateDir)
}

// openFiles opens what the configuration names. The group that may read the API may read
// these files too, because they say the same.
func (a *Agent) openFiles() {
	if name := a.o.Config.API.Group; name != "" {
		a.readers, _ = GroupID(name) // a group that does not exist is reported where the socket is made
	}
	a.openDecisions()
	a.openRecord()
}

// openDecisions opens the decision log, or opens it again: logrotate, say, may have moved
// it away.
func (a *Agent) openDecisions() {
	_ = a.files.decisions.Close() // nothing is buffered
	a.files.decisions = nil
	if f := a.o.Config.Decisions; f.Path != "" {
		var err error
		a.files.decisions, err = decisions.OpenFile(decisions.FileOptions{Path: f.Path, Max: f.Size, Keep: f.Keep, Group: a.readers})
		a.wrote("decisions", err)
	}
}

// openRecord begins a new recording. Its header has the configuration that
// decides.
func (a *Agent) openRecord() {
	_ = a.files.record.Close()
	a.files.record = nil
	if f := a.o.Config.Record; f.Path != "" {
		var err error
		a.files.record, err = decisions.OpenFile(decisions.FileOptions{Path: f.Path, Max: f.Size, Keep: f.Keep, Group: a.readers, Fresh: true, Head: a.recordHead})
		a.wrote("record", err)
	}
}

func (a *Agent) recordHead(w io.Writer) error {
	_, err := window.NewRecorderOf(w, a.reader.Machine(), a.o.Config.Period, a.o.Config.Text)
	return err
}

func (a *Agent) closeFiles() {
	_ = a.files.decisions.Close() // nothing is buffered
	_ = a.files.record.Close()
	a.files.decisions, a.files.record = nil, nil
}

// wrote logs when a file cannot be written, and when it can be written again.
func (a *Agent) wrote(what string, err error) {
	if a.files.failing == nil {
		a.files.failing = map[string]bool{}
	}
	if err != nil {
		a.totals.FileErrors++
		if !a.files.failing[what] {
			a.o.Log.Warn(what+": the loop continues without it", "error", err)
		}
	} else if a.files.failing[what] {
		a.o.Log.Info(what + ": written again")
	}
	a.files.failing[what] = err != nil
}

// statusEvery is how old the status file may become while nothing is done: making it
// costs a quarter of a round. The socket always gives the last round's status.
const statusEvery = time.Minute

// writeStatus is called once a round. The file says how old it is.
func (a *Agent) writeStatus() {
	if a.quiet > 0 && a.status.Rounds > 2 && time.Since(a.files.status) < statusEvery {
		return
	}
	err := a.status.write(a.o.Config.StateDir, a.readers)
	if a.wrote("status", err); err == nil {
		a.files.status = time.Now()
	}
}

// forgetEvery is how many rounds pass between two releases of the program's unused
// pages, after the first forgetFirst rounds. Those use much code that is never used
// again.
const forgetFirst, forgetEvery = 3, 60

// forgetProgram limits the resident part of the program to what a round uses: half of
// the agent's memory was code that had run once, or never.
func (a *Agent) forgetProgram() {
	if a.status.Rounds > forgetFirst && a.status.Rounds%forgetEvery != 0 {
		return
	}
	if err := kernel.ForgetProgram(); err != nil {
		a.o.Log.Debug("unused code stays in memory", "error", err)
	}
}

// record appends the window as it was read and named, before a decision is made on it.
func (a *Agent) record(w window.Window) {
	if a.files.record != nil {
		a.wrote("record", window.RecorderTo(a.files.record).Add(w))
	}
}

// noteDecisions appends the decisions.
func (a *Agent) noteDecisions(w window.Window, actions []action.Action, reasons []action.Reason) {
	var all []decisions.Entry
	all, a.files.refused = decisions.Of(w, actions, reasons, a.files.refused)
	a.noteAll(all)
}

// noteWays logs and appends what actuate decided about a binding that is under
// way.
func (a *Agent) noteWays(w window.Window, news []action.Reason) {
	for _, r := range news {
		a.o.Log.Info("binding under way", "workload", r.Workload, "why", words.Full(r))
		a.keep(w, decisions.WayOf(r), r)
	}
	a.noteAll(decisions.Ways(w, news))
}

func (a *Agent) noteAll(all []decisions.Entry) {
	for _, e := range all {
		e.DryRun = a.o.DryRun
		a.totals.decided(e)
		a.noteForHub(e)
		if a.files.decisions != nil {
			a.wrote("decisions", decisions.Write(a.files.decisions, e))
		}
	}
}

// readHistory gives the policy the nodes' past from earlier runs. If the file is damaged
// or belongs to another machine, that is logged and the policy starts without a history.
func (a *Agent) readHistory() {
	path := a.o.Config.History.Path
	if path == "" {
		return
	}
	all, err := readHistory(path, a.reader.Machine())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return
	case err != nil:
		a.o.Log.Warn("the nodes' histories start empty", "error", err)
		return
	}
	a.policy = a.policy.WithHistories(all)
	a.o.Log.Info("the nodes' histories were read", "file", path, "nodes", len(all))
}

// saveHistory writes the histories, at most once per interval, and at the end (always).
// A dry run saves nothing.
func (a *Agent) saveHistory(at time.Time, always bool) {
	path := a.o.Config.History.Path
	nodes := a.policy.Histories()
	if path == "" || a.o.DryRun || len(nodes) == 0 || !always && time.Since(a.files.saved) < a.o.Config.History.Every {
		return
	}
	a.files.saved = time.Now() // also after a failure, so that retries are not more frequent
	a.wrote("history", writeHistory(path, a.reader.Machine(), at, nodes))
}

// GroupID returns a group's number, or 0 with an error.
func GroupID(name string) (int, error) {
	g, err := user.LookupGroup(name)
	if unknown := user.UnknownGroupError(""); errors.As(err, &unknown) {
		return 0, fmt.Errorf(noGroup, name, name)
	}
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(g.Gid)
}

// noGroup is said by the check and at the start.
const noGroup = "the group %q does not exist: make it ('groupadd --system %s'), or remove the setting"
