// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"homenode/internal/agent/outbox"
	"homenode/internal/unit"
)

// Paths of the files that outlive a reboot, for an agent with the default state
// folder. With another folder, as in tests and second agents, they are in that
// folder.
const (
	defaultDecisions = "/var/log/homenode/decisions.jsonl"
	defaultHistory   = "/var/lib/homenode/history.json"
	defaultDeploy    = "/var/lib/homenode/deploy"
	defaultSpool     = "/var/lib/homenode/spool"
)

// none is the value that switches a file or the socket off.
const none = "none"

// Running is the part of the configuration that is about the agent itself.
type Running struct {
	Log       LogConfig
	Decisions FileConfig
	Record    FileConfig // of windows; Path "": none
	History   HistoryConfig
	// Deployments is the folder of what 'homenode deploy' tried; "": none.
	Deployments string
	API         APIConfig
	Metrics     MetricsConfig
	Hub         outbox.Config
}

// LogConfig is the level and format of the agent's log.
type LogConfig struct {
	Level  string `yaml:"level"`  // least level that is logged: debug, info, warn or error
	Format string `yaml:"format"` // text or json
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
	// The agent's log.
	Log LogConfig `yaml:"log"`
	// Decision log, or none. Empty: /var/log/homenode/decisions.jsonl, or in the state folder if that is not the default.
	Decisions string `yaml:"decisions"`
	// Size at which the decision log begins a new file, 64KiB to 256MiB.
	DecisionsSize unit.Bytes `yaml:"decisions_size"`
	// Number of older files of the decision log, 0 to 1000.
	DecisionsKeep int `yaml:"decisions_keep"`
	// File to which every window is recorded, for 'homenode replay'. Empty or none: nothing is recorded.
	Record string `yaml:"record"`
	// Size at which the recording begins a new file, at least 64KiB.
	RecordSize unit.Bytes `yaml:"record_size"`
	// Number of older files of the recording, 0 to 1000.
	RecordKeep int `yaml:"record_keep"`
	// File that keeps the nodes' histories across restarts, or none. Empty: /var/lib/homenode/history.json, or in the state folder if that is not the default.
	History string `yaml:"history"`
	// How often the histories are saved, at least 1s.
	HistoryEvery time.Duration `yaml:"history_every"`
	// Folder of what 'homenode deploy' tried on this host, whose kept services are approved, or none.
	// Empty: /var/lib/homenode/deploy, or in the state folder if that is not the default.
	Deployments string `yaml:"deployments"`
	// The local API.
	API fileAPI `yaml:"api"`
	// Metrics for Prometheus. The API's socket always serves them.
	Metrics fileMetrics `yaml:"metrics"`
	// The hub of the fleet, which keeps what its hosts see.
	Hub outbox.Config `yaml:"hub"`
}

type fileAPI struct {
	// Unix socket of the API, or none. Empty: api.sock in the state folder.
	Socket string `yaml:"socket"`
	// Group that may read the API. It must exist. Empty: only root may.
	Group string `yaml:"group"`
	// Group that may also change things through the API. It must exist. Empty: only root may.
	WriteGroup string `yaml:"write_group"`
}

type fileMetrics struct {
	// TCP address that serves metrics and health, and nothing else, such as 127.0.0.1:9464. Empty: none.
	Listen string `yaml:"listen"`
	// Number of workloads with series of their own, 0 to 10000. The others are counted.
	MaxWorkloads int `yaml:"max_workloads"`
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
	r.Hub.Budget = outbox.DefaultBudget
	return r
}

// check fills in what follows from the state folder.
func (r FileRunning) check(c Config, w *wrongs) Running {
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

		Deployments: pathOr(r.Deployments, own(defaultDeploy)),
		API: APIConfig{Socket: pathOr(r.API.Socket, filepath.Join(c.StateDir, socketName)), Asked: r.API.Socket != "" && r.API.Socket != none,
			Group: r.API.Group, WriteGroup: r.API.WriteGroup},
		Metrics: MetricsConfig{r.Metrics.Listen, r.Metrics.MaxWorkloads}, Hub: r.Hub,
	}
	if out.Hub.Spool == "" {
		out.Hub.Spool = own(defaultSpool)
	}
	out.validate(w)
	return out
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

