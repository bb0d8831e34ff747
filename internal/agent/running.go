// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"time"

	"homenode/internal/unit"
)

// Paths of the files that outlive a reboot, for an agent with the default state
// folder. With another folder, as in tests and second agents, both files are in
// that folder.
const (
	defaultDecisions = "/var/log/homenode/decisions.jsonl"
	defaultHistory   = "/var/lib/homenode/history.json"
)

// none is the value that switches a file or the socket off.
const none = "none"

// Running is the part of the configuration that is about the agent itself.
type Running struct {
	Log       LogConfig
	Decisions FileConfig
	Record    FileConfig // of windows; Path "": none
	History   HistoryConfig
	API       APIConfig
	Metrics   MetricsConfig
}

// LogConfig is the level and format of the agent's log.
type LogConfig struct {
	Level  string `yaml:"level"`  // debug, info, warn, error
	Format string `yaml:"format"` // text, json
}

// FileConfig is a rotated file of lines.
type FileConfig struct {
	Path string     // "": none
	Size unit.Bytes // of one file
	Keep int        // number of older files beside it
}

// HistoryConfig says where the nodes' histories are kept across restarts.
type HistoryConfig struct {
	Path  string // "": nowhere
	Every time.Duration
}

// APIConfig configures the local API.
type APIConfig struct {
	Socket string // "": none
	// Asked says that the configuration names the socket. If it does not, a socket that
	// cannot be made is only a warning.
	Asked      bool
	Group      string // group that may read; "": only root may
	WriteGroup string // group that may also change things; "": only root may
}

// MetricsConfig configures the metrics for Prometheus.
type MetricsConfig struct {
	Listen       string // TCP address that serves only metrics and health; "": only the socket serves them
	MaxWorkloads int    // number of workloads with series of their own; the others are counted
}

// FileRunning is the form of Running in the file (the YAML library sets exported fields
// only).
type FileRunning struct {
	Log           LogConfig     `yaml:"log"`
	Decisions     string        `yaml:"decisions"`
	DecisionsSize unit.Bytes    `yaml:"decisions_size"`
	DecisionsKeep int           `yaml:"decisions_keep"`
	Record        string        `yaml:"record"`
	RecordSize    unit.Bytes    `yaml:"record_size"`
	RecordKeep    int           `yaml:"record_keep"`
	History       string        `yaml:"history"`
	HistoryEvery  time.Duration `yaml:"history_every"`
	API           struct {
		Socket     string `yaml:"socket"`
		Group      string `yaml:"group"`
		WriteGroup string `yaml:"write_group"`
	} `yaml:"api"`
	Metrics struct {
		Listen       string `yaml:"listen"`
		MaxWorkloads int    `yaml:"max_workloads"`
	} `yaml:"metrics"`
}

// defaultRunning: a decision is about 2 kB, so five files of 16 MiB hold some 40,000 of
// them. A window of 50 workloads on 8 nodes is some 150 kB, so two files of 1 GiB hold
// a day and a half of windows of 10 s. A history that is 10 minutes old lacks 60 of 512
// windows.
func defaultRunning() FileRunning {
	r := FileRunning{
		Log:           LogConfig{Level: "info", Format: "text"},
		DecisionsSize: 16 * unit.MiB, DecisionsKeep: 4,
		RecordSize: unit.GiB, RecordKeep: 1,
		HistoryEvery: 10 * time.Minute,
	}
	r.Metrics.MaxWorkloads = 200
	return r
}

// check fills in what follows from the state folder.
func (r FileRunning) check(c Config) (Running, error) {
	own := func(standard string) string {
		if c.StateDir == DefaultStateDir {
			return standard
		}
		return filepath.Join(c.StateDir, filepath.Base(standard))
	}
	out := Running{
		Log:       r.Log,
		Decisions: FileConfig{pathOr(r.Decisions, own(defaultDecisions)), r.DecisionsSize, r.DecisionsKeep},
		Record:    FileConfig{pathOr(r.Record, ""), r.RecordSize, r.RecordKeep},
		History:   HistoryConfig{pathOr(r.History, own(defaultHistory)), r.HistoryEvery},
		API: APIConfig{Socket: pathOr(r.API.Socket, filepath.Join(c.StateDir, socketName)), Asked: r.API.Socket != "" && r.API.Socket != none,
			Group: r.API.Group, WriteGroup: r.API.WriteGroup},
		Metrics: MetricsConfig{r.Metrics.Listen, r.Metrics.MaxWorkloads},
	}
	return out, out.validate()
}

func pathOr(path, other string) string {
	switch path {
	case "":
		return other
	case none:
		return ""
	}
	return path
}

func (r Running) validate() error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if _, ok := logLevels[r.Log.Level]; !ok {
		wrong("log: level is %q: want debug, info, warn or error", r.Log.Level)
	}
	if r.Log.Format != "text" && r.Log.Format != "json" {
		wrong("log: format is %q: want text or json", r.Log.Format)
	}
	for name, path := range map[string]string{"decisions": r.Decisions.Path, "record": r.Record.Path, "history": r.History.Path, "api: socket": r.API.Socket} {
		if path != "" && !filepath.IsAbs(path) {
			wrong("%s is %q: want a whole path, or none", name, path)
		}
	}
	for name, f := range map[string]FileConfig{"decisions": r.Decisions, "record": r.Record} {
		if f.Size < 64*unit.KiB {
			wrong("%s_size is %v: want at least 64KiB", name, f.Size)
		}
		if f.Keep < 0 || f.Keep > 1000 {
			wrong("%s_keep is %d: want 0 to 1000", name, f.Keep)
		}
	}
	if most := 256 * unit.MiB; r.Decisions.Size > most { // a query reads a file from its beginning
		wrong("decisions_size is %v: want at most %v", r.Decisions.Size, most)
	}
	if r.API.WriteGroup != "" && r.API.Group == "" {
		wrong("api: write_group is %q without group: only root could use the socket: set group too", r.API.WriteGroup)
	}
	if r.History.Every < time.Second {
		wrong("history_every is %v: want at least 1s", r.History.Every)
	}
	if r.Metrics.MaxWorkloads < 0 || r.Metrics.MaxWorkloads > 10_000 {
		wrong("metrics: max_workloads is %d: want 0 to 10000", r.Metrics.MaxWorkloads)
	}
	if r.Metrics.Listen != "" {
		if _, port, err := net.SplitHostPort(r.Metrics.Listen); err != nil || port == "" {
			wrong("metrics: listen is %q: want an address and a port, e.g. 127.0.0.1:9464", r.Metrics.Listen)
		}
	}
	return errors.Join(errs...)
}

func (s Service) checkNear(i int) error {
	for _, name := range s.Near {
		if strings.TrimSpace(name) == "" {
			return fmt.Errorf("services[%d] %s: near has an empty name: want e.g. eth0, 0000:3b:00.0 or node 1", i, s.Name)
		}
	}
	return nil
}

func (s Service) checkLatency(i int) error {
	if s.LatencyFile != "" && !filepath.IsAbs(s.LatencyFile) {
		return fmt.Errorf("services[%d] %s: latency_file is %q: want a whole path", i, s.Name, s.LatencyFile)
	}
	return nil
}
