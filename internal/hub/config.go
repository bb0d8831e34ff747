// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"homenode/internal/hub/ca"
	"homenode/internal/hub/deploy"
	"homenode/internal/hub/sensitivity"
	"homenode/internal/kernel/unix"
	"homenode/internal/store"
	"homenode/internal/webhook"
	"homenode/internal/yamlfile"
)

// ErrConfig is wrapped by every error about the hub's configuration.
var ErrConfig = errors.New("bad configuration of the hub")

// Config is the hub's configuration file.
type Config struct {
	// TCP address for agents. They need a certificate of this hub's authority.
	Listen string `yaml:"listen"`
	// TCP address for people: pages, questions, metrics and health, without TLS. Put a proxy in
	// front of it that has TLS. Empty: none.
	Page string `yaml:"page"`
	// File of the tokens that may see pages and ask: the SHA-256 sum of each on a line, read at
	// the start. Empty: only programs of this host may, and a proxy on it.
	Tokens string `yaml:"tokens"`
	// Host names and addresses by which agents reach this hub, for its certificate. Required.
	Names []string `yaml:"names"`
	// Folder of the certificate authority, its tokens and its list of revoked hosts.
	Authority string `yaml:"authority"`
	// File of the orders for hosts, read again when it changes. Empty: there are none.
	Orders string `yaml:"orders"`
	// Rollouts of services, host by host.
	Rollouts Rollouts `yaml:"rollouts"`
	// File of the embedded store.
	SQLite string `yaml:"sqlite"`
	// A ClickHouse server as the store, instead of the embedded one.
	ClickHouse ClickHouse `yaml:"clickhouse"`
	// How long the store keeps what.
	Retention Retention `yaml:"retention"`
	// Number of requests that may wait for the store at once, 1 to 1000. Each takes up to 40 MB.
	Requests int `yaml:"requests"`
	// How long a request waits for others to be written together, up to 10s.
	Gather time.Duration `yaml:"gather"`
}

// Rollouts says where they are kept, and who is told.
type Rollouts struct {
	// Folder of their states. Hubs that share it carry them on together.
	Folder string `yaml:"folder"`
	// Address that is told of each step, with https, or with http on this host. Empty: none.
	Webhook string `yaml:"webhook"`
	// Template of its text, such as "{{.Service}}: {{.Sentence}} ({{.By}})". Empty: the usual.
	Message string `yaml:"message"`
	// Manifest of a model of gains, whose predictions the page shows; read again when it changes.
	// Empty: none.
	Model string `yaml:"model"`
	// Services that the hub rolls out by itself.
	Start Start `yaml:"start"`
}

func (r Rollouts) check() (at, why string) {
	if at, why := r.Start.check(r.Model); why != "" {
		return at, why
	}
	if r.Model != "" && !filepath.IsAbs(r.Model) {
		return "rollouts.model", fmt.Sprintf("it is %q: want the absolute path of a manifest, such as /etc/homenode/gain.json", r.Model)
	}
	if !filepath.IsAbs(r.Folder) {
		return "rollouts.folder", fmt.Sprintf("it is %q: want an absolute path", r.Folder)
	}
	if r.Webhook == "" && r.Message != "" {
		return "rollouts.webhook", "it is empty, and message is set: name the address"
	}
	if r.Webhook != "" {
		if _, err := webhook.New(r.Webhook, r.Message); err != nil {
			return "rollouts.webhook", err.Error()
		}
	}
	return "", ""
}

// ClickHouse says where a server's database is. The database must be there; its tables are made.
type ClickHouse struct {
	// Host and port of the native protocol, 9000, or 9440 with TLS. Empty: the embedded store.
	Address string `yaml:"address"`
	// Its database.
	Database string `yaml:"database"`
	// Its user.
	User string `yaml:"user"`
	// File of the user's password, read at the start. Empty: none.
	Password string `yaml:"password"`
	// Whether the connection has TLS.
	TLS bool `yaml:"tls"`
	// File of the authorities (PEM) that vouch for the server. Empty: this host's.
	CA string `yaml:"ca"`
}

func (c ClickHouse) check() (at, why string) {
	if c.Address == "" {
		if c != DefaultConfig().ClickHouse {
			return "clickhouse.address", "it is empty, and other keys of clickhouse are set: name the server, such as clickhouse.example:9440"
		}
		return "", ""
	}
	if host, port, err := net.SplitHostPort(c.Address); err != nil || host == "" || port == "" {
		return "clickhouse.address", fmt.Sprintf("it is %q: want a host and a port, such as clickhouse.example:9440", c.Address)
	}
	if c.Database == "" || c.User == "" {
		return "clickhouse", "database or user is empty: leave them out for 'default'"
	}
	for _, f := range []struct{ key, path string }{{"password", c.Password}, {"ca", c.CA}} {
		if f.path != "" && !filepath.IsAbs(f.path) {
			return "clickhouse." + f.key, fmt.Sprintf("it is %q: want the absolute path of a file", f.path)
		}
	}
	if c.CA != "" && !c.TLS {
		return "clickhouse.ca", "it is set, and tls is not: set 'tls: true'"
	}
	return "", ""
}

