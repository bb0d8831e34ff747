// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"bytes"
	"context"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the outputs in testdata")

// disk opens files relative to a folder.
type disk string

func (d disk) ReadFile(name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(string(d), name))
}
func (d disk) Tree(name string) (fs.FS, error) { return os.DirFS(filepath.Join(string(d), name)), nil }

const scenarios = "../../../sim/scenarios"

func loadFile(t *testing.T, name string) Setting {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(scenarios, name))
	if err != nil {
		t.Fatal(err)
	}
	s, err := Load(context.Background(), data, name, disk(scenarios))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// All scenarios that come with homenode can be read.
func TestScenariosLoad(t *testing.T) {
	all, err := filepath.Glob(filepath.Join(scenarios, "*.yaml"))
	if err != nil || len(all) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, path := range all {
		s := loadFile(t, filepath.Base(path))
		if s.Name+".yaml" != filepath.Base(path) {
			t.Errorf("%s is called %s", path, s.Name)
		}
	}
}

func runAll(t *testing.T, s Setting, workers int) Result {
	t.Helper()
	r, err := s.RunAll(context.Background(), workers, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func encode(t *testing.T, r Result) []byte {
	t.Helper()
	data, err := Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestSameSeedSameBytes(t *testing.T) {
	s := loadFile(t, "two-services.yaml")
	s.Seeds, s.Lasts = s.Seeds[:1], s.Lasts/2
	one, two := runAll(t, s, 1), runAll(t, s, 4)
	if !bytes.Equal(encode(t, one), encode(t, two)) {
		t.Error("two runs of the same seeds differ")
	}
	s.Seeds = []uint64{99}
	if bytes.Equal(encode(t, one), encode(t, runAll(t, s, 2))) {
		t.Error("another seed says the same")
	}
}
