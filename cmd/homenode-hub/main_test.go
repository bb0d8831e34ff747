// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"homenode/internal/cli/clitest"
	"homenode/internal/exit"
	"homenode/internal/hub"
	"homenode/internal/hub/ca"
)

// configIn writes a configuration whose files are all in one folder.
func configIn(t *testing.T, more string) (dir, file string) {
	t.Helper()
	dir = t.TempDir()
	text := fmt.Sprintf("listen: 127.0.0.1:7443\npage: ''\nnames: [hub.example]\nauthority: %s/ca\nsqlite: %s/status.db\nrollouts: {folder: %s/rollouts}\n%s", dir, dir, dir, more)
	return dir, clitest.WriteFile(t, filepath.Join(dir, "hub.yaml"), text)
}

// Bad input is exit code 2 and a line that says what to do.
func TestBadInput(t *testing.T) {
	dir, good := configIn(t, "")
	file := func(name, text string) string { return clitest.WriteFile(t, filepath.Join(dir, name), text) }
	_, bad := configIn(t, "colour: red\n")
	_, orders := configIn(t, "")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"frobnicate"}, "homenode-hub --help"},
		{[]string{"serve", "--config", filepath.Join(dir, "none.yaml")}, "none.yaml"},
		{[]string{"serve", "--config", bad}, "colour"},
		{[]string{"serve", "--config", file("a.yaml", "listen: :7443\n")}, "names"},
		{[]string{"serve", "--config", file("b.yaml", "names: [h]\nretention: {raw: 1m}\n")}, "retention.raw"},
		{[]string{"serve", "--config", file("c.yaml", "names: [h]\nsqlite: status.db\n")}, "absolute path"},
		{[]string{"serve", "--config", file("d.yaml", "names: [h]\nclickhouse: {address: ch.example}\n")}, "a host and a port"},
		{[]string{"serve", "--config", file("e.yaml", "names: [h]\nclickhouse: {tls: true}\n")}, "name the server"},
		{[]string{"serve", "--config", file("f.yaml", "names: [h]\nclickhouse: {address: 'ch:9440', user: ''}\n")}, "leave them out"},
		{[]string{"serve", "--config", file("g.yaml", "names: [h]\nclickhouse: {address: 'ch:9440', ca: /ca.pem}\n")}, "tls: true"},
		{[]string{"serve", "--config", file("h.yaml", "names: [h]\nclickhouse: {address: 'ch:9440', password: secret}\n")}, "absolute path"},
		{[]string{"query", "services", "--store", "clickhouse://ch.example:9000"}, "DATABASE"},
		{[]string{"query", "services", "--store", "clickhouse://u:secret@ch.example:9000/d"}, "HOMENODE_STORE_PASSWORD"},
		{[]string{"enrol", "db-7", "--config", good}, "homenode-hub serve"},
		{[]string{"enrol", "--config", good}, "the host's name"},
		{[]string{"revoke", "db-7", "--config", good}, "homenode-hub serve"},
		{[]string{"orders", file("o.yaml", "valid_for: 1s\n")}, "1m to 168h"},
		{[]string{"orders", file("p.yaml", "excluded: [db]\n")}, "pattern"},
		{[]string{"orders", file("q.yaml", "services: [{name: a}, {name: a}]\n")}, "no other service"},
		{[]string{"orders", "a", "b"}, "one file"},
		{[]string{"deploy", "frobnicate"}, "homenode-hub deploy --help"},
		{[]string{"completion", "frobnicate"}, "homenode-hub completion --help"},
		{[]string{"deploy", "status", "a", "b", "--config", good}, "one service"},
		{[]string{"deploy", "plan", "--config", good}, "a service"},
		{[]string{"deploy", "plan", "shop", "--config", good}, "status.db"},
		{[]string{"deploy", "plan", "shop", "--margin", "x", "--config", good}, "want a number"},
		{[]string{"deploy", "status", "-o", "xml", "--config", good}, "want text, json or yaml"},
		{[]string{"serve", "--config", file("i.yaml", "names: [h]\nrollouts: {folder: rel}\n")}, "rollouts.folder"},
		{[]string{"serve", "--config", file("j.yaml", "names: [h]\nrollouts: {webhook: 'http://hooks.example/'}\n")}, "https"},
		{[]string{"serve", "--config", file("k.yaml", "names: [h]\nrollouts: {message: '{{.Service}}'}\n")}, "name the address"},
		{[]string{"dev", "--dir", orders}, "hub.yaml"},
	} {
		code, text := clitest.RunCaught(t, rootCommand(), c.args...)
		if code != exit.Bad || !strings.HasPrefix(text, "homenode-hub: ") || !strings.Contains(text, c.want) {
			t.Errorf("%v: exit code %d, no %q in: %s", c.args, code, c.want, text)
		}
	}
	if code, text := clitest.RunCaught(t, rootCommand(), "orders", "--config", good); code != exit.Nothing || !strings.Contains(text, "own policy") {
		t.Errorf("no orders: exit code %d, %s", code, text)
	}
}

