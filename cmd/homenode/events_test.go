// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/kernel/kerneltest"
	"homenode/internal/source"
)

func runEvents(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := rootCommand()
	cmd.SetArgs(append([]string{"events"}, args...))
	cmd.SetOut(&out)
	err := cmd.Execute()
	return strings.Join(strings.Fields(out.String()), " "), err
}

func TestEvents(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "proc"), 0o755); err != nil {
		t.Fatal(err)
	}
	cpuinfo := "processor\t: 0\nvendor_id\t: AuthenticAMD\x1b[2J\ncpu family\t: 26\nmodel\t\t: 2\nstepping\t: 1\n"
	for _, c := range []struct{ info, want string }{{strings.Replace(cpuinfo, "\x1b[2J", "", 1), "table amd-zen5: AMD Zen 5 (Turin)"}, {cpuinfo, "table generic: any CPU"}} {
		if err := os.WriteFile(filepath.Join(root, "proc/cpuinfo"), []byte(c.info), 0o644); err != nil {
			t.Fatal(err)
		}
		out, err := runEvents(t, "--root", root)
		if err != nil || !strings.Contains(out, c.want) || strings.Contains(out, "\x1b") || !strings.Contains(out, "family 26 model 0x02 stepping 1") {
			t.Errorf("%v\n%s", err, out)
		}
	}
	out, err := runEvents(t, "--cpu", "amd-zen5")
	for _, want := range []string{"r0964 + r1f71 + r1f72", "local_loads r100000865", "or r0844", "never run on hardware", "uncore_waits unknown", "cpu-cycles", "controller reads amd_umc/event=0x0a,rdwrmask=0x1/"} {
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("no %q: %v\n%s", want, err, out)
		}
	}
	out, err = runEvents(t, "--cpu", "lab", "-o", "json")
	var list source.Events
	if err != nil || json.Unmarshal([]byte(out), &struct {
		Table *string `json:"table"`
	}{&list.Table}) != nil || list.Table != "lab" || !strings.Contains(out, `"perf": "r01d3"`) {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := runEvents(t, "--cpu", "vax"); cli.Finish("homenode", err, &bytes.Buffer{}) != exit.Bad || !strings.Contains(err.Error(), "arm-neoverse-n1") {
		t.Errorf("an unknown table: %v", err)
	}
	if _, err := runEvents(t, "-o", "xml"); cli.Finish("homenode", err, &bytes.Buffer{}) != exit.Bad {
		t.Errorf("%v", err)
	}
}

// A recorded tree and another CPU's table are not tried: they are not of this host.
func TestEventsNotTried(t *testing.T) {
	for _, args := range [][]string{{"--cpu", "generic"}, {"--root", kerneltest.Tree(t, kerneltest.CPUTree("zen-4")).Path("/")}} {
		out, err := runEvents(t, args...)
		list, err2 := runEvents(t, append(args, "-o", "json")...)
		if err != nil || err2 != nil || strings.Contains(out, "HERE") || !strings.Contains(list, `"tried_on_cpu": null`) {
			t.Errorf("%v: %v %v\n%s", args, err, err2, out)
		}
	}
	if out, err := runEvents(t); err != nil || !strings.Contains(out, "HERE") {
		t.Errorf("this host: %v\n%s", err, out)
	}
}
