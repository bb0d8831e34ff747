// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"homenode/internal/action"
	"homenode/internal/actuate"
	"homenode/internal/agent/decisions"
	"homenode/internal/agent/outbox"
	"homenode/internal/kernel/unix"
	"homenode/internal/migration"
	"homenode/internal/schema"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
)

const (
	statusSchema = 3 // 2: reasons are codes and figures; 3: a name has one meaning in all JSON
	statusName   = "status.json"
	socketName   = "api.sock" // of the API, unless the configuration names another
	// pastLength is how many decisions are remembered per workload; the decision log has
	// the others. One decision is 2 kB: 16 of them made the status of 50 workloads a
	// megabyte, and the agent too large (make bench-agent).
	pastLength = 4
	// pastAlternatives is how many alternatives of a past decision are remembered.
	pastAlternatives = 6
)

// Status is what an agent last saw, decided and did. It is the content of
// status.json.
type Status struct {
	Schema     int              `json:"schema"`
	PID        int              `json:"pid"`
	DryRun     bool             `json:"dry_run"`
	Mode       Mode             `json:"mode"`
	Started    time.Time        `json:"started"`
	Period     time.Duration    `json:"period_ns"`
	Machine    string           `json:"machine_name"` // its origin
	EventTable string           `json:"event_table"`
	Rounds     uint64           `json:"rounds"`
	CPUSeconds float64          `json:"cpu_s"` // CPU time of this agent so far
	RoundTime  time.Duration    `json:"last_round_ns"`
	Window     window.Window    `json:"window"`
	Problems   int              `json:"problem_count"`       // of the window, which lists only the first ones
	Workloads  []WorkloadStatus `json:"workloads"`           // parallel to Window.Workloads
	Counting   *Counting        `json:"counting"`            // null = not known yet
	Recovered  []string         `json:"recovered,omitempty"` // settings that a killed agent had left
	Totals     Totals           `json:"totals,omitzero"`
	Excluded   []Excluded       `json:"excluded,omitempty"`     // excluded through the API
	Reload     *Reloaded        `json:"reload,omitempty"`       // the last reload
	Handover   *Handover        `json:"handover,omitempty"`     // the last one that was refused
	Decisions  string           `json:"decision_log,omitempty"` // path of the decision log
	Hub        *outbox.Status   `json:"hub,omitempty"`          // null = nothing is sent to a hub
}

// WorkloadStatus is one workload: its figures and its decisions.
type WorkloadStatus struct {
	ID       string          `json:"id"`
	Service  string          `json:"service"`
	Labels   window.Labels   `json:"labels,omitzero"` // what the manager of its cgroup calls it
	Features window.Features `json:"features"`
	Stage    actuate.Stage   `json:"stage,omitempty"`       // stage of the binding; "" = not bound
	Nodes    set.NodeSet     `json:"nodes"`                 // nodes that it is bound to
	Note     action.Reason   `json:"stage_reason,omitzero"` // the reason of the stage
	// Pays says whether it pays to move the memory that a bound workload has
	// elsewhere. Moving says that it is being moved.
	Pays   unit.Opt[migration.Verdict] `json:"pays,omitzero"`
	Moving bool                        `json:"moving,omitempty"`
	// Way is the expected and actual cost of the binding while its memory follows.
	Way    actuate.Way   `json:"way,omitzero"`
	Reason action.Reason `json:"reason"`         // reason of the last window
	Past   []Decision    `json:"past,omitempty"` // newest last
}

// Decision is a past action, and why.
type Decision struct {
	At     time.Time     `json:"at"`
	Seq    uint64        `json:"seq"`
	Action string        `json:"action"` // as Action.String has it
	Reason action.Reason `json:"reason"`
}

// brief is a reason with fewer alternatives: the best ones, which come first, and the
// chosen one.
func brief(r action.Reason) action.Reason {
	if len(r.Alternatives) <= pastAlternatives {
		return r
	}
	kept := append([]action.Alternative{}, r.Alternatives[:pastAlternatives]...)
	for _, a := range r.Alternatives[pastAlternatives:] {
		if a.Chosen {
			kept = append(kept, a)
		}
	}
	r.Alternatives = kept
	return r
}

// Before matches the log's entries on a workload that are older than those in its
// status.
func Before(ws WorkloadStatus) func(decisions.Key) bool {
	return func(k decisions.Key) bool {
		return k.Workload == schema.Name(ws.ID) && (len(ws.Past) == 0 || k.At.Before(ws.Past[0].At))
	}
}

