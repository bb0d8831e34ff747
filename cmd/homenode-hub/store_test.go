// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"homenode/internal/cli/clitest"
	"homenode/internal/hub"
	"homenode/internal/store"
)

// A hub starts while its server is away, says so, and takes nothing.
func TestStoreAway(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	c := hub.DefaultConfig()
	c.ClickHouse.Address = address
	var log bytes.Buffer
	s, err := openStore(t.Context(), c, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if !strings.Contains(log.String(), address) || !strings.Contains(log.String(), "agents keep their windows") {
		t.Errorf("the log: %s", &log)
	}
	if _, err := s.Add(t.Context(), nil); !errors.Is(err, store.ErrBusy) {
		t.Errorf("add: %v", err)
	}
	if name := storeName(c); name != "ClickHouse, "+address+", database default" {
		t.Errorf("%q", name)
	}
}

func TestStoreOptions(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string { return clitest.WriteFile(t, filepath.Join(dir, name), text) }
	o, err := clickhouseOptions(hub.ClickHouse{Address: "h:1", Database: "d", User: "u", Password: file("password", "pass word \n"), TLS: true})
	if err != nil || o.Address != "h:1" || o.Database != "d" || o.User != "u" || o.Password != "pass word " || o.TLS == nil || o.TLS.InsecureSkipVerify {
		t.Errorf("%+v, %v", o, err)
	}
	for _, c := range []struct {
		of   hub.ClickHouse
		want string
	}{
		{hub.ClickHouse{Password: filepath.Join(dir, "none")}, "read the store's password"},
		{hub.ClickHouse{TLS: true, CA: filepath.Join(dir, "none")}, "read the authorities"},
		{hub.ClickHouse{TLS: true, CA: file("ca.pem", "nothing\n")}, "no certificate in PEM"},
	} {
		if _, err := clickhouseOptions(c.of); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.of, err, c.want)
		}
	}
}
