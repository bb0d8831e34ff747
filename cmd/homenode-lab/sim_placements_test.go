// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"homenode/internal/exit"
	"homenode/internal/sim/placements"
)

func simPlacements(args ...string) (stdout, stderr string, code int) {
	code, stdout, stderr = runWith(append([]string{"sim", "placements", "--applications", "2"}, args...)...)
	return stdout, stderr, code
}

func TestSimPlacements(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows.parquet")
	out, errs, code := simPlacements("--dataset", path, "-o", "json")
	var sum placements.Summary
	if err := json.Unmarshal([]byte(out), &sum); err != nil || code != exit.Done || sum.Workloads != 6 || len(sum.Placements) != 9 || sum.How != "modelled" {
		t.Fatalf("code %d, %v, %+v, %s", code, err, sum, errs)
	}
	fastest := 0
	for _, p := range sum.Placements {
		fastest += p.Fastest
		if !(p.Least > 0 && p.Least <= p.Mean && p.Mean <= 1) {
			t.Errorf("%+v", p)
		}
	}
	rows, err := parquet.ReadFile[placements.Row](path)
	if err != nil || len(rows) != 54 || fastest != 6 {
		t.Errorf("%v, %d rows, %d fastest", err, len(rows), fastest)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := "homenode-lab sim placements --machine opteron-6272 --vcpus 16 --applications 2 --seed 1 --dataset rows.parquet"; !bytes.Contains(data, []byte(want)) {
		t.Errorf("the file has no %q", want)
	}
	if out, _, _ := simPlacements(); !strings.Contains(out, "Every figure is modelled") {
		t.Errorf("text: %s", out)
	}
}

// A machine of the lab has the placements that its guest has, whatever memory the guest has.
func TestSimPlacementsOfShape(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows.parquet")
	out, errs, code := simPlacements("--shape", "opteron", "--vcpus", "4", "--dataset", path, "-o", "json")
	var sum placements.Summary
	if err := json.Unmarshal([]byte(out), &sum); err != nil || code != exit.Done || len(sum.Placements) != 4 || sum.Machine != "shape:opteron" {
		t.Fatalf("code %d, %v, %+v, %s", code, err, sum, errs)
	}
	data, err := os.ReadFile(path)
	if want := "homenode-lab sim placements --shape opteron --vcpus 4 "; err != nil || !bytes.Contains(data, []byte(want)) {
		t.Errorf("%v, or the file has no %q", err, want)
	}
	rows, err := parquet.ReadFile[placements.Row](path)
	if err != nil || len(rows) != 24 || rows[0].Source != "simulator" {
		t.Errorf("%v, %d rows", err, len(rows))
	}
}

func TestSimPlacementsRefused(t *testing.T) {
	for want, args := range map[string][]string{
		"no such machine":     {"--machine", "pdp-11"},
		"unknown shape":       {"--shape", "pdp-11"},
		"16 and 18":           {"--vcpus", "17"},
		"want at least 1":     {"--workers", "0"},
		"no such file":        {"--links", "/nonexistent"},
		"want 1 to 100000":    {"--applications", "0"},
		"read noise":          {"--noise", "/nonexistent"},
		"give a number above": {"--vcpus", "0"},
	} {
		if out, errs, code := simPlacements(args...); code != exit.Bad || !strings.Contains(errs, want) || out != "" {
			t.Errorf("%v: code %d, no %q in %s", args, code, want, errs)
		}
	}
}