// Retention is store.Retention in a file.
type Retention struct {
	// Windows as they came.
	Raw time.Duration `yaml:"raw"`
	// Windows added up by the minute.
	Minutes time.Duration `yaml:"minutes"`
	// Windows added up by the hour.
	Hours time.Duration `yaml:"hours"`
	// Decisions and outcomes.
	Events time.Duration `yaml:"events"`
}

// Store is the same as the store has it.
func (r Retention) Store() store.Retention {
	return store.Retention{Raw: r.Raw, Minutes: r.Minutes, Hours: r.Hours, Events: r.Events}
}

// DefaultConfig is what holds where the file says nothing.
func DefaultConfig() Config {
	u := store.Usual
	return Config{
		Listen: ":7443", Page: "127.0.0.1:7480", Authority: "/var/lib/homenode-hub/authority", SQLite: "/var/lib/homenode-hub/status.db",
		Rollouts:   Rollouts{Folder: "/var/lib/homenode-hub/rollouts", Start: Start{Least: sensitivity.Usual, AtOnce: 1, Indicator: deploy.Latency}},
		ClickHouse: ClickHouse{Database: "default", User: "default"},
		Retention:  Retention{u.Raw, u.Minutes, u.Hours, u.Events}, Requests: 16,
	}
}

// Minimal is a file with what a hub on one machine needs, as dev runs it. Go's quoted texts are
// YAML's, too.
func (c Config) Minimal() []byte {
	names := make([]string, len(c.Names))
	for i, n := range c.Names {
		names[i] = strconv.Quote(n)
	}
	return fmt.Appendf(nil, "listen: %q\npage: %q\nnames: [%s]\nauthority: %q\nsqlite: %q\nrollouts: {folder: %q}\n", c.Listen, c.Page, strings.Join(names, ", "), c.Authority, c.SQLite, c.Rollouts.Folder)
}

const mostConfig = 1 << 20

// ReadConfig reads the file.
func ReadConfig(file string) (Config, error) {
	text, err := unix.ReadAtMost(file, mostConfig)
	if err != nil {
		return Config{}, fmt.Errorf("read configuration: %w", err)
	}
	return ParseConfig(text, file)
}

// ParseConfig refuses unknown keys, and what cannot be meant.
func ParseConfig(text []byte, file string) (Config, error) {
	c := DefaultConfig()
	doc, err := yamlfile.Parse(text, file, yamlfile.Rules{Malformed: ErrConfig, What: "a configuration", Most: mostConfig, MayBeEmpty: true})
	if err == nil {
		err = doc.Decode(&c)
	}
	if err != nil {
		return Config{}, err
	}
	if at, why := c.check(); why != "" {
		return Config{}, doc.Wrong(at, why)
	}
	return c, nil
}

func (c Config) check() (at, why string) {
	for _, a := range []struct{ key, address string }{{"listen", c.Listen}, {"page", c.Page}} {
		if _, port, err := net.SplitHostPort(a.address); (err != nil || port == "") && (a.address != "" || a.key == "listen") {
			return a.key, fmt.Sprintf("it is %q: want an address and a port, such as :7443", a.address)
		}
	}
	if len(c.Names) == 0 {
		return "names", "it is empty: name the host names and addresses by which agents reach this hub"
	}
	for i, n := range c.Names {
		if net.ParseIP(n) == nil && ca.CheckHost(n) != nil {
			return fmt.Sprintf("names[%d]", i), fmt.Sprintf("%q is neither a host name nor an address", n)
		}
	}
	for _, f := range []struct{ key, path string }{{"authority", c.Authority}, {"sqlite", c.SQLite}, {"orders", c.Orders}, {"tokens", c.Tokens}} {
		if !filepath.IsAbs(f.path) && (f.path != "" || f.key != "orders" && f.key != "tokens") {
			return f.key, fmt.Sprintf("it is %q: want an absolute path", f.path)
		}
	}
	if at, why := c.ClickHouse.check(); why != "" {
		return at, why
	}
	if at, why := c.Rollouts.check(); why != "" {
		return at, why
	}
	for _, r := range []struct {
		key string
		d   time.Duration
	}{{"raw", c.Retention.Raw}, {"minutes", c.Retention.Minutes}, {"hours", c.Retention.Hours}, {"events", c.Retention.Events}} {
		if r.d < time.Hour || r.d > 20*365*24*time.Hour {
			return "retention." + r.key, fmt.Sprintf("it is %v: want 1h to 175200h", r.d)
		}
	}
	if c.Requests < 1 || c.Requests > 1000 {
		return "requests", fmt.Sprintf("it is %d: want 1 to 1000", c.Requests)
	}
	if c.Gather < 0 || c.Gather > 10*time.Second {
		return "gather", fmt.Sprintf("it is %v: want 0s to 10s", c.Gather)
	}
	return "", ""
}
