// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"homenode/internal/exit"
	"homenode/internal/model"
	"homenode/internal/sim/catalog"
	"homenode/internal/sim/placements"
)

func simPack(args ...string) (stdout, stderr string, code int) {
	code, stdout, stderr = runWith(append([]string{"sim", "pack", "--applications", "2", "--trials", "2"}, args...)...)
	return stdout, stderr, code
}

// models is a folder with the golden model under the name of each kind.
func models(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("../../internal/model/testdata/model.json")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, kind := range catalog.SharerKinds() {
		m, err := model.Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		m.LeftOut = kind
		text, err := json.Marshal(m)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, kind+".json"), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestSimPack(t *testing.T) {
	dir := models(t)
	out, errs, code := simPack("--models", dir, "--confidence", "0.9", "-o", "json")
	var r placements.PackResult
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != exit.Done || r.Trials != 2 || r.How != "modelled" || len(r.Policies) != 8 {
		t.Fatalf("code %d, %v, %+v, %s", code, err, r, errs)
	}
	if out, _, _ := simPack("--models", dir, "--confidence", "0.9"); !strings.Contains(out, "Every figure is modelled") || !strings.Contains(out, "smart-aggressive") {
		t.Errorf("text: %s", out)
	}
	for want, args := range map[string][]string{
		"--models is missing":               {},
		"no such file":                      {"--models", "/nonexistent"},
		"were trained with applications of": {"--models", dir, "--seed", "1"},
		"of another machine":                {"--models", dir, "--machine", "quad-e7-4830", "--vcpus", "24"},
		"want 1 to 100000":                  {"--models", dir, "--trials", "0"},
	} {
		if out, errs, code := simPack(args...); code != exit.Bad || !strings.Contains(errs, want) || out != "" {
			t.Errorf("%v: code %d, no %q in %s", args, code, want, errs)
		}
	}
}

// A confidence that the models cannot give is bad input, and said before anything runs.
func TestSimPackConfidence(t *testing.T) {
	for _, confidence := range []string{"0", "1", "0.9999"} {
		if out, errs, code := simPack("--models", models(t), "--confidence", confidence); code != exit.Bad || !strings.Contains(errs, "confidence") || out != "" {
			t.Errorf("%s: code %d: %s", confidence, code, errs)
		}
	}
}