// Named is the status as it is written: workloads have the names of package schema, since
// JSON cannot hold every path of a cgroup. Workloads stay parallel, and in order.
func (s Status) Named() Status {
	if !slices.ContainsFunc(s.Workloads, func(w WorkloadStatus) bool { return schema.Name(w.ID) != w.ID }) {
		return s
	}
	s.Workloads, s.Window.Workloads, s.Excluded = slices.Clone(s.Workloads), slices.Clone(s.Window.Workloads), slices.Clone(s.Excluded)
	for i := range s.Workloads {
		w := &s.Workloads[i]
		w.ID, w.Reason, w.Note = schema.Name(w.ID), w.Reason.Renamed(schema.Name), w.Note.Renamed(schema.Name)
		w.Past = slices.Clone(w.Past)
		for k := range w.Past {
			w.Past[k].Reason = w.Past[k].Reason.Renamed(schema.Name)
		}
	}
	s.Window.Outcomes = slices.Clone(s.Window.Outcomes)
	for i, o := range s.Window.Outcomes {
		s.Window.Outcomes[i] = o.Renamed(schema.Name)
	}
	for i := range s.Window.Workloads {
		s.Window.Workloads[i].ID = schema.Name(s.Window.Workloads[i].ID)
	}
	for i := range s.Excluded {
		s.Excluded[i].Workload = schema.Name(s.Excluded[i].Workload)
	}
	slices.SortStableFunc(s.Workloads, func(a, b WorkloadStatus) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortStableFunc(s.Window.Workloads, func(a, b window.Workload) int { return cmp.Compare(a.ID, b.ID) })
	return s
}

// Find returns a workload by its path or the name of that (package schema), the last part
// of its path, or its service. If several workloads match, the error names them.
func (s Status) Find(name string) (WorkloadStatus, error) {
	var found []WorkloadStatus
	for _, w := range s.Workloads {
		if w.ID == name || schema.Name(w.ID) == name {
			return w, nil
		}
		if path.Base(w.ID) == name || w.Service == name {
			found = append(found, w)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return WorkloadStatus{}, fmt.Errorf("unknown workload %q: 'homenode status' lists the %d that are watched", name, len(s.Workloads))
	}
	ids := ""
	for _, w := range found {
		ids += " " + schema.Name(w.ID)
	}
	return WorkloadStatus{}, fmt.Errorf("%q could be any of%s: name one by its path", name, ids)
}

// ErrNoStatus is returned when no agent has written a status.
var ErrNoStatus = errors.New("no agent has written a status")

// ErrStarting is returned when an agent runs whose first round has not ended.
var ErrStarting = errors.New("the agent has just started")

// maxStatus bounds a status, bytes: some 3 kB for each watched workload.
const maxStatus = 64 << 20

// ReadStatus reads the status of the agent whose state is in dir. It asks the agent if
// its socket exists and may be used. Otherwise it reads the agent's file, which may be
// up to a minute older.
func ReadStatus(dir string) (Status, error) {
	s, asked := askStatus(filepath.Join(dir, socketName))
	if asked == nil {
		return s, nil
	}
	s, err := readStatusFile(dir)
	if errors.Is(err, ErrNoStatus) && errors.Is(asked, ErrStarting) {
		return Status{}, asked
	}
	return s, err
}

// readStatusFile reads what an agent wrote last, and asks none.
func readStatusFile(dir string) (Status, error) {
	file := filepath.Join(dir, statusName)
	data, err := unix.ReadAtMost(file, maxStatus)
	if errors.Is(err, fs.ErrNotExist) {
		return Status{}, fmt.Errorf("read %s: %w: start 'homenode agent', or name its folder with --state", file, ErrNoStatus)
	}
	if errors.Is(err, fs.ErrPermission) {
		return Status{}, fmt.Errorf("read status: %w: run as root, or as a member of the group that the configuration names as api: group", err)
	}
	if err != nil {
		return Status{}, fmt.Errorf("read status: %w", err)
	}
	return DecodeStatus(data, file)
}

// askStatus asks a running agent.
func askStatus(socket string) (Status, error) {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	client := http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	answer, err := client.Get("http://homenode/v1/status")
	if err != nil {
		return Status{}, err
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusServiceUnavailable {
		return Status{}, fmt.Errorf("ask %s: %w: its first round has not ended: ask again in a period", socket, ErrStarting)
	}
	if answer.StatusCode != http.StatusOK {
		return Status{}, fmt.Errorf("ask %s: %s", socket, answer.Status)
	}
	data, err := io.ReadAll(io.LimitReader(answer.Body, maxStatus))
	if err != nil {
		return Status{}, fmt.Errorf("ask %s: %w", socket, err)
	}
	return DecodeStatus(data, socket)
}

// DecodeStatus refuses a schema that is newer than this program.
func DecodeStatus(data []byte, file string) (Status, error) {
	var s Status
	if err := json.Unmarshal(data, &s); err != nil {
		return Status{}, fmt.Errorf("read %s: %w", file, err)
	}
	if s.Schema != statusSchema {
		return Status{}, fmt.Errorf("read %s: schema is %d, this program knows %d: use the agent's own version", file, s.Schema, statusSchema)
	}
	return s, nil
}

// write replaces the status file atomically, so that a reader never sees half of it. Root
// may read it, and so may the group that may read the API, which says the same (0: no
// group).
func (s Status) write(dir string, group int) error {
	file := filepath.Join(dir, statusName)
	f, err := os.OpenFile(file+".tmp", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o640)
	if err != nil {
		return fmt.Errorf("write status: %w", err)
	}
	err = f.Chmod(0o640) // the file of an earlier run may be readable by all
	if group > 0 {
		_ = f.Chown(-1, group) // if chown is refused, fewer users may read it
	}
	err = errors.Join(err, schema.NewEncoder(f).Encode(s.Named())) // Marshal would make a copy of half a megabyte
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write status: %w", err)
	}
	return os.Rename(file+".tmp", file)
}

// DecisionsOf are entries of the decision log in the form that the status has.
func DecisionsOf(found []decisions.Entry) []Decision {
	all := []Decision{}
	for _, e := range found {
		all = append(all, Decision{At: e.At, Seq: e.Seq, Action: e.Action, Reason: e.Reason})
	}
	return all
}