// maxSocket is the longest path of the API's socket, bytes: the kernel takes 107
// (UNIX_PATH_MAX), and the socket is made below PATH.new.
const maxSocket = 107 - len(".new/s")

func (r Running) validate(w *wrongs) {
	w.oneOf("log.level", r.Log.Level, "debug", "info", "warn", "error")
	w.oneOf("log.format", r.Log.Format, "text", "json")
	for _, f := range []struct{ key, path string }{{"decisions", r.Decisions.Path}, {"record", r.Record.Path}, {"history", r.History.Path}, {"deployments", r.Deployments}, {"api.socket", r.API.Socket}} {
		if f.path != "" && !filepath.IsAbs(f.path) {
			w.at(f.key, "it is %q: want an absolute path, or none", f.path)
		}
	}
	if n := len(r.API.Socket); r.API.Asked && n > maxSocket {
		w.at("api.socket", "its path has %d bytes: want at most %d, which is what the kernel takes: use a shorter folder, such as /run/homenode", n, maxSocket)
	}
	for _, f := range []struct {
		key string
		FileConfig
	}{{"decisions", r.Decisions}, {"record", r.Record}} {
		if f.Size < 64*unit.KiB {
			w.at(f.key+"_size", "it is %v: want at least 64KiB", f.Size)
		}
		if f.Keep < 0 || f.Keep > 1000 {
			w.at(f.key+"_keep", "it is %d: want 0 to 1000", f.Keep)
		}
	}
	if most := 256 * unit.MiB; r.Decisions.Size > most { // a query reads a file from its beginning
		w.at("decisions_size", "it is %v: want at most %v", r.Decisions.Size, most)
	}
	if r.API.WriteGroup != "" && r.API.Group == "" {
		w.at("api.write_group", "it is %q without group: only root could use the socket: set group too", r.API.WriteGroup)
	}
	if r.History.Every < time.Second {
		w.at("history_every", "it is %v: want at least 1s", r.History.Every)
	}
	if r.Metrics.MaxWorkloads < 0 || r.Metrics.MaxWorkloads > 10_000 {
		w.at("metrics.max_workloads", "it is %d: want 0 to 10000", r.Metrics.MaxWorkloads)
	}
	checkHub(r.Hub, w)
	if r.Metrics.Listen != "" {
		if _, port, err := net.SplitHostPort(r.Metrics.Listen); err != nil || port == "" {
			w.at("metrics.listen", "it is %q: want an address and a port, e.g. 127.0.0.1:9464", r.Metrics.Listen)
		}
	}
}

func (s Service) checkNear(key string, w *wrongs) {
	for _, name := range s.Near {
		if strings.TrimSpace(name) == "" {
			w.at(key+".near", "it has an empty name: want e.g. eth0, 0000:3b:00.0 or node 1")
		}
	}
}

func (s Service) checkLatency(key string, w *wrongs) {
	if s.LatencyFile != "" && !filepath.IsAbs(s.LatencyFile) {
		w.at(key+".latency_file", "it is %q: want an absolute path", s.LatencyFile)
	}
}

// checkHub: without an address nothing is sent, and the rest does not count.
func checkHub(h outbox.Config, w *wrongs) {
	if h.Budget < unit.MiB || h.Budget > 64*unit.GiB {
		w.at("hub.budget", "it is %v: want 1MiB to 64GiB", h.Budget)
	}
	if !h.On() {
		return
	}
	if u, err := url.Parse(h.Address); err != nil || u.Scheme != "https" || u.Host == "" {
		w.at("hub.address", "it is %q: want https://HOST:PORT", h.Address)
	}
	for _, f := range []struct{ key, path string }{{"ca", h.CA}, {"certificate", h.Certificate}, {"key", h.Key}, {"spool", h.Spool}} {
		if !filepath.IsAbs(f.path) && (f.path != "" || f.key != "key") {
			w.at("hub."+f.key, "it is %q: want an absolute path: 'homenode enrol' writes the files and says what to put here", f.path)
		}
	}
}
