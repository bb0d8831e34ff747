// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"homenode/internal/cli/clitest"
	"homenode/internal/exit"
	"homenode/internal/hub"
	"homenode/internal/hub/sensitivity"
)

const gainModel = "../../internal/model/gain/testdata/gain.json"

// The store and the hub give the same services; each has a verdict and a reason.
func TestSensitivity(t *testing.T) {
	file, _, server := hubOf(t, func(*hub.Config) {})
	var reports [2]sensitivity.Report
	for i, whom := range [][]string{{"--store", "sqlite:" + file}, {"--hub", server.URL}} {
		args := append([]string{"sensitivity", "--model", gainModel}, whom...)
		code, out, errs := clitest.Run(rootCommand(), append(args, "-o", "json")...)
		if err := json.Unmarshal([]byte(out), &reports[i]); err != nil || code != exit.Done {
			t.Fatalf("%v: exit code %d, %v: %s", whom, code, err, errs)
		}
		code, text, errs := clitest.Run(rootCommand(), args...)
		if code != exit.Done || !strings.Contains(text, "simulated, not measured") || strings.Contains(text, "\x1b") {
			t.Errorf("%v: exit code %d, %s%s", whom, code, text, errs)
		}
	}
	a, b := reports[0], reports[1]
	if len(a.Services) == 0 || len(a.Services) != len(b.Services) {
		t.Fatalf("%d and %d services", len(a.Services), len(b.Services))
	}
	for i, s := range a.Services {
		if s.Service != b.Services[i].Service || s.Gain != b.Services[i].Gain || s.Verdict == "" || s.Reason == "" || s.How.String() != "modelled" {
			t.Errorf("%+v, through the hub %+v", s, b.Services[i])
		}
	}
	one, _, _ := clitest.Run(rootCommand(), "sensitivity", "none-*", "--model", gainModel, "--store", "sqlite:"+file)
	if one != exit.Done {
		t.Errorf("no service: exit code %d", one)
	}
}

func TestSensitivityBadInput(t *testing.T) {
	file, _, _ := hubOf(t, func(*hub.Config) {})
	at := []string{"--store", "sqlite:" + file}
	broken := filepath.Join(t.TempDir(), "gain.json")
	if err := os.WriteFile(broken, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{at, "--model is not given"},
		{append([]string{"--model", "none.json"}, at...), "no such file"},
		{append([]string{"--model", broken}, at...), "no model of gains"},
		{append([]string{"--model", gainModel, "--least", "2"}, at...), "--least"},
		{append([]string{"--model", gainModel, "--least", "NaN"}, at...), "--least"},
		{append([]string{"--model", gainModel, "--since", "soon"}, at...), "since is"},
		{append([]string{"--model", gainModel, "-o", "csv"}, at...), "want text, json or yaml"},
		{append([]string{"a", "b", "--model", gainModel}, at...), "a service or nothing"},
		{[]string{"--model", gainModel, "--hub", "http://127.0.0.1:1"}, "127.0.0.1:1"},
		{[]string{"--model", gainModel, "--store", "sqlite:" + filepath.Join(t.TempDir(), "none.db")}, "none.db"},
	} {
		code, text := clitest.RunCaught(t, rootCommand(), append([]string{"sensitivity"}, c.args...)...)
		if code != exit.Bad || !strings.Contains(text, c.want) {
			t.Errorf("%v: exit code %d: %s; want %q", c.args, code, text, c.want)
		}
	}
}
