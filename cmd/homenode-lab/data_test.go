// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"homenode/internal/lab"
)

// An installed program finds its files from any folder, and says what is missing and how to
// get it.
func TestInstalledFiles(t *testing.T) {
	up := t.TempDir()
	t.Chdir(t.TempDir())
	_, err := labAssets(up, "")
	if !errors.Is(err, lab.ErrNotInstalled) || !strings.Contains(err.Error(), "'make lab' in a source tree") {
		t.Errorf("no lab: %v", err)
	}
	if _, err := mixesFolder(up, ""); err == nil || !strings.Contains(err.Error(), "--mixes") {
		t.Errorf("no mixes: %v", err)
	}
	if got := scenarioFile(up, "two-services"); got != "two-services" {
		t.Errorf("no scenarios: %s", got)
	}
	share := filepath.Join(up, "share/homenode-lab")
	for _, file := range []string{"lab/build.sh", "lab/mixes/first-light.yaml", "sim/scenarios/two-services.yaml"} {
		path := filepath.Join(share, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := labAssets(up, ""); err == nil || !strings.Contains(err.Error(), share+"/lab/build.sh "+installedLab) {
		t.Errorf("a lab that can be built: %v", err)
	}
	if got, err := mixesFolder(up, ""); err != nil || got != share+"/lab/mixes" {
		t.Errorf("mixes: %s, %v", got, err)
	}
	if got := scenarioFile(up, "two-services"); got != share+"/sim/scenarios/two-services.yaml" {
		t.Errorf("scenario: %s", got)
	}
	for _, path := range []string{"./two-services", "a/b.yaml", "mine.yaml"} {
		if got := scenarioFile(up, path); got != path {
			t.Errorf("%s: %s", path, got)
		}
	}
}
