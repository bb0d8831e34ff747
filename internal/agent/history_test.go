// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"homenode/internal/machine"
	"homenode/internal/policy/mao"
	"homenode/internal/unit"
	"homenode/internal/window/windowtest"
)

func shape(ids []int, cpus int) machine.Machine {
	var h windowtest.Host
	h.Shape(ids, cpus, unit.GiB)
	return h.Machine
}

func past(t *testing.T, text string) (all []mao.History) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

const twoNodes = `[{"node":0,"utilisation":[0.1,0.25,1.01]},{"node":4,"utilisation":[0.5]}]`

func TestDecodeHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "history.json")
	m := shape([]int{0, 4}, 2)
	if _, err := readHistory(path, m); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	want := past(t, twoNodes)
	for range 2 { // the second replaces
		if err := writeHistory(path, m, time.Unix(1, 0), want); err != nil {
			t.Fatal(err)
		}
	}
	got, err := readHistory(path, m)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := os.Stat(path + ".tmp"); err == nil {
		t.Error("the file that was written first is still there")
	}
	st := mao.State{}.WithHistories(got)
	if !reflect.DeepEqual(st.Histories(), want) {
		t.Errorf("%+v", st)
	}
	for name, other := range map[string]machine.Machine{"more CPUs": shape([]int{0, 4}, 3), "other ids": shape([]int{0, 1}, 2), "more nodes": shape([]int{0, 1, 4}, 2)} {
		if got, err := readHistory(path, other); !errors.Is(err, errOtherMachine) || got != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	// An offline CPU is still the node's.
	off := shape([]int{0, 4}, 2)
	off.CPUs[3].Online = false
	if _, err := readHistory(path, off); err != nil {
		t.Errorf("a CPU offline: %v", err)
	}
}

func TestDecodeDamagedHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "h")
	for text, want := range map[string]string{
		"":                      "parse history",
		`{"schema":1,"mach`:     "unexpected end",
		`{"schema":2}`:          "schema 2",
		`{"schema":1,"more":1}`: "more",
		`{"schema":1,"machine":[{"id":0,"cpus":"0"}],"nodes":[{"node":1,"utilisation":[0.5]}]}`: "node 1",
		`{"schema":1,"machine":[{"id":0,"cpus":"0"}],"nodes":[{"node":0,"utilisation":[-1]}]}`:  "not a utilisation",
		`{"schema":1,"machine":[{"id":1,"cpus":"0"},{"id":0,"cpus":"1"}],"nodes":[]}`:           "ascend",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := readHistory(path, shape([]int{0}, 1)); err == nil || got != nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	if _, err := readHistory("/dev/zero", machine.Machine{}); err == nil {
		t.Error("a device was read")
	}
	if err := writeHistory("/dev/null/x", machine.Machine{}, time.Time{}, nil); err == nil {
		t.Error("a folder that cannot be was written to")
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"schema":1,"at":"2026-01-01T00:00:00Z","machine":[{"id":0,"cpus":"0-3"}],"nodes":[{"node":0,"utilisation":[0.5,0.25]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := decodeHistory(data)
		if err != nil {
			if !reflect.DeepEqual(file, historyFile{}) {
				t.Errorf("%q: an error and %+v", data, file)
			}
			return
		}
		text, err := json.Marshal(file)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := decodeHistory(text); err != nil || len(again.Nodes) != len(file.Nodes) {
			t.Errorf("%q: %+v, %v", data, again, err)
		}
	})
}