func TestEnrolRevokeOrders(t *testing.T) {
	dir, config := configIn(t, "")
	a, err := ca.Open(filepath.Join(dir, "ca"), true)
	if err != nil {
		t.Fatal(err)
	}
	code, out, _ := clitest.Run(rootCommand(), "enrol", "db-7", "--config", config)
	if code != exit.Done || !strings.Contains(out, "homenode enrol --hub https://hub.example:7443 --token ") || !strings.Contains(out, ca.Fingerprint(a.DER())) {
		t.Errorf("exit code %d: %s", code, out)
	}
	if code, out, _ = clitest.Run(rootCommand(), "revoke", "db-7", "--config", config); code != exit.Done || !strings.Contains(out, "refused from now on") {
		t.Errorf("exit code %d: %s", code, out)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "ca", "revoked")); err != nil || !strings.HasPrefix(string(text), "db-7 ") {
		t.Errorf("%q, %v", text, err)
	}
	file := clitest.WriteFile(t, filepath.Join(dir, "orders.yaml"), "services: [{name: shop, approved: true}]\nexcluded: [/db/*]\n")
	if code, out, _ = clitest.Run(rootCommand(), "orders", file); code != exit.Done || !strings.Contains(out, "shop") || !strings.Contains(out, "never bound: /db/*") {
		t.Errorf("exit code %d: %s", code, out)
	}
	if code, out, _ = clitest.Run(rootCommand(), "orders", file, "-o", "json"); code != exit.Done || !strings.Contains(out, `"target":null`) {
		t.Errorf("exit code %d: %s", code, out)
	}
}

func TestJSONEverywhere(t *testing.T) {
	clitest.JSONEverywhere(t, rootCommand(), map[string]string{
		"serve": "it runs until it is told to end, and logs", "dev": "it runs until it is told to end, and prints a part of a configuration",
		"revoke":       "it prints one sentence",
		"deploy pause": "it prints one sentence", "deploy resume": "it prints one sentence", "deploy rollback": "it prints one sentence", "deploy veto": "it prints one sentence", "deploy forget": "it prints one sentence",
		"reference": "it writes documents",
	})
}

// The guide's configuration and orders are some that the hub takes.
func TestDocumentedFiles(t *testing.T) {
	text, err := os.ReadFile("../../docs/hub.md")
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for _, block := range strings.Split(string(text), "```yaml\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		read++
		if strings.HasPrefix(block, "names:") {
			_, err = hub.ParseConfig([]byte(block), "docs/hub.md")
		} else {
			_, err = hub.ParseOrders([]byte(block), "docs/hub.md")
		}
		if err != nil {
			t.Error(err)
		}
	}
	if read != 3 {
		t.Errorf("%d files were read", read)
	}
}
