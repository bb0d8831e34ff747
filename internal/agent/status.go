// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"homenode/internal/action"
	"homenode/internal/actuate"
	"homenode/internal/migration"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
)

const (
	statusSchema = 1
	statusName   = "status.json"
	// pastLength is how many decisions are remembered per workload.
	pastLength = 16
)

// Status is what an agent last saw, decided and did; status.json.
type Status struct {
	Schema     int              `json:"schema"`
	PID        int              `json:"pid"`
	DryRun     bool             `json:"dry_run"`
	Started    time.Time        `json:"started"`
	Period     time.Duration    `json:"period_ns"`
	Machine    string           `json:"machine"` // its origin
	EventTable string           `json:"event_table"`
	Rounds     uint64           `json:"rounds"`
	CPUSeconds float64          `json:"cpu_s"` // of this agent so far
	RoundTime  time.Duration    `json:"last_round_ns"`
	Window     window.Window    `json:"window"`
	Workloads  []WorkloadStatus `json:"workloads"`           // parallel to Window.Workloads
	Recovered  []string         `json:"recovered,omitempty"` // what a killed agent had left
}

// WorkloadStatus is one workload: what it is like, and what was decided.
type WorkloadStatus struct {
	ID       string          `json:"id"`
	Service  string          `json:"service"`
	Features window.Features `json:"features"`
	Stage    actuate.Stage   `json:"stage,omitempty"` // of a binding; "" = not bound
	Nodes    set.NodeSet     `json:"nodes"`           // it is bound to
	Note     string          `json:"note,omitempty"`  // of the stage
	// Pays is whether moving what of a bound workload is elsewhere pays; Moving says
	// that it is being moved.
	Pays   unit.Opt[migration.Verdict] `json:"pays,omitzero"`
	Moving bool                        `json:"moving,omitempty"`
	Reason action.Reason               `json:"reason"`         // of the last window
	Past   []Decision                  `json:"past,omitempty"` // newest last
}

// Decision is a past action, and why.
type Decision struct {
	At     time.Time     `json:"at"`
	Seq    uint64        `json:"seq"`
	Action string        `json:"action"` // in words
	Reason action.Reason `json:"reason"`
}

// Find returns the workload by path, last part of the path, or service. Several
// workloads of a service are an error that names them.
func (s Status) Find(name string) (WorkloadStatus, error) {
	var found []WorkloadStatus
	for _, w := range s.Workloads {
		if w.ID == name {
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
		ids += " " + w.ID
	}
	return WorkloadStatus{}, fmt.Errorf("%q could be any of%s: name one by its path", name, ids)
}

// ErrNoStatus says that no agent wrote a status.
var ErrNoStatus = errors.New("no agent has written a status")

// ReadStatus reads the status of the agent whose state is in dir.
func ReadStatus(dir string) (Status, error) {
	file := filepath.Join(dir, statusName)
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return Status{}, fmt.Errorf("read %s: %w: start 'homenode agent', or name its folder with --state", file, ErrNoStatus)
	}
	if err != nil {
		return Status{}, fmt.Errorf("read status: %w", err)
	}
	return DecodeStatus(data, file)
}

// DecodeStatus refuses a form that is newer than this program.
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

// write replaces the status file at once, so that a reader never sees half.
func (s Status) write(dir string) error {
	data, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("write status: %w", err)
	}
	file := filepath.Join(dir, statusName)
	if err := os.WriteFile(file+".tmp", data, 0o644); err != nil {
		return fmt.Errorf("write status: %w", err)
	}
	return os.Rename(file+".tmp", file)
}
