// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"homenode/internal/agent/threadagent"
	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/kernel"
)

// The file's settings hold. A flag that contradicts the file is an error.
func TestBRMFlagsAndFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "brm.yaml")
	for _, c := range []struct {
		text, flags string
		period      time.Duration
		hold, infer bool
		err         string
	}{
		{"", "", threadagent.DefaultPeriod, false, false, ""},
		{"infer: true\nperiod: 20ms\nhold: true\n", "", 20 * time.Millisecond, true, true, ""},
		{"infer: true\nperiod: 20ms\n", "--infer --period=20ms --hold", 20 * time.Millisecond, true, true, ""},
		{"margin: 0.1\n", "--infer --period=20ms", 20 * time.Millisecond, false, true, ""},
		{"period: 20ms\n", "--period=30ms", 0, false, false, "--period 30ms: " + file + " says period: 20ms: say it once"},
		{"hold: false\n", "--hold", 0, false, false, "--hold true: "},
		{"infer: true\n", "--infer=false", 0, false, false, "--infer false: "},
		{"period: 5ms\n", "", 0, false, false, file + ": period 5ms: want 10ms to "},
		{"", "--period=5ms", 0, false, false, "--period: period 5ms: want 10ms to "},
	} {
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		o := pinOptions{pids: "12", config: file}
		cmd := pinFlags(&o)
		if err := cmd.Flags().Parse(strings.Fields(c.flags)); err != nil {
			t.Fatal(err)
		}
		o.pids, o.config = "12", file
		cfg, rc, err := o.check(cmd.Flags().Changed)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%q with %q: %v, want %q", c.text, c.flags, err, c.err)
			}
			continue
		}
		if err != nil || cfg.Period != c.period || cfg.Hold != c.hold || cfg.Infer != c.infer || rc.Infer != c.infer {
			t.Errorf("%q with %q: %+v, %v", c.text, c.flags, cfg, err)
		}
	}
}

// A wrong request is exit code 2; any other failure is 1.
func TestBRMExitCodes(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
	}{
		{fmt.Errorf("process 7: %w", kernel.ErrGone), exit.Bad},
		{fmt.Errorf("read: %w", kernel.ErrNotPermitted), exit.Bad},
		{fmt.Errorf("read /proc/7/stat: %w", kernel.ErrMalformed), exit.Failed},
	} {
		var none bytes.Buffer
		if code := cli.Finish("homenode", notReadable(c.err), &none); code != c.code {
			t.Errorf("%v: %d", c.err, code)
		}
	}
}
