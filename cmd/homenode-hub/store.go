// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"homenode/internal/hub"
	"homenode/internal/kernel/unix"
	"homenode/internal/store"
	"homenode/internal/store/clickhouse"
	"homenode/internal/store/sqlite"
)

// lease is how long a write to ClickHouse may take; 0: what the store has. A batch whose write
// was cut off may have to wait for it. Tests have less patience.
var lease time.Duration

// openStore opens the store of a hub. A server that does not answer is not an error: agents
// keep what they have until it does.
func openStore(ctx context.Context, c hub.Config, log *slog.Logger) (store.Store, error) {
	if c.ClickHouse.Address != "" {
		o, err := clickhouseOptions(c.ClickHouse)
		if err != nil {
			return nil, err
		}
		s := store.NewLater(func(ctx context.Context) (store.Store, error) { return openClickHouse(ctx, o) }, time.Now)
		if err := s.Try(ctx); err != nil {
			log.Error("store", "error", err, "then", "agents keep their windows until it answers")
		}
		return s, nil
	}
	if err := os.MkdirAll(filepath.Dir(c.SQLite), 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the store: %w", err)
	}
	return openSQLite(ctx, c.SQLite)
}

// openSQLite has no store in it where it fails.
func openSQLite(ctx context.Context, file string) (store.Store, error) {
	s, err := sqlite.Open(ctx, file)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func openClickHouse(ctx context.Context, o clickhouse.Options) (store.Store, error) {
	s, err := clickhouse.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func storeName(c hub.Config) string {
	if c.ClickHouse.Address != "" {
		return fmt.Sprintf("ClickHouse, %s, database %s", c.ClickHouse.Address, c.ClickHouse.Database)
	}
	return "SQLite, " + c.SQLite
}

const (
	mostPassword     = 4096
	mostCertificates = 1 << 20
)

func clickhouseOptions(c hub.ClickHouse) (clickhouse.Options, error) {
	o := clickhouse.Options{Address: c.Address, Database: c.Database, User: c.User, Lease: lease}
	if c.Password != "" {
		text, err := unix.ReadAtMost(c.Password, mostPassword)
		if err != nil {
			return o, fmt.Errorf("read the store's password: %w", err)
		}
		o.Password = strings.TrimRight(string(text), "\r\n")
	}
	if !c.TLS {
		return o, nil
	}
	o.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CA != "" {
		text, err := unix.ReadAtMost(c.CA, mostCertificates)
		if err != nil {
			return o, fmt.Errorf("read the authorities of the store: %w", err)
		}
		o.TLS.RootCAs = x509.NewCertPool()
		if !o.TLS.RootCAs.AppendCertsFromPEM(text) {
			return o, fmt.Errorf("read the authorities of the store: %s has no certificate in PEM", c.CA)
		}
	}
	return o, nil
}

// storeAt opens a store that is there already, for a question without a hub.
func storeAt(ctx context.Context, address string) (store.Store, error) {
	if file, ok := strings.CutPrefix(address, "sqlite:"); ok {
		if _, err := os.Stat(file); err != nil {
			return nil, fmt.Errorf("open the store: %w", err)
		}
		return openSQLite(ctx, file)
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "clickhouse" || u.Host == "" || strings.Trim(u.Path, "/") == "" {
		return nil, errors.New("--store: want sqlite:FILE, or clickhouse://USER@HOST:PORT/DATABASE, with ?tls=true where the server has TLS")
	}
	if _, set := u.User.Password(); set {
		return nil, errors.New("--store has a password, which every user of this host can see: put it into HOMENODE_STORE_PASSWORD")
	}
	o, err := clickhouseOptions(hub.ClickHouse{Address: u.Host, Database: strings.Trim(u.Path, "/"), User: u.User.Username(), TLS: u.Query().Get("tls") == "true"})
	if err != nil {
		return nil, err
	}
	o.Password = os.Getenv("HOMENODE_STORE_PASSWORD")
	return openClickHouse(ctx, o)
}
