// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"homenode/internal/exit"
	"homenode/internal/sim/fleet"
)

func TestSimTrials(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trials.parquet")
	code, out, said := runWith("sim", "trials", "--fleets", "1", "--servers", "3", "--dataset", file, "-o", "json")
	var sum fleet.TrialSummary
	if err := json.Unmarshal([]byte(out), &sum); err != nil || code != exit.Done || sum.Rows < 3 || sum.Fleets != 1 {
		t.Fatalf("exit code %d, %+v, %v: %s", code, sum, err, said)
	}
	if info, err := os.Stat(file); err != nil || info.Size() < 1000 {
		t.Errorf("%+v, %v", info, err)
	}
	if code, out, _ := runWith("sim", "trials", "--fleets", "1", "--servers", "3"); code != exit.Done || !strings.Contains(out, "bound alone") {
		t.Errorf("exit code %d: %s", code, out)
	}
	mixes := []string{"sim", "trials", "--machine", "four", "--lab-mixes", "--fleets", "1", "--servers", "3", "-o", "json"}
	code, out, said = runWith(mixes...)
	if err := json.Unmarshal([]byte(out), &sum); err != nil || code != exit.Done || sum.Rows < 3 || sum.Machine != "shape:four" {
		t.Errorf("exit code %d, %+v, %v: %s", code, sum, err, said)
	}
	for _, bad := range [][]string{{"x"}, {"--fleets", "0"}, {"--servers", "-1"}, {"--workers", "0"}, {"--machine", "none.yaml"}, {"--noise", file}, {"--dataset", "/no/folder/x"}, {"-o", "xml"}, {"--lab-mixes"}, {"--lab-mixes", "--machine", "/"}} {
		if code, _, said := runWith(append([]string{"sim", "trials"}, bad...)...); code != exit.Bad || said == "" {
			t.Errorf("%v: exit code %d: %s", bad, code, said)
		}
	}
}
